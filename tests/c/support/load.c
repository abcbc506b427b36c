#include "load.h"

#include <sched.h>

#include "../check.h"

static void *busy(void *argument) {
  (void)argument;
  for (volatile unsigned n = 0;; n++) {
  }
  return NULL;
}

void load_every_core(unsigned threads_a_core) {
  /* Not by sysconf, whose numbers each C library has of its own, and another one may be in its place. */
  cpu_set_t cores_of_ours;
  CHECK(sched_getaffinity(0, sizeof cores_of_ours, &cores_of_ours) == 0, "sched_getaffinity");
  unsigned long cores = (unsigned long)CPU_COUNT(&cores_of_ours);
  for (unsigned long i = 0; i < cores * threads_a_core; i++) {
    start_thread(busy, NULL);
  }
}
