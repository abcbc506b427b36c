/* A library whose constructor blocks while the loader holds its lock. */
#include <time.h>

void slow_constructor(void);

__attribute__((constructor)) void slow_constructor(void) {
  struct timespec time = {.tv_nsec = 400000000};
  nanosleep(&time, 0);
  __asm__ volatile("");
}
