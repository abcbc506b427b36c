/* The engine, watched: all that it counts is seen, once, and it gets what it gets by itself. */
#include <android/looper.h>
#include <blockcanary.h>
#include <pthread.h>
#include <string.h>

#include "../check.h"
#include "../support/blocks.h"
#include "engine.h"

#define SLOW_MS 200

static void *play(void *unused) {
  struct engine_counts counts = engine_run(stdout, SLOW_MS);
  bc_loop *loop = watched("engine");
  bc_loop_idle(loop);
  bc_loop_stats stats;
  stats.struct_size = sizeof stats;
  CHECK_OK(bc_loop_stats_get(loop, &stats));
  CHECK(stats.dispatches == counts.callbacks + counts.polls, "%d dispatches of %u callbacks and %u polls",
        (int)stats.dispatches, counts.callbacks, counts.polls);
  return unused;
}

/* Named as what a module has to offer; a program has it as its main, too. */
__attribute__((visibility("default"))) int run_watched(void);
int run_watched(void) {
  bc_config config = config_of(SLOW_MS / 2);
  /* On a busy machine a signal may cut short a wait that is just beginning, which is counted and tested elsewhere. */
  config.sampling_method = BC_SAMPLING_NO_SIGNAL;
  install_and_start(&config);
  join_thread(start_thread(play, NULL));
  flush();
  bc_health now = health();
  CHECK(now.calls_misused == 0 && now.loops_refused == 0, "%d misused, %d refused", (int)now.calls_misused,
        (int)now.loops_refused);
  unsigned callbacks = 0, between = 0;
  for (unsigned i = 0; i < blocks_told(); i++) {
    const struct told *block = blocks_at(i);
    if (block->state == BC_BLOCK_ENDED && block->wall_ns >= SLOW_MS * 1000000u) {
      callbacks += strcmp(block->what, "on_heavy") == 0;
      between += block->tag == (uint64_t)(int64_t)ALOOPER_POLL_TIMEOUT;
    }
  }
  /* On a busy machine the engine may have been late between other polls, too. */
  CHECK(callbacks == 1 && between >= 1, "%u late callbacks, %u times late between polls", callbacks, between);
  CHECK_OK(bc_uninstall());
  fflush(stdout);
  return 0;
}

#ifndef IN_MODULE
int main(void) {
  return run_watched();
}
#endif
