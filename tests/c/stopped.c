/* Time in which the whole process does not run, or a debugger holds the thread, is nobody's block. */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"

/* Uses so much processor time, which does not pass while the thread is stopped. */
static void work_ms(unsigned ms) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  double until = (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6 + ms;
  do {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  } while ((double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6 < until);
}

/* A child that stops this process for a while; the answer is its id. */
static pid_t stopper(unsigned after_ms, unsigned ms) {
  pid_t parent = getpid();
  pid_t child = fork();
  if (child == 0) {
    pause_ms(after_ms);
    kill(parent, SIGSTOP);
    pause_ms(ms);
    kill(parent, SIGCONT);
    _exit(0);
  }
  return child;
}

/* A child that attaches to a thread as a debugger does. */
static pid_t debugger(pid_t thread, unsigned after_ms, unsigned ms) {
  pid_t child = fork();
  if (child == 0) {
    pause_ms(after_ms);
    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0 || ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0) {
      _exit(1);
    }
    pause_ms(ms);
    _exit(ptrace(PTRACE_DETACH, thread, NULL, NULL) != 0);
  }
  return child;
}

static void ended(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) == -1) {
  }
  CHECK(status == 0, "the child says %x", (unsigned)status);
}

/* What follows is a block like any other, and the only one. */
static void only_the_real_one(bc_loop *loop) {
  blocking_dispatch(loop, "real", 7, 600);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 7) == 1, "%u of the real block", blocks_tagged(BC_BLOCK_ENDED, 7));
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1 && blocks_in(BC_BLOCK_ONGOING) <= 1, "%u ended, %u ongoing",
        blocks_in(BC_BLOCK_ENDED), blocks_in(BC_BLOCK_ONGOING));
}

static void stopped_in_a_dispatch(void) {
  bc_config config = config_of(300);
  install_and_start(&config);
  bc_loop *loop = watched("stopped");
  for (unsigned round = 0; round < 3; round++) {
    pid_t child = stopper(20, 1000);
    uint64_t begin = now_ns();
    bc_dispatch_begin(loop, "stopped", round);
    work_ms(30);
    bc_dispatch_end(loop);
    CHECK(now_ns() - begin > 800 * 1000000ull, "was not stopped");
    ended(child);
  }
  only_the_real_one(loop);
  CHECK_OK(bc_uninstall());
}

static void stopped_when_idle(void) {
  bc_config config = config_of(300);
  install_and_start(&config);
  bc_loop *loop = watched("idle");
  blocking_dispatch(loop, "short", 1, 5);
  ended(stopper(0, 1000));
  pause_ms(1500); /* the monitor parks */
  ended(stopper(0, 500));
  only_the_real_one(loop);
  CHECK_OK(bc_uninstall());
}

/* A block that is open goes on, and the stop is no part of it. */
static void stopped_in_a_block(void) {
  bc_config config = config_of(300);
  install_and_start(&config);
  bc_loop *loop = watched("stopped");
  pid_t child = stopper(500, 1500);
  uint64_t begin = now_ns();
  bc_dispatch_begin(loop, "block", 3);
  work_ms(700);
  bc_dispatch_end(loop);
  double all_ms = (double)(now_ns() - begin) / 1e6;
  ended(child);
  flush();
  const struct told *block = blocks_get(BC_BLOCK_ENDED, 3);
  CHECK(block != NULL && blocks_tagged(BC_BLOCK_ENDED, 3) == 1, "no block");
  double wall_ms = (double)block->wall_ns / 1e6;
  CHECK(wall_ms >= 690 && wall_ms < all_ms - 1300, "%.1f of %.1f ms", wall_ms, all_ms);
  CHECK_OK(bc_uninstall());
}

static void debugged(void) {
  bc_config config = config_of(300);
  install_and_start(&config);
  bc_loop *loop = watched("debugged");
  pid_t child = debugger(getpid(), 20, 1000);
  uint64_t begin = now_ns();
  bc_dispatch_begin(loop, "breakpoint", 1);
  work_ms(30);
  bc_dispatch_end(loop);
  CHECK(now_ns() - begin > 800 * 1000000ull, "was not held");
  ended(child);
  only_the_real_one(loop);
  CHECK_OK(bc_uninstall());
}

static void told_while_debugging(void) {
  bc_config config = config_of(300);
  config.while_debugging = BC_ON;
  install_and_start(&config);
  bc_loop *loop = watched("debugged");
  pid_t child = debugger(getpid(), 20, 1000);
  bc_dispatch_begin(loop, "breakpoint", 1);
  work_ms(30);
  bc_dispatch_end(loop);
  ended(child);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 1) == 1, "%u blocks", blocks_tagged(BC_BLOCK_ENDED, 1));
  CHECK_OK(bc_uninstall());
}

CASES({"stopped_in_a_dispatch", stopped_in_a_dispatch}, {"stopped_when_idle", stopped_when_idle},
      {"stopped_in_a_block", stopped_in_a_block}, {"debugged", debugged},
      {"told_while_debugging", told_while_debugging})
