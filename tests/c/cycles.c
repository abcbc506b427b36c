/* Installing and uninstalling again and again leaves nothing behind, while loops dispatch all the time. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

#define CYCLES 500
#define WORKERS 4

static atomic_bool ending;
static atomic_uint_fast64_t watches, marks;

/* Dispatches with whatever token it has got last, which is stale most of the time. */
static void *dispatch(void *argument) {
  bc_loop *loop = NULL;
  for (unsigned n = 0; !atomic_load(&ending); n++) {
    bc_loop *fresh = NULL;
    if (n % 64 == 0 && bc_loop_watch("cycling", &fresh) == BC_OK) {
      loop = fresh;
      atomic_fetch_add(&watches, 1);
    }
    bc_dispatch_begin(loop, "work", n);
    bc_dispatch_begin(loop, "inner", n);
    bc_dispatch_end(loop);
    if (n % 4096 == 0) {
      spin_ms(2); /* late at a threshold of 1 ms */
    }
    bc_dispatch_end(loop);
    atomic_fetch_add(&marks, 4);
    if (n % 16 == 0) {
      pause_ms(0);
    }
  }
  return argument;
}

struct actions {
  struct sigaction of[65];
};

static void actions_read(struct actions *actions) {
  memset(actions, 0, sizeof *actions);
  for (int signal = 1; signal <= 64; signal++) {
    sigaction(signal, NULL, &actions->of[signal]);
  }
}

/* By members: the C library leaves the bits that stand for no signal as it finds them. */
static bool same_masks(const sigset_t *a, const sigset_t *b) {
  for (int signal = 1; signal <= 64; signal++) {
    if (sigismember(a, signal) != sigismember(b, signal)) {
      return false;
    }
  }
  return true;
}

/* The C library adds one flag (SA_RESTORER) to whatever is set by it. */
static bool same_flags(int a, int b) {
  return ((a ^ b) & ~0x04000000) == 0;
}

static void actions_compare(const struct actions *before, const struct actions *after) {
  for (int signal = 1; signal <= 64; signal++) {
    CHECK(before->of[signal].sa_handler == after->of[signal].sa_handler &&
              same_flags(before->of[signal].sa_flags, after->of[signal].sa_flags) &&
              same_masks(&before->of[signal].sa_mask, &after->of[signal].sa_mask),
          "the action of signal %d has changed from %p, flags %x to %p, flags %x", signal,
          *(void *const *)&before->of[signal].sa_handler, (unsigned)before->of[signal].sa_flags,
          *(void *const *)&after->of[signal].sa_handler, (unsigned)after->of[signal].sa_flags);
  }
}

static void cycle(const bc_config *config) {
  CHECK_OK(bc_install(config));
  CHECK_OK(bc_set_listener(blocks_listener, NULL));
  CHECK_OK(bc_start());
  CHECK(bc_is_running(), "not running");
  pause_ms(2);
  CHECK_OK(bc_stop());
  CHECK_OK(bc_uninstall());
  CHECK(!bc_is_running(), "running");
}

static struct mappings second, last;

