/* Threads that cannot answer a signal: told in time with what is known, and the others are served meanwhile. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "../support/blocks.h"
#include "../support/stacks.h"

enum { MASKED = 1, WAITING_FOR_CHILD = 2, OTHER = 3 };

static atomic_bool stop;
static struct {
  atomic_uint samples, with_stack, by_signal, state_r, state_d, named;
} seen[4];

static void examine(const bc_block *block) {
  if (block->state != BC_BLOCK_ENDED) {
    return;
  }
  for (size_t i = 0; i < block->sample_count; i++) {
    const bc_sample *sample = sample_of(block, i);
    unsigned who = (unsigned)block->tag & 3;
    seen[who].samples++;
    seen[who].with_stack += sample->frame_count > 0;
    seen[who].by_signal += sample->method == BC_SAMPLE_SIGNAL;
    seen[who].state_r += sample->thread_state == 'R';
    seen[who].state_d += sample->thread_state == 'D';
    seen[who].named += stack_find(block, sample, "wait_for_child", 0) >= 0;
    if (who == WAITING_FOR_CHILD && seen[who].samples == 1) {
      stack_print(block, sample);
    }
  }
}

static void *masked(void *unused) {
  sigset_t all;
  sigfillset(&all);
  CHECK(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0, "pthread_sigmask");
  bc_loop *loop = watched("masked");
  bc_dispatch_begin(loop, "masked", MASKED);
  spin_ms(600);
  bc_dispatch_end(loop);
  return unused;
}

/* A parent of vfork is in state D until the child is done. */
void wait_for_child(void);
STAYS void wait_for_child(void) {
  pid_t child = vfork();
  if (child == 0) {
    struct timespec time = {.tv_nsec = 600000000};
    nanosleep(&time, NULL);
    _exit(0);
  }
  CHECK(child > 0, "vfork");
  waitpid(child, NULL, 0);
}

static void *in_state_d(void *unused) {
  bc_loop *loop = watched("in state D");
  bc_dispatch_begin(loop, "vfork", WAITING_FOR_CHILD);
  wait_for_child();
  bc_dispatch_end(loop);
  return unused;
}

/* Late all the time, short enough for some blocks while the other one is stuck. */
static void *other(void *unused) {
  bc_loop *loop = watched("other");
  while (!atomic_load(&stop)) {
    blocking_dispatch(loop, "other", OTHER, 90);
  }
  return unused;
}

static void beside(void *(*stuck)(void *), uint64_t tag) {
  bc_config config = config_of(50);
  config.sample_interval_ms = 10;
  blocks_examine(examine);
  install_and_start(&config);
  unsigned long others = start_thread(other, NULL), one = start_thread(stuck, NULL);
  uint64_t begin = now_ns();
  WAIT_FOR(blocks_tagged(BC_BLOCK_ONGOING, tag) == 1, 5000);
  uint64_t told_after = now_ns() - begin;
  join_thread(one);
  atomic_store(&stop, true);
  join_thread(others);
  flush();
  bc_health end = health();
  printf("told after %.1f ms; %u samples: %u with stack, %u by signal, %u in state R, %u in state D; the other loop had "
         "%u blocks, %u of %u samples with stack; %llu signals, %llu unanswered, monitor %llu times late\n",
         told_after / 1e6, seen[tag].samples, seen[tag].with_stack, seen[tag].by_signal, seen[tag].state_r,
         seen[tag].state_d, blocks_tagged(BC_BLOCK_ENDED, OTHER), seen[OTHER].with_stack, seen[OTHER].samples,
         (unsigned long long)end.signals_sent, (unsigned long long)end.samples_unanswered,
         (unsigned long long)end.monitor_late);
  CHECK(told_after < 300000000, "told after %llu ns", (unsigned long long)told_after);
  CHECK(blocks_tagged(BC_BLOCK_ENDED, tag) == 1, "%u blocks", blocks_tagged(BC_BLOCK_ENDED, tag));
  CHECK(seen[tag].samples >= 10, "%u samples", seen[tag].samples);
  CHECK(blocks_tagged(BC_BLOCK_ENDED, OTHER) >= 4, "%u blocks of the other", blocks_tagged(BC_BLOCK_ENDED, OTHER));
  CHECK(seen[OTHER].with_stack * 2 >= seen[OTHER].samples && seen[OTHER].with_stack >= 10, "the other is not served");
}

static void all_masked(void) {
  beside(masked, MASKED);
  CHECK(seen[MASKED].by_signal == 0 && seen[MASKED].state_r * 2 >= seen[MASKED].samples, "%u answers", seen[MASKED].by_signal);
  CHECK_OK(bc_uninstall());
}

static void state_d(void) {
  beside(in_state_d, WAITING_FOR_CHILD);
  CHECK(seen[WAITING_FOR_CHILD].by_signal == 0, "it answered");
  CHECK(seen[WAITING_FOR_CHILD].state_d * 10 >= seen[WAITING_FOR_CHILD].samples * 8, "%u in state D",
        seen[WAITING_FOR_CHILD].state_d);
  CHECK(seen[WAITING_FOR_CHILD].named == seen[WAITING_FOR_CHILD].with_stack, "%u of %u stacks name it",
        seen[WAITING_FOR_CHILD].named, seen[WAITING_FOR_CHILD].with_stack);
  CHECK_OK(bc_uninstall());
}

CASES({"all_masked", all_masked}, {"state_d", state_d})
