/* Time in which the whole process does not run, or a debugger holds the thread, is nobody's block. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

/* Uses so much processor time, which does not pass while the thread is stopped. */
static void work_ms(unsigned ms) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  double until = (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6 + ms;
  do {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  } while ((double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6 < until);
}

/* A stop, as the child that brings it about has seen it. */
struct stop {
  uint64_t asked, sure;       /* before the stop was asked for; after the thread was seen stopped */
  uint64_t ending, ended;     /* before and after it was told to go on */
  _Atomic bool over;
};
static struct stop *stop;

static bool is_stopped(pid_t process) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
  read_whole(path, text, sizeof text);
  const char *behind = strrchr(text, ')');
  return behind != NULL && behind[2] == 'T';
}

/* A child that stops this process for a while; the answer is its id. */
static pid_t stopper(unsigned after_ms, unsigned ms) {
  if (stop == NULL) {
    stop = mmap(NULL, sizeof *stop, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(stop != MAP_FAILED, "no memory to share");
  }
  memset(stop, 0, sizeof *stop);
  pid_t parent = getpid();
  pid_t child = fork();
  if (child == 0) {
    setpriority(PRIO_PROCESS, 0, -20); /* where it may, it is in time on a busy machine, too */
    pause_ms(after_ms);
    stop->asked = now_ns();
    kill(parent, SIGSTOP);
    while (!is_stopped(parent)) {
      pause_ms(1);
    }
    stop->sure = now_ns();
    pause_ms(ms);
    stop->ending = now_ns();
    kill(parent, SIGCONT);
    stop->ended = now_ns();
    atomic_store(&stop->over, true);
    _exit(0);
  }
  CHECK(child > 0, "fork");
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

#define LIMIT_MS 300
/* A stop's begin is known as well as the monitor's sleeps are short. */
#define DEAD_BAND_MS 25

/* How long a dispatch from `begin` to `end` went on beside the stop in it, at least and at most. */
static double least_ms(uint64_t begin, uint64_t end) { return (double)(end - begin - (stop->ended - stop->asked)) / 1e6; }
static double most_ms(uint64_t begin, uint64_t end) { return (double)(end - begin - (stop->ending - stop->sure)) / 1e6; }

static unsigned real_blocks;

/* What follows is a block like any other, told once. */
static void a_real_one(bc_loop *loop, uint64_t tag) {
  uint64_t begin = now_ns();
  bc_dispatch_begin(loop, "real", tag);
  uint64_t begun = now_ns();
  spin_ms(2 * LIMIT_MS);
  uint64_t ending = now_ns();
  bc_dispatch_end(loop);
  double most = (double)(now_ns() - begin) / 1e6, least = (double)(ending - begun) / 1e6;
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, tag) == 1 && blocks_tagged(BC_BLOCK_ONGOING, tag) <= 1, "%u ended, %u ongoing",
        blocks_tagged(BC_BLOCK_ENDED, tag), blocks_tagged(BC_BLOCK_ONGOING, tag));
  double told = (double)blocks_get(BC_BLOCK_ENDED, tag)->wall_ns / 1e6;
  CHECK(told >= least && told <= most, "%.3f ms, really %.3f to %.3f", told, least, most);
  real_blocks++;
}

/* Stops the process inside short dispatches. On a machine so busy that the dispatch itself takes longer than its limit
 * beside the stop, it is a block: such rounds don't count. */
static void stops_in_dispatches(bc_loop *loop, unsigned wanted, unsigned ms) {
  unsigned judged = 0, busy = 0, wrong = 0;
  for (unsigned round = 0; judged < wanted; round++) {
    CHECK(round < 20 * wanted, "%u of %u rounds can be judged: the machine is too busy", judged, round);
    pid_t child = stopper(20, ms);
    uint64_t begin = now_ns();
    bc_dispatch_begin(loop, "stopped", round);
    uint64_t begun = now_ns();
    do {
      work_ms(50);
    } while (!atomic_load(&stop->over));
    bc_dispatch_end(loop);
    uint64_t end = now_ns();
    ended(child);
    flush();
    unsigned told = blocks_tagged(BC_BLOCK_ENDED, round) + blocks_tagged(BC_BLOCK_ONGOING, round);
    double least = least_ms(begin, end), most = most_ms(begin, end);
    bool came_early = stop->asked < begun; /* before there was a dispatch to be stopped */
    if (came_early || (most > LIMIT_MS - DEAD_BAND_MS && least < LIMIT_MS + DEAD_BAND_MS)) {
      busy++;
      continue;
    }
    bool is_wrong = most <= LIMIT_MS - DEAD_BAND_MS ? told != 0 : blocks_tagged(BC_BLOCK_ENDED, round) != 1;
    judged++;
    if (is_wrong) {
      wrong++;
      printf("  round %u: %.1f to %.1f ms beside the stop, told %u times%s%s\n", round, least, most, told,
             told == 0 ? "" : ": ", told == 0 ? "" : blocks_at(blocks_told() - 1)->detail);
    }
    a_real_one(loop, 1000 + round);
  }
  printf("%u stops of %u ms, %u too busy to be judged, %u judged wrongly; %u real blocks told once\n", judged + busy, ms, busy, wrong,
         real_blocks);
  CHECK(wrong == 0, "%u of %u", wrong, judged);
}

