/* A loop that waits in its poll is never blocked, and the library lets the machine sleep. */
#include <android/looper.h>
#include <stdatomic.h>
#include <stdio.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

/* Counts for 10 s, once the last mark is longer ago than the monitor looks for more. */
static void rest_and_count(void) {
  sleep_ms(3000);
  CHECK(threads_named("bc-") >= 1, "no thread of the library");
  uint64_t before = voluntary_switches("bc-");
  sleep_ms(10000);
  uint64_t after = voluntary_switches("bc-");
  printf("%d context switches of the library's threads in 10 s\n", (int)(after - before));
  CHECK(after - before <= 2, "%d context switches in 10 s", (int)(after - before));
}

static atomic_int polled;

static void *poll_once(void *argument) {
  CHECK(ALooper_prepare(0) != NULL, "no looper");
  for (int i = 0; i < 3; i++) {
    CHECK(bc_looper_poll_once(1, NULL, NULL, NULL) == ALOOPER_POLL_TIMEOUT, "poll %d", i);
  }
  atomic_store(&polled, 3);
  CHECK(bc_looper_poll_once(16000, NULL, NULL, NULL) == ALOOPER_POLL_TIMEOUT, "the long poll");
  atomic_store(&polled, 4);
  return argument;
}

static void polling(void) {
  bc_config config = config_of(100);
  config.report_dir = fresh_directory("idle");
  install_and_start(&config);
  unsigned long thread = start_thread(poll_once, NULL);
  WAIT_FOR(atomic_load(&polled) == 3, 20000);
  CHECK(health().loops_watched == 1, "%d loops", (int)health().loops_watched);

  rest_and_count();
  CHECK(atomic_load(&polled) == 3, "the poll was over before the counting");
  join_thread(thread);

  flush();
  CHECK(blocks_told() == 0, "%u blocks of an idle loop", blocks_told());
  CHECK(health().samples_taken == 0, "%d samples", (int)health().samples_taken);
  CHECK_OK(bc_uninstall());
}

/* The same without a looper: between dispatches. */
static void between_dispatches(void) {
  bc_config config = config_of(100);
  install_and_start(&config);
  bc_loop *loop = watched("resting");
  bc_dispatch_begin(loop, NULL, 0);
  bc_dispatch_end(loop);
  rest_and_count();
  flush();
  CHECK(blocks_told() == 0, "%u blocks of an idle loop", blocks_told());

  /* And it is not asleep for good. */
  blocking_dispatch(loop, "awake", 1, 150);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 1) == 1, "%u", blocks_tagged(BC_BLOCK_ENDED, 1));
  CHECK(blocks_get(BC_BLOCK_ENDED, 1)->samples > 0, "no sample of a block that began while the monitor slept");
  CHECK_OK(bc_uninstall());
}

CASES({"polling", polling}, {"between_dispatches", between_dispatches})
