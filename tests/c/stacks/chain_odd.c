/* Apart from the even ones, so that each half can be compiled with and without frame pointers. */
#include "chain.h"

struct outcome chain_1(wait_function wait);
__attribute__((noinline)) struct outcome chain_1(wait_function wait) {
  volatile char room[24];
  room[0] = 1;
  struct outcome outcome = wait();
  outcome.value += room[0] - 1;
  return outcome;
}

CHAIN(3, 2)
CHAIN(5, 4)
CHAIN(7, 6)
CHAIN(9, 8)