static void stopped_in_a_dispatch(void) {
  bc_config config = config_of(LIMIT_MS);
  install_and_start(&config);
  bc_loop *loop = watched("stopped");
  stops_in_dispatches(loop, 3, 1000);
  CHECK_OK(bc_uninstall());
}

static void stopped_for_long(void) {
  bc_config config = config_of(LIMIT_MS);
  install_and_start(&config);
  bc_loop *loop = watched("stopped");
  stops_in_dispatches(loop, 2, 3000);
  blocking_dispatch(loop, "short", 1, 5);
  ended(stopper(0, 3000));
  a_real_one(loop, 7);
  CHECK(blocks_in(BC_BLOCK_ENDED) >= real_blocks, "%u", blocks_in(BC_BLOCK_ENDED));
  CHECK_OK(bc_uninstall());
}

static void stopped_when_idle(void) {
  bc_config config = config_of(LIMIT_MS);
  install_and_start(&config);
  bc_loop *loop = watched("idle");
  bc_dispatch_begin(loop, "short", 1);
  bc_dispatch_end(loop);
  ended(stopper(0, 1000));
  pause_ms(1500); /* the monitor parks */
  ended(stopper(0, 500));
  a_real_one(loop, 7);
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1, "%u", blocks_in(BC_BLOCK_ENDED));
  CHECK_OK(bc_uninstall());
}

/* A block that is open goes on, and the stop is no part of it. */
static void stopped_in_a_block(void) {
  bc_config config = config_of(LIMIT_MS);
  install_and_start(&config);
  bc_loop *loop = watched("stopped");
  pid_t child = stopper(500, 1500);
  uint64_t begin = now_ns();
  bc_dispatch_begin(loop, "block", 3);
  do {
    work_ms(700);
  } while (!atomic_load(&stop->over));
  bc_dispatch_end(loop);
  uint64_t end = now_ns();
  ended(child);
  flush();
  const struct told *block = blocks_get(BC_BLOCK_ENDED, 3);
  CHECK(block != NULL && blocks_tagged(BC_BLOCK_ENDED, 3) == 1, "no block");
  double wall_ms = (double)block->wall_ns / 1e6, least = least_ms(begin, end), most = most_ms(begin, end);
  printf("%.1f ms are told, %.1f to %.1f it was beside the stop: %s\n", wall_ms, least, most, block->detail);
  CHECK(wall_ms >= least - DEAD_BAND_MS && wall_ms <= most + DEAD_BAND_MS, "%.1f of %.1f to %.1f ms", wall_ms, least, most);
  CHECK(block->cause == BC_CAUSE_SUSPENDED, "cause %u", block->cause);
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
  flush();
  CHECK(blocks_told() == 0, "%u told", blocks_told());
  a_real_one(loop, 7);
  CHECK_OK(bc_uninstall());
}

static void debugged_when_idle(void) {
  bc_config config = config_of(LIMIT_MS);
  install_and_start(&config);
  bc_loop *loop = watched("debugged");
  bc_dispatch_begin(loop, "short", 1);
  bc_dispatch_end(loop);
  ended(debugger(getpid(), 0, 1000));
  pause_ms(1500); /* the monitor parks */
  ended(debugger(getpid(), 0, 1000));
  flush();
  CHECK(blocks_told() == 0, "%u told", blocks_told());
  a_real_one(loop, 7);
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1, "%u", blocks_in(BC_BLOCK_ENDED));
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

CASES({"stopped_in_a_dispatch", stopped_in_a_dispatch}, {"stopped_for_long", stopped_for_long}, {"stopped_when_idle", stopped_when_idle},
      {"stopped_in_a_block", stopped_in_a_block}, {"debugged", debugged},
      {"debugged_when_idle", debugged_when_idle},
      {"told_while_debugging", told_while_debugging})
