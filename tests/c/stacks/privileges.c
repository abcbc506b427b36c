/* A process as an app is one: under a uid of its own, not dumpable, filtered. */
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../check.h"
#include "../support/blocks.h"
#include "../support/procfs.h"
#include "../support/stacks.h"
#include "app_filter.h"

#define APP 10123

static atomic_uint samples, by_kernel, by_signal, with_stack, with_state, naming;

void privileged_wait(void);
STAYS void privileged_wait(void) {
  sleep_ms(300);
  __asm__ volatile("");
}

static void examine(const bc_block *block) {
  for (size_t i = 0; i < block->sample_count && block->state == BC_BLOCK_ENDED; i++) {
    const bc_sample *sample = sample_of(block, i);
    samples++;
    by_kernel += sample->method == BC_SAMPLE_KERNEL_STATE;
    by_signal += sample->method == BC_SAMPLE_SIGNAL;
    with_stack += sample->frame_count > 0;
    with_state += sample->thread_state != 0;
    naming += stack_find(block, sample, "privileged_wait", 0) >= 0;
  }
}

static int dumpable(void) {
  return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
}

/* Only root can become somebody else. */
static void become_app(void) {
  if (geteuid() != 0) {
    printf("not run: needs root\n");
    exit(77);
  }
  CHECK(setgroups(0, NULL) == 0 && setresgid(APP, APP, APP) == 0 && setresuid(APP, APP, APP) == 0, "%s",
        strerror(errno));
  /* What the kernel makes of that depends on a setting; an app's process is not dumpable. */
  CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && dumpable() == 0, "dumpable is %d", dumpable());
}

static atomic_bool stop_looking;
static atomic_uint looks, seen_dumpable;

static void *look(void *unused) {
  while (!stop_looking) {
    looks++;
    seen_dumpable += dumpable() != 0;
  }
  return unused;
}

static bc_health one_of_each(bc_toggle window, const char *report_dir) {
  bc_config config = config_of(50);
  config.sample_interval_ms = 10;
  config.dumpable_window = window;
  config.report_ongoing = BC_OFF;
  config.report_dir = report_dir;
  blocks_examine(examine);
  install_and_start(&config);
  bc_loop *loop = watched("app");
  unsigned rounds = 0;
  /* On a machine that is too busy for the monitor one block has few samples. */
  for (; samples < 20 && rounds < 30; rounds++) {
    bc_dispatch_begin(loop, "waiting", 1);
    uint64_t begin = now_ns();
    privileged_wait();
    uint64_t took = now_ns() - begin;
    bc_dispatch_end(loop);
    CHECK(took >= 300000000, "%llu ns", (unsigned long long)took);
    flush();
  }
  unsigned of_wait = samples;
  for (; by_signal < 3 && rounds < 60; rounds++) {
    blocking_dispatch(loop, "running", 2, 400);
    flush();
  }
  bc_health end = health();
  printf("%u samples (%u of the wait), %u without a signal, %u by signal, %u with stack, %u with a state; %llu windows, "
         "signal-free %d, %llu waits cut, %llu reports\n",
         samples, of_wait, by_kernel, by_signal, with_stack, with_state, (unsigned long long)end.dumpable_windows,
         end.signal_free_available, (unsigned long long)end.waits_cut, (unsigned long long)end.reports_written);
  CHECK(blocks_in(BC_BLOCK_ENDED) == rounds, "%u blocks, not %u", blocks_in(BC_BLOCK_ENDED), rounds);
  CHECK(of_wait >= 20 && with_state == samples, "%u samples, %u with a state", of_wait, with_state);
  CHECK(by_signal >= 3 && end.signal_available, "%u samples by signal", by_signal);
  CHECK(end.waits_cut == 0, "waits were cut");
  CHECK_OK(bc_uninstall());
  CHECK(dumpable() == 0, "dumpable is %d at the end", dumpable());
  return end;
}

