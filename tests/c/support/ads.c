/* A module of its own, for tests about modules. */
#include "ads.h"

#include <time.h>

static unsigned long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (unsigned long long)time.tv_sec * 1000000000u + (unsigned long long)time.tv_nsec;
}

__attribute__((noinline)) void ads_spin(unsigned ms) {
  unsigned long long until = now() + ms * 1000000ull;
  while (now() < until) {
  }
}

__attribute__((noinline)) void ads_call(void (*callback)(unsigned), unsigned ms) {
  callback(ms);
  ads_spin(0);
}
