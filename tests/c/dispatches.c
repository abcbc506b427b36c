/* Dispatches and stretches: nesting, depth, names, limits. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "support/blocks.h"

/* 360 ms, no 100 of which are without a mark; gives the longest time that was. */
static uint64_t making_progress(bc_loop *loop) {
  uint64_t longest = 0, mark = now_ns();
  bc_dispatch_begin(loop, "outer", 1);
  for (unsigned i = 0; i < 12; i++) {
    spin_ms(30);
    if (i % 2 == 0) {
      bc_dispatch_begin(loop, "inner", 2);
    } else {
      bc_dispatch_end(loop);
    }
    uint64_t now = now_ns();
    longest = now - mark > longest ? now - mark : longest;
    mark = now;
  }
  bc_dispatch_end(loop);
  return longest;
}

/* An inner dispatch tells that the outer one makes progress. */
static void progress(void) {
  bc_config config = config_of(100);
  install_and_start(&config);
  bc_loop *loop = watched("nested");
  uint64_t longest = UINT64_MAX;
  unsigned before = 0;
  for (unsigned tries = 0; longest > 90000000; tries++) { /* on a machine that is too busy even short ones are late */
    CHECK(tries < 50, "this machine is too busy");
    before = blocks_in(BC_BLOCK_ENDED);
    longest = making_progress(loop);
    flush();
  }
  CHECK(blocks_in(BC_BLOCK_ENDED) == before, "%u blocks of a dispatch that makes progress",
        blocks_in(BC_BLOCK_ENDED) - before);

  /* The stretch that is late names the innermost dispatch that is open in it. */
  bc_dispatch_begin(loop, "outer", 3);
  blocking_dispatch(loop, "late inner", 4, 150);
  bc_dispatch_end(loop);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 4) == 1, "%u blocks", blocks_tagged(BC_BLOCK_ENDED, 4));
  CHECK(strcmp(blocks_get(BC_BLOCK_ENDED, 4)->what, "late inner") == 0, "%s", blocks_get(BC_BLOCK_ENDED, 4)->what);

  bc_dispatch_begin(loop, "late outer", 5);
  uint64_t inner_begins = now_ns();
  blocking_dispatch(loop, "inner", 6, 10);
  spin_ms(150);
  bc_dispatch_end(loop);
  uint64_t most = now_ns() - inner_begins - 10000000; /* the inner one's time is not the outer one's */
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 5) == 1, "%u blocks", blocks_tagged(BC_BLOCK_ENDED, 5));
  const struct told *outer = blocks_get(BC_BLOCK_ENDED, 5);
  CHECK(strcmp(outer->what, "late outer") == 0 && outer->wall_ns <= most, "%s, %llu ns", outer->what,
        (unsigned long long)outer->wall_ns);
  CHECK_OK(bc_uninstall());
}

static void depth(void) {
  bc_config config = config_of(50);
  install_and_start(&config);
  bc_loop *loop = watched("deep");
  for (unsigned i = 1; i <= 20; i++) {
    bc_dispatch_begin(loop, "level", i);
  }
  CHECK(health().calls_misused == 4, "%d misused, not 4, at depth 20", (int)health().calls_misused);
  for (unsigned i = 1; i <= 19; i++) {
    bc_dispatch_end(loop);
  }
  spin_ms(100);
  bc_dispatch_end(loop);
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1 && blocks_tagged(BC_BLOCK_ENDED, 1) == 1, "%u blocks",
        blocks_in(BC_BLOCK_ENDED));
  CHECK(health().calls_misused == 4, "%d misused after balanced ends", (int)health().calls_misused);
  bc_dispatch_end(loop);
  CHECK(health().calls_misused == 5, "%d misused after one end too many", (int)health().calls_misused);

  /* Too deep for a name, and reported all the same. */
  for (unsigned i = 1; i <= 18; i++) {
    bc_dispatch_begin(loop, "level", 100 + i);
  }
  spin_ms(100);
  for (unsigned i = 1; i <= 18; i++) {
    bc_dispatch_end(loop);
  }
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 2, "%u blocks", blocks_in(BC_BLOCK_ENDED));
  CHECK_OK(bc_uninstall());
}

static void thresholds(void) {
  bc_config config = config_of(200);
  install_and_start(&config);
  bc_loop *loop = watched("limited");
  blocking_dispatch(loop, "short", 1, 80);
  CHECK_OK(bc_loop_set_threshold(loop, 30));
  blocking_dispatch(loop, "late now", 2, 80);
  CHECK_OK(bc_loop_set_threshold(loop, 0));
  blocking_dispatch(loop, "short again", 3, 80);
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1 && blocks_tagged(BC_BLOCK_ENDED, 2) == 1, "%u blocks",
        blocks_in(BC_BLOCK_ENDED));
  CHECK(blocks_get(BC_BLOCK_ENDED, 2)->threshold_ns == 30000000, "threshold %llu",
        (unsigned long long)blocks_get(BC_BLOCK_ENDED, 2)->threshold_ns);
  CHECK_OK(bc_uninstall());
}