static void with_window(const char *report_dir) {
  bc_health end = one_of_each(BC_DEFAULT, report_dir);
  CHECK(end.signal_free_available && end.dumpable_windows >= 1, "signal-free %d, %llu windows",
        end.signal_free_available, (unsigned long long)end.dumpable_windows);
  CHECK(by_kernel * 10 >= 20 * 9 && naming >= by_kernel, "%u without a signal, %u right", by_kernel, naming);
}

static void other_uid(void) {
  become_app();
  with_window(NULL);
}

static void window_off(void) {
  become_app();
  unsigned long looker = start_thread(look, NULL);
  bc_health end = one_of_each(BC_OFF, NULL);
  stop_looking = true;
  join_thread(looker);
  printf("%u looks\n", looks);
  CHECK(end.dumpable_windows == 0 && seen_dumpable == 0, "%llu windows, seen in %u looks",
        (unsigned long long)end.dumpable_windows, seen_dumpable);
  CHECK(!end.signal_free_available, "health claims what cannot be");
  CHECK(by_kernel == 0, "%u samples that cannot be", by_kernel);
}

/* What is dumpable is left so. */
static void already_dumpable(void) {
  CHECK(dumpable() == 1, "dumpable is %d", dumpable());
  bc_config config = config_of(50);
  install_and_start(&config);
  bc_loop *loop = watched("dumpable");
  blocking_dispatch(loop, "running", 1, 100);
  flush();
  CHECK(health().dumpable_windows == 0 && health().signal_free_available, "%llu windows",
        (unsigned long long)health().dumpable_windows);
  CHECK_OK(bc_uninstall());
  CHECK(dumpable() == 1, "dumpable is %d at the end", dumpable());
}

#define RACERS 8
static pthread_barrier_t start_line;

static void *race(void *unused) {
  pthread_barrier_wait(&start_line);
  bc_loop *loop = watched("racer");
  bc_dispatch_begin(loop, "racing", 1);
  spin_ms(5);
  bc_dispatch_end(loop);
  CHECK_OK(bc_loop_unwatch(loop));
  return unused;
}

static void racing_registrations(void) {
  become_app();
  bc_config config = config_of(1);
  config.sample_interval_ms = 1;
  config.report_ongoing = BC_OFF;
  install_and_start(&config);
  CHECK(pthread_barrier_init(&start_line, NULL, RACERS) == 0, "barrier");
  unsigned wrong = 0;
  for (int round = 0; round < 50; round++) {
    unsigned long threads[RACERS];
    for (int i = 0; i < RACERS; i++) {
      threads[i] = start_thread(race, NULL);
    }
    for (int i = 0; i < RACERS; i++) {
      join_thread(threads[i]);
    }
    flush();
    wrong += dumpable() != 0;
  }
  bc_health end = health();
  printf("%llu windows, dumpable after %u of 50 rounds\n", (unsigned long long)end.dumpable_windows, wrong);
  CHECK(end.dumpable_windows >= 50, "%llu windows", (unsigned long long)end.dumpable_windows);
  CHECK(wrong == 0, "dumpable after %u rounds", wrong);
  CHECK_OK(bc_uninstall());
  CHECK(dumpable() == 0, "dumpable is %d at the end", dumpable());
}

static const char *open_directory(const char *name) {
  const char *directory = fresh_directory(name);
  CHECK(chmod(directory, 0777) == 0, "%s", strerror(errno));
  return directory;
}

static void filtered(void) {
  const char *directory = open_directory("filtered");
  CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "%s", strerror(errno));
  app_filter_install();
  bc_health end = one_of_each(BC_DEFAULT, directory);
  CHECK(by_kernel * 10 >= 20 * 9 && naming >= by_kernel, "%u without a signal, %u right", by_kernel, naming);
  CHECK(end.reports_written >= 4 && end.reports_failed == 0, "%llu reports", (unsigned long long)end.reports_written);
}

/* Both at once, as it is for an app. */
static void filtered_other_uid(void) {
  const char *directory = open_directory("filtered_uid");
  become_app();
  app_filter_install();
  with_window(directory);
}

CASES({"other_uid", other_uid}, {"window_off", window_off}, {"already_dumpable", already_dumpable},
      {"racing_registrations", racing_registrations}, {"filtered", filtered},
      {"filtered_other_uid", filtered_other_uid})
