#include "load.h"

#include <unistd.h>

#include "../check.h"

static void *busy(void *argument) {
  (void)argument;
  for (volatile unsigned n = 0;; n++) {
  }
  return NULL;
}

void load_every_core(unsigned threads_a_core) {
  unsigned long cores = (unsigned long)sysconf(_SC_NPROCESSORS_ONLN);
  for (unsigned long i = 0; i < cores * threads_a_core; i++) {
    start_thread(busy, NULL);
  }
}
