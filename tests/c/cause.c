/* Staged causes of what threads do to each other: each is found in nearly every one of a hundred short blocks, and said in words. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/json.h"
#include "support/procfs.h"
#include "support/staged.h"

/* A report of one of the blocks, whole; NUL behind. */
static const char *report_of(unsigned n, const char *ending) {
  static char text[1 << 20];
  char path[600];
  snprintf(path, sizeof path, "%.*s%s", (int)(strlen(blocks_get(BC_BLOCK_ENDED, n)->path) - 4),
           blocks_get(BC_BLOCK_ENDED, n)->path, ending);
  CHECK(read_whole(path, text, sizeof text) > 0, "nothing in %s", path);
  return text;
}

static const char *json_of(unsigned n) {
  const char *text = report_of(n, ".json");
  CHECK(json_valid(text), "no JSON: %u", n);
  return text;
}

/* This function is among the frames of the first thread that the report has beside the blocked one. */
static void check_holder(unsigned n, const char *name, const char *function) {
  const char *threads = json_member(json_of(n), "threads");
  char quoted[128];
  CHECK(threads != NULL && *threads == '[', "no threads");
  CHECK(json_is(threads, "role", "\"lock holder\""), "%.200s", threads);
  snprintf(quoted, sizeof quoted, "\"%s\"", name);
  CHECK(json_is(threads, "name", quoted), "%.200s", threads);
  const char *process = strstr(threads, "\"process\":{");
  snprintf(quoted, sizeof quoted, "\"symbol\":\"%s\"", function);
  const char *found = strstr(threads, quoted);
  CHECK(found != NULL && found < process, "%s is not among the frames: %.2000s", function, threads);
  const char *log = report_of(n, ".log");
  snprintf(quoted, sizeof quoted, ", name: %s  >>> ", name);
  const char *section = strstr(log, quoted);
  CHECK(section != NULL && section < strstr(log, "\nstack = "), "the log has no section of %s", name);
}

static bool is_spin(const struct told *told) {
  /* What the machine has made of it, by the thread's own clock. */
  return told->cpu_ns > told->wall_ns / 2 ? says(told, BC_CAUSE_RUNNING, " % of one processor")
                                          : says(told, BC_CAUSE_STARVED, "ready to run, ");
}

static void spin_block(unsigned n) {
  (void)n;
  spin_ms(BLOCK_MS);
}

static void spin(void) {
  go_first();
  staged("spin", is_spin, NULL, spin_block);
  finish();
}

static bool is_sleep(const struct told *told) {
  return says(told, BC_CAUSE_SLEEP, "clock_nanosleep of 60 ms");
}

static void sleep_block(unsigned n) {
  (void)n;
  pause_ms(BLOCK_MS);
}

static void asleep(void) {
  go_first();
  staged("asleep", is_sleep, NULL, sleep_block);
  finish();
}

static void pin(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "not pinned");
}

#define HOGS 4
static atomic_uint hogs_ready;

static void *hog(void *argument) {
  pthread_setname_np(pthread_self(), "hog");
  pin();
  setpriority(PRIO_PROCESS, (id_t)tid_of_self(), -10);
  for (unsigned n = 1; !atomic_load(&over); n++) {
    wait_for(&run, n);
    atomic_fetch_add(&hogs_ready, 1);
    while (atomic_load(&done) < n && !atomic_load(&over)) {
    }
  }
  return argument;
}

static void have_hogs(unsigned n) {
  atomic_store(&run, n);
  while (atomic_load(&hogs_ready) < n * HOGS) {
    pause_ms(1);
  }
}

/* Little to do, and others have the only processor that may do it. */
static void starve_block(unsigned n) {
  (void)n;
  uint64_t until = now_ns() + BLOCK_MS * 1000000ull;
  while (now_ns() < until) {
  }
}

static bool is_starved(const struct told *told) { return says(told, BC_CAUSE_STARVED, "ready to run, "); }

static void *starved_thread(void *argument) {
  pin();
  staged("starved", is_starved, have_hogs, starve_block);
  return argument;
}

static void starved(void) {
  for (int i = 0; i < HOGS; i++) {
    start_thread(hog, NULL);
  }
  join_thread(start_thread(starved_thread, NULL));
  unsigned named = 0;
  for (unsigned n = 1; n <= RUNS; n++) {
    named += strstr(blocks_get(BC_BLOCK_ENDED, n)->detail, "; busiest: ") != NULL &&
             strstr(blocks_get(BC_BLOCK_ENDED, n)->detail, " 'hog' ") != NULL;
  }
  printf("  the hogs are named in %u\n", named);
  CHECK(named >= 95, "%u", named);
  const char *top = json_member(json_of(RUNS / 2), "top_threads");
  CHECK(json_is(top, "name", "\"hog\""), "%.200s", top);
  CHECK(!json_is(json_of(RUNS / 2), "run_queue_wait_ms", "null"), "the wait in the run queue is not known");
  finish();
}

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint held, let_go;
static char held_by[64];

