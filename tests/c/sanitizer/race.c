/* A race that ThreadSanitizer has to see. */
#include <pthread.h>

static int shared;

static void *adds(void *argument) {
  for (int i = 0; i < 100000; i++) {
    shared++;
  }
  return argument;
}

int main(void) {
  pthread_t other;
  if (pthread_create(&other, NULL, adds, NULL) != 0) {
    return 0;
  }
  adds(NULL);
  pthread_join(other, NULL);
  return 0;
}
