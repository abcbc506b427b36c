/* Watching that ends by itself after `monitor_duration_s`. */
#include <string.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

static unsigned since_ms(uint64_t begin) {
  return (unsigned)((now_ns() - begin) / 1000000);
}

static void check_ended(uint64_t begin, unsigned expected_ms) {
  CHECK(since_ms(begin) >= expected_ms && since_ms(begin) < expected_ms + 500, "ended after %u ms", since_ms(begin));
}

/* What is open then ends with it, as with a stop; a start begins it again. */
static void ends(void) {
  bc_config config = config_of(100);
  config.monitor_duration_s = 1;
  uint64_t begin = now_ns();
  install_and_start(&config);
  bc_loop *loop = watched("timed");
  bc_dispatch_begin(loop, "open", 1);
  WAIT_FOR(!bc_is_running(), 10000);
  check_ended(begin, 1000);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 1) == 1, "%u", blocks_tagged(BC_BLOCK_ENDED, 1));
  uint64_t wall_ms = blocks_get(BC_BLOCK_ENDED, 1)->wall_ns / 1000000;
  CHECK(wall_ms >= 800 && wall_ms < 1500, "%u ms", (unsigned)wall_ms);
  bc_dispatch_end(loop);
  blocking_dispatch(loop, "unwatched", 2, 200);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 2) == 0, "told of a block after the end");

  CHECK_OK(bc_start());
  begin = now_ns();
  blocking_dispatch(loop, "watched", 3, 200);
  CHECK(bc_is_running(), "not running");
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 3) == 1, "%u", blocks_tagged(BC_BLOCK_ENDED, 3));
  WAIT_FOR(!bc_is_running(), 10000);
  check_ended(begin, 1000);
  CHECK_OK(bc_stop());
  CHECK_OK(bc_uninstall());
}

/* The time is that since the last stop and start; a start while it runs changes nothing. Idle or paused, it ends too. */
static void counted_anew(void) {
  bc_config config = config_of(100);
  config.monitor_duration_s = 2;
  install_and_start(&config);
  uint64_t begin = now_ns();
  WAIT_FOR(since_ms(begin) >= 1500, 10000);
  CHECK_OK(bc_stop());
  CHECK_OK(bc_start());
  begin = now_ns();
  WAIT_FOR(since_ms(begin) >= 1200, 10000);
  CHECK(bc_is_running(), "ended %u ms after the second start", since_ms(begin));
  CHECK_OK(bc_start());
  CHECK_OK(bc_pause());
  WAIT_FOR(!bc_is_running(), 10000);
  check_ended(begin, 2000);
  CHECK_OK(bc_resume());
  CHECK(!bc_is_running(), "a resume has started it");
  CHECK_OK(bc_uninstall());
}

/* Waiting for its end it sleeps. */
static void idle(void) {
  bc_config config = config_of(100);
  config.monitor_duration_s = 4;
  install_and_start(&config);
  bc_loop *loop = watched("idle");
  (void)loop;
  uint64_t begin = now_ns();
  WAIT_FOR(since_ms(begin) >= 2000, 10000);
  uint64_t before = voluntary_switches("bc-");
  WAIT_FOR(since_ms(begin) >= 3500, 10000);
  uint64_t after = voluntary_switches("bc-");
  CHECK(after - before <= 1, "%u wake-ups", (unsigned)(after - before));
  WAIT_FOR(!bc_is_running(), 10000);
  CHECK_OK(bc_uninstall());
}

CASES({"ends", ends}, {"counted_anew", counted_anew}, {"idle", idle})
