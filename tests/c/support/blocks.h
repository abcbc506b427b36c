/* A listener that keeps what it is told, for later questions. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <blockcanary.h>

#define BLOCKS_MAX 4096

/* A block as it was delivered. Frames are those of its samples' innermost functions. */
struct told {
  uint64_t id, tag, wall_ns, cpu_ns, start_ns, threshold_ns;
  int64_t start_unix_ms;
  bc_block_state state;
  bc_cause cause;
  uint32_t repeats;
  int32_t tid;
  unsigned samples;
  /* Samples with frames: on a busy machine a thread may not answer in time. */
  unsigned samples_with_stack;
  /* Samples with `blocks_expect`'s function among the first frames. */
  unsigned samples_naming;
  char loop_name[64];
  char what[160];
  char path[512];
  char detail[400];
};

/* Asked about every block that is delivered, in any state, while its memory is valid; NULL: nobody. Runs on the
 * library's reporter thread. */
void blocks_examine(void (*examine)(const bc_block *block));
/* The listener; its user_data is ignored. */
void blocks_listener(const bc_block *block, void *user_data);
/* From now on `samples_naming` counts samples in which this function is among the `depth` innermost frames. */
void blocks_expect(const char *symbol, unsigned depth);
/* How many were told; of one state; of one state and tag. */
unsigned blocks_told(void);
unsigned blocks_in(bc_block_state state);
unsigned blocks_tagged(bc_block_state state, uint64_t tag);
/* The n-th that was told, in order; the first of this state and tag. Both must exist. */
const struct told *blocks_at(unsigned n);
const struct told *blocks_get(bc_block_state state, uint64_t tag);

/* A default configuration but for these: a threshold, and no merging. */
bc_config config_of(uint32_t threshold_ms);
/* Installs with the recording listener, and starts. */
void install_and_start(const bc_config *config);
/* One dispatch that blocks by spinning. */
void blocking_dispatch(bc_loop *loop, const char *what, uint64_t tag, unsigned ms);
bc_loop *watched(const char *name);
bc_health health(void);
void flush(void);

#endif
