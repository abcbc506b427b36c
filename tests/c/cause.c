/* Staged causes: each is found in nearly every one of a hundred short blocks, and said in words. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/json.h"
#include "support/procfs.h"

#define RUNS 100
#define LIMIT_MS 30
#define BLOCK_MS 60

static const char *folder;

/* What other threads do for a run: told by a number that they wait for. */
static atomic_uint run;
static atomic_bool over;

static void wait_for_run(unsigned n) {
  while (atomic_load(&run) < n && !atomic_load(&over)) {
    pause_ms(1);
  }
}

static int32_t tid_of_self(void) {
  return (int32_t)syscall(SYS_gettid);
}

/* Blocks `RUNS` times and counts the right ones: of this cause, with these words in the detail. */
static void staged(const char *name, bc_cause cause, const char *words, const char *more, void (*block)(unsigned n)) {
  bc_config config = config_of(LIMIT_MS);
  folder = fresh_directory(name);
  config.report_dir = folder;
  config.report_formats = BC_FORMAT_JSON;
  install_and_start(&config);
  bc_loop *loop = watched(name);
  for (unsigned n = 1; n <= RUNS; n++) {
    bc_dispatch_begin(loop, name, n);
    block(n);
    bc_dispatch_end(loop);
    flush();
  }
  atomic_store(&over, true);
  unsigned right = 0, worded = 0, early = 0, seen = blocks_in(BC_BLOCK_ENDED);
  const struct told *wrong = NULL;
  for (unsigned n = 1; n <= RUNS; n++) {
    if (blocks_tagged(BC_BLOCK_ENDED, n) == 0) {
      continue;
    }
    const struct told *told = blocks_get(BC_BLOCK_ENDED, n);
    bool is_right = told->cause == cause;
    bool is_worded = strstr(told->detail, words) != NULL && strstr(told->detail, more) != NULL;
    right += is_right;
    worded += is_right && is_worded;
    wrong = is_right && is_worded ? wrong : told;
    if (blocks_tagged(BC_BLOCK_ONGOING, n) == 1) {
      early += blocks_get(BC_BLOCK_ONGOING, n)->cause == cause;
    }
  }
  printf("%s: %u blocks, cause right in %u, in words in %u, already while it went on in %u\n", name, seen, right, worded,
         early);
  printf("  for example: %s\n", blocks_get(BC_BLOCK_ENDED, RUNS / 2)->detail);
  if (wrong != NULL) {
    printf("  not right: %u, %s\n", wrong->cause, wrong->detail);
  }
  CHECK(seen == RUNS, "%u blocks", seen);
  CHECK(right >= 95 && worded >= 95, "%u and %u right", right, worded);
}

static void finish(void) {
  CHECK_OK(bc_uninstall());
}

/* The report of one of the blocks, whole. */
static const char *report_of(unsigned n) {
  static char text[1 << 20];
  const struct told *told = blocks_get(BC_BLOCK_ENDED, n);
  CHECK(read_whole(told->path, text, sizeof text) > 0, "nothing in %s", told->path);
  CHECK(json_valid(text), "no JSON: %s", told->path);
  return text;
}

static void spin_block(unsigned n) {
  (void)n;
  spin_ms(BLOCK_MS);
}

static void spin(void) {
  staged("spin", BC_CAUSE_RUNNING, "running, ", " % of one processor", spin_block);
  finish();
}

static void sleep_block(unsigned n) {
  (void)n;
  pause_ms(BLOCK_MS);
}

static void asleep(void) {
  staged("asleep", BC_CAUSE_SLEEP, "clock_nanosleep of 60 ms", "", sleep_block);
  finish();
}

static void pin(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "not pinned");
}

static void *hog(void *argument) {
  pthread_setname_np(pthread_self(), "hog");
  pin();
  setpriority(PRIO_PROCESS, (id_t)tid_of_self(), -10);
  for (unsigned n = 1; !atomic_load(&over); n++) {
    wait_for_run(n);
    spin_ms(BLOCK_MS);
  }
  return argument;
}

/* Little to do, and others have the only processor that may do it. */
static void starve_block(unsigned n) {
  atomic_store(&run, n);
  uint64_t until = now_ns() + BLOCK_MS * 1000000ull;
  while (now_ns() < until) {
  }
}

static void *starved_thread(void *argument) {
  pin();
  staged("starved", BC_CAUSE_STARVED, "ready to run, ", "busiest: ", starve_block);
  return argument;
}

