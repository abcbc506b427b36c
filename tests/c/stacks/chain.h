/* Ten functions inside each other, each with a frame of its own, around a wait. */
#ifndef CHAIN_H
#define CHAIN_H

#include <stddef.h>

struct outcome {
  long value;
  int error;
};

typedef struct outcome (*wait_function)(void);

/* chain_10 calls chain_9 and so on; chain_1 waits. */
struct outcome chain_10(wait_function wait);

/* chain_1 to chain_10, inner ones first. */
#define CHAIN_NAMES                                                                                              \
  "chain_1", "chain_2", "chain_3", "chain_4", "chain_5", "chain_6", "chain_7", "chain_8", "chain_9", "chain_10"

/* Something behind the call, so that it is no jump, and a frame to speak of. */
#define CHAIN(outer, inner)                                           \
  struct outcome chain_##inner(wait_function wait);                   \
  struct outcome chain_##outer(wait_function wait);                   \
  __attribute__((noinline)) struct outcome chain_##outer(wait_function wait) { \
    volatile char room[outer * 24];                                   \
    room[0] = 1;                                                      \
    struct outcome outcome = chain_##inner(wait);                     \
    outcome.value += room[0] - 1;                                     \
    return outcome;                                                   \
  }

#endif