static void leave_nothing(void) {
  bc_config config = config_of(1);
  config.report_dir = fresh_directory("cycles");
  config.max_reports = 10;
  unsigned long workers[WORKERS];
  for (unsigned i = 0; i < WORKERS; i++) {
    workers[i] = start_thread(dispatch, NULL);
  }
  WAIT_FOR(atomic_load(&marks) > 1000, 20000);
  unsigned threads_before = threads(), descriptors_before = descriptors();
  static struct actions before, after;
  actions_read(&before);
  for (unsigned i = 1; i <= CYCLES; i++) {
    cycle(&config);
    CHECK(threads() == threads_before, "%u threads after cycle %u, %u before", threads(), i, threads_before);
    CHECK(descriptors() == descriptors_before, "%u descriptors after cycle %u, %u before", descriptors(), i,
          descriptors_before);
    if (i == 2) {
      mappings_read(&second);
    }
  }
  mappings_read(&last);
  actions_read(&after);
  actions_compare(&before, &after);
  printf("%u mappings of %" PRIu64 " bytes after the second cycle, %u of %" PRIu64 " after the last\n", second.lines,
         second.bytes, last.lines, last.bytes);
  if (second.lines != last.lines || second.bytes != last.bytes) {
    fprintf(stderr, "after the second:\n%s\nafter the last:\n%s\n", second.text, last.text);
  }
  CHECK(second.lines == last.lines && second.bytes == last.bytes, "%u and %u mappings", second.lines, last.lines);

  uint64_t watched_in_cycles = atomic_load(&watches);
  CHECK(watched_in_cycles > CYCLES / 10, "the loops were watched %d times only", (int)watched_in_cycles);
  printf("%d watches, %d blocks\n", (int)watched_in_cycles, (int)blocks_told());
  CHECK(blocks_told() > 0, "no loop was ever blocked");
  atomic_store(&ending, true);
  for (unsigned i = 0; i < WORKERS; i++) {
    join_thread(workers[i]);
  }
}

static atomic_uint phase;

/* Blocks all signals while it is sampled, and takes them only after the library has gone. */
static void *masked_thread(void *argument) {
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  bc_loop *loop = watched("masked");
  bc_dispatch_begin(loop, "masked", 7);
  spin_ms(300);
  bc_dispatch_end(loop);
  atomic_store(&phase, 1);
  WAIT_FOR(atomic_load(&phase) == 2, 20000);
  pthread_sigmask(SIG_SETMASK, &previous, NULL);
  return argument;
}

static void masked_signals(void) {
  static struct actions before, after;
  actions_read(&before);
  bc_config config = config_of(100);
  install_and_start(&config);
  unsigned long thread = start_thread(masked_thread, NULL);
  WAIT_FOR(atomic_load(&phase) == 1, 20000);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 7) == 1, "%u blocks", blocks_tagged(BC_BLOCK_ENDED, 7));
  /* One that is sent would stay pending, and what then happens to it depends on who unmasks it. */
  CHECK(health().signals_sent == 0, "%d signals sent to a thread that masks them", (int)health().signals_sent);
  CHECK(health().samples_unanswered > 0, "a thread that masks all signals has answered");
  CHECK_OK(bc_uninstall());
  atomic_store(&phase, 2);
  join_thread(thread);
  actions_read(&after);
  actions_compare(&before, &after);
}

/* Tokens of an earlier installation do nothing, and are counted. */
static void stale_tokens(void) {
  bc_config config = config_of(10);
  install_and_start(&config);
  bc_loop *stale = watched("first");
  CHECK_OK(bc_uninstall());
  blocking_dispatch(stale, "not installed", 1, 30);

  install_and_start(&config);
  bc_loop *loop = watched("second");
  CHECK(loop != stale, "the token is the same again");
  blocking_dispatch(stale, "stale", 2, 30);
  CHECK(bc_loop_unwatch(stale) != BC_OK && bc_loop_set_threshold(stale, 5) != BC_OK, "a stale token is taken");
  flush();
  CHECK(blocks_told() == 0, "%u blocks by a stale token", blocks_told());
  CHECK(health().calls_misused == 4, "%d misused, not 4", (int)health().calls_misused);
  for (uintptr_t bit = 1; bit != 0; bit <<= 1) {
    bc_loop *nonsense = (bc_loop *)((uintptr_t)loop ^ bit);
    bc_dispatch_begin(nonsense, "nonsense", 3);
    bc_dispatch_end(nonsense);
    CHECK(bc_loop_unwatch(nonsense) != BC_OK, "%p was unwatched", (void *)nonsense);
  }
  blocking_dispatch(loop, "still watched", 4, 30);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 4) == 1, "%u blocks", blocks_tagged(BC_BLOCK_ENDED, 4));
  CHECK_OK(bc_uninstall());
}

CASES({"leave_nothing", leave_nothing}, {"masked_signals", masked_signals}, {"stale_tokens", stale_tokens})