static void starved(void) {
  for (int i = 0; i < 4; i++) {
    start_thread(hog, NULL);
  }
  join_thread(start_thread(starved_thread, NULL));
  CHECK(strstr(blocks_get(BC_BLOCK_ENDED, RUNS / 2)->detail, "'hog'") != NULL, "the hog is not named");
  CHECK(strstr(report_of(RUNS / 2), "\"name\":\"hog\"") != NULL, "the hog is not in the report");
  finish();
}

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint held;
static char held_by[64];

__attribute__((noinline)) void hold_the_lock(unsigned n) {
  pthread_mutex_lock(&first);
  atomic_store(&held, n);
  pause_ms(BLOCK_MS + 5);
  pthread_mutex_unlock(&first);
}

static void *loader(void *argument) {
  pthread_setname_np(pthread_self(), "Loader");
  snprintf(held_by, sizeof held_by, "held by tid %d 'Loader'", (int)tid_of_self());
  for (unsigned n = 1; n <= RUNS; n++) {
    wait_for_run(n);
    hold_the_lock(n);
  }
  return argument;
}

static void lock_block(unsigned n) {
  atomic_store(&run, n);
  while (atomic_load(&held) < n) {
  }
  pthread_mutex_lock(&first);
  pthread_mutex_unlock(&first);
}

static void lock_owner(void) {
  unsigned long thread = start_thread(loader, NULL);
  WAIT_FOR(held_by[0] != 0, 20000);
  staged("lock_owner", BC_CAUSE_LOCK, "futex 0x", held_by, lock_block);
  join_thread(thread);
  finish();
}

static char deadlock_words[64];
static atomic_int blocked_tid;

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

static void *opposite(void *argument) {
  WAIT_FOR(atomic_load(&blocked_tid) != 0, 20000);
  snprintf(deadlock_words, sizeof deadlock_words, "deadlock: %d → %d → %d", atomic_load(&blocked_tid),
           (int)tid_of_self(), atomic_load(&blocked_tid));
  for (unsigned n = 1; n <= RUNS; n++) {
    wait_for_run(n);
    pthread_mutex_lock(&second);
    atomic_store(&held, n);
    timed_lock(&first, 4 * BLOCK_MS);
    pthread_mutex_unlock(&second);
  }
  return argument;
}

static void deadlock_block(unsigned n) {
  pthread_mutex_lock(&first);
  atomic_store(&run, n);
  while (atomic_load(&held) < n) {
  }
  timed_lock(&second, BLOCK_MS);
  pthread_mutex_unlock(&first);
}

static void deadlock(void) {
  atomic_store(&blocked_tid, (int)tid_of_self());
  unsigned long thread = start_thread(opposite, NULL);
  WAIT_FOR(deadlock_words[0] != 0, 20000);
  staged("deadlock", BC_CAUSE_LOCK, "futex 0x", deadlock_words, deadlock_block);
  join_thread(thread);
  finish();
}

static int ends[2];

/* Answers each run after a while. */
static void *slow_peer(void *argument) {
  for (unsigned n = 1; n <= RUNS; n++) {
    wait_for_run(n);
    pause_ms(BLOCK_MS);
    CHECK(write(ends[1], "x", 1) == 1, "write");
  }
  return argument;
}

static void read_block(unsigned n) {
  char byte;
  atomic_store(&run, n);
  CHECK(read(ends[0], &byte, 1) == 1, "read");
}

static void slow_pipe(void) {
  CHECK(pipe(ends) == 0, "pipe");
  start_thread(slow_peer, NULL);
  staged("slow_pipe", BC_CAUSE_IPC, "read(pipe, fd ", "", read_block);
  finish();
}

static void recv_block(unsigned n) {
  char byte;
  atomic_store(&run, n);
  CHECK(recv(ends[0], &byte, 1, 0) == 1, "recv");
}

static void socket_wait(void) {
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  start_thread(slow_peer, NULL);
  staged("socket_wait", BC_CAUSE_IPC, "recvfrom(socket, fd ", "", recv_block);
  finish();
}

CASES({"spin", spin}, {"asleep", asleep}, {"starved", starved}, {"lock_owner", lock_owner}, {"deadlock", deadlock},
      {"slow_pipe", slow_pipe}, {"socket_wait", socket_wait})