/* Names are copied in time and cut, never read later. */
static void names(void) {
  bc_config config = config_of(30);
  install_and_start(&config);
  char long_name[300], what[300];
  memset(long_name, 'n', sizeof long_name - 1);
  memset(what, 'w', sizeof what - 1);
  long_name[299] = what[299] = 0;
  bc_loop *loop = watched(long_name);
  memset(long_name, 'x', sizeof long_name - 1);
  blocking_dispatch(loop, what, 1, 60);
  memset(what, 'x', sizeof what - 1);
  flush();
  const struct told *ended = blocks_get(BC_BLOCK_ENDED, 1);
  CHECK(strlen(ended->loop_name) == 63 && strspn(ended->loop_name, "n") == 63, "%s", ended->loop_name);
  CHECK(strlen(ended->what) == 127 && strspn(ended->what, "w") == 127, "%s", ended->what);

  CHECK(watched("renamed") == loop, "renaming gives another token");
  blocking_dispatch(loop, NULL, 2, 60);
  flush();
  CHECK(strcmp(blocks_get(BC_BLOCK_ENDED, 2)->loop_name, "renamed") == 0, "%s",
        blocks_get(BC_BLOCK_ENDED, 2)->loop_name);
  CHECK(blocks_get(BC_BLOCK_ENDED, 2)->what[0] == 0, "%s", blocks_get(BC_BLOCK_ENDED, 2)->what);
  CHECK_OK(bc_uninstall());
}

/* A block sampled at an interval has a sample for each, from the begin of the stretch on. On a busy machine some may be
 * missing in one block, but not in each. */
static void samples(void) {
  bc_config config = config_of(100);
  config.sample_interval_ms = 50;
  blocks_expect("spin_ms", 4); /* behind the vDSO, clock_gettime and now_ns */
  install_and_start(&config);
  bc_loop *loop = watched("sampled");
  unsigned due = 0, taken = 0;
  for (uint64_t n = 100; taken + 1 < due || n == 100; n++) {
    CHECK(n < 120, "%u samples, not about %u", taken, due);
    blocking_dispatch(loop, "late", n, 520);
    flush();
    const struct told *ended = blocks_get(BC_BLOCK_ENDED, n);
    due = (unsigned)(ended->wall_ns / 50000000);
    taken = ended->samples;
    CHECK(taken <= due + 1, "%u samples, not about %u", taken, due);
    CHECK(ended->samples_naming * 10 >= ended->samples_with_stack * 9, "%u of %u stacks name spin_ms",
          ended->samples_naming, ended->samples_with_stack);
  }
  CHECK_OK(bc_uninstall());

  config.sampling_method = BC_SAMPLING_OFF;
  install_and_start(&config);
  blocking_dispatch(watched("not sampled"), "late", 2, 200);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 2) == 1 && blocks_get(BC_BLOCK_ENDED, 2)->samples_with_stack == 0,
        "%u stacks", blocks_get(BC_BLOCK_ENDED, 2)->samples_with_stack);
  CHECK(health().signals_sent == 0, "%d signals", (int)health().signals_sent);
  CHECK_OK(bc_uninstall());
}

/* From the next stretch on, samples too: the monitor may be asleep for as long as the old limit allows. */
static void lowered_threshold(void) {
  bc_config config = config_of(20000);
  install_and_start(&config);
  bc_loop *loop = watched("lowered");
  /* On a busy machine some samples may be missing in one block, but not in each. */
  unsigned taken = 0;
  for (uint64_t n = 1; taken < 8; n++) {
    CHECK(n < 20, "%u samples", taken);
    CHECK_OK(bc_loop_set_threshold(loop, 20000));
    bc_dispatch_begin(loop, "before", 0);
    bc_dispatch_end(loop);
    pause_ms(280); /* the monitor has looked meanwhile, and sleeps for a quarter of the limit */
    CHECK_OK(bc_loop_set_threshold(loop, 40));
    blocking_dispatch(loop, "work", n, 150);
    flush();
    taken = blocks_get(BC_BLOCK_ENDED, n)->samples;
  }
  CHECK_OK(bc_uninstall());
}

CASES({"progress", progress}, {"depth", depth}, {"thresholds", thresholds}, {"names", names}, {"samples", samples},
      {"lowered_threshold", lowered_threshold})