__attribute__((noinline)) void hold_the_lock(unsigned n) {
  pthread_mutex_lock(&first);
  atomic_store(&held, n);
  wait_for(&begun, n);
  pause_ms(BLOCK_MS + 5);
  pthread_mutex_unlock(&first);
}

static void *loader(void *argument) {
  pthread_setname_np(pthread_self(), "Loader");
  snprintf(held_by, sizeof held_by, "held by tid %d 'Loader'", (int)tid_of_self());
  for (unsigned n = 1; n <= RUNS; n++) {
    wait_for(&run, n);
    hold_the_lock(n);
  }
  return argument;
}

static void have_it_held(unsigned n) {
  atomic_store(&run, n);
  wait_for(&held, n);
}

static void lock_block(unsigned n) {
  (void)n;
  pthread_mutex_lock(&first);
  pthread_mutex_unlock(&first);
}

static bool is_held(const struct told *told) {
  return says(told, BC_CAUSE_LOCK, "futex 0x") && says(told, BC_CAUSE_LOCK, held_by);
}

static void lock_owner(void) {
  go_first();
  unsigned long thread = start_thread(loader, NULL);
  WAIT_FOR(held_by[0] != 0, 20000);
  staged("lock_owner", is_held, have_it_held, lock_block);
  join_thread(thread);
  check_holder(RUNS / 2, "Loader", "hold_the_lock");
  finish();
}

static char deadlock_words[64];
static atomic_int blocked_tid, opposite_tid;

static void timed_lock(pthread_mutex_t *mutex, unsigned ms) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += (long)ms * 1000000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  if (pthread_mutex_timedlock(mutex, &until) == 0) {
    pthread_mutex_unlock(mutex);
  }
}

__attribute__((noinline)) void hold_the_other(unsigned n) {
  pthread_mutex_lock(&second);
  atomic_store(&held, n);
  pthread_mutex_lock(&first);
  pthread_mutex_unlock(&first);
  pthread_mutex_unlock(&second);
  atomic_store(&let_go, n);
}

static void *opposite(void *argument) {
  pthread_setname_np(pthread_self(), "Opposite");
  WAIT_FOR(atomic_load(&blocked_tid) != 0, 20000);
  snprintf(deadlock_words, sizeof deadlock_words, "deadlock: %d → %d → %d", atomic_load(&blocked_tid),
           (int)tid_of_self(), atomic_load(&blocked_tid));
  atomic_store(&opposite_tid, (int)tid_of_self());
  for (unsigned n = 1; n <= RUNS; n++) {
    wait_for(&run, n);
    hold_the_other(n);
  }
  return argument;
}

/* Does the thread wait for this mutex? Its first word is what the kernel is asked to wait for. */
static bool waits_for(int tid, const pthread_mutex_t *mutex) {
  char path[64], text[256], wanted[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
  snprintf(wanted, sizeof wanted, "%d %p ", (int)SYS_futex, (const void *)mutex);
  read_whole(path, text, sizeof text);
  return strncmp(text, wanted, strlen(wanted)) == 0;
}

static void have_half_a_deadlock(unsigned n) {
  wait_for(&let_go, n - 1); /* or it would be kept in the last one */
  pthread_mutex_lock(&first);
  atomic_store(&run, n);
  wait_for(&held, n);
  while (!waits_for(atomic_load(&opposite_tid), &first)) {
    pause_ms(1);
  }
}

static void deadlock_block(unsigned n) {
  (void)n;
  timed_lock(&second, BLOCK_MS);
  pthread_mutex_unlock(&first);
}

static bool is_deadlock(const struct told *told) { return says(told, BC_CAUSE_LOCK, deadlock_words); }

static void deadlock(void) {
  go_first();
  atomic_store(&blocked_tid, (int)tid_of_self());
  unsigned long thread = start_thread(opposite, NULL);
  WAIT_FOR(atomic_load(&opposite_tid) != 0, 20000);
  staged("deadlock", is_deadlock, have_half_a_deadlock, deadlock_block);
  join_thread(thread);
  check_holder(RUNS / 2, "Opposite", "hold_the_other");
  finish();
}

CASES({"spin", spin}, {"asleep", asleep}, {"starved", starved}, {"lock_owner", lock_owner}, {"deadlock", deadlock})
