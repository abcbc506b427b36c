/* What is counted of every dispatch. */
#include <android/looper.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"

#define MS UINT64_C(1000000)

static bc_loop_stats get(bc_loop *loop) {
  bc_loop_stats stats = {.struct_size = sizeof stats};
  CHECK_OK(bc_loop_stats_get(loop, &stats));
  return stats;
}

static bc_loop_stats take(bc_loop *loop) {
  bc_loop_stats stats = {.struct_size = sizeof stats};
  CHECK_OK(bc_loop_stats_take(loop, &stats));
  return stats;
}

static uint64_t in_histogram(const bc_loop_stats *stats) {
  uint64_t sum = 0;
  for (unsigned i = 0; i < BC_HISTOGRAM_BUCKETS; i++) {
    sum += stats->histogram[i];
  }
  return sum;
}

/* Where a bucket begins, by the rule in the header. */
static double begin_of(unsigned bucket) {
  static const double eighths[] = {8, 9, 10, 11, 12, 13.5, 15};
  if (bucket == 0) {
    return 0;
  }
  double begin = 256 * eighths[(bucket - 1) % 7] / 8;
  for (unsigned q = (bucket - 1) / 7; q > 0; q--) {
    begin *= 2;
  }
  return begin;
}

/* The bucket that a duration is in. */
static unsigned bucket_of(uint64_t ns) {
  unsigned bucket = 0;
  while (bucket < BC_HISTOGRAM_BUCKETS - 1 && begin_of(bucket + 1) <= (double)ns) {
    bucket++;
  }
  return bucket;
}

#define CHECK_NEAR(value, expected, share)                                                                        \
  do {                                                                                                            \
    double near_value = (double)(value), near_expected = (double)(expected);                                      \
    CHECK(near_value >= near_expected * (1 - (share)) && near_value <= near_expected * (1 + (share)),             \
          "%s is %.0f, not %.0f", #value, near_value, near_expected);                                             \
  } while (0)

#define KNOWN 521

/* What the program has measured itself, in the order of the dispatches. */
static uint64_t measured[KNOWN];

static int ascending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static bc_loop *start_watching(unsigned threshold_ms) {
  bc_config config = config_of(threshold_ms);
  install_and_start(&config);
  return watched("counted");
}

/* 500 of 2 ms, 20 of 20 ms and one of 800 ms, beside what the program measures inside of them. */
static void known_durations(void) {
  bc_loop *loop = start_watching(1000);
  uint64_t begin = now_ns(), busy = 0;
  unsigned slow = 0, frozen = 0;
  for (int i = 0; i < KNOWN; i++) {
    unsigned ms = i < 500 ? 2 : i < 520 ? 20 : 800;
    bc_dispatch_begin(loop, "known", 0);
    uint64_t from = now_ns();
    spin_ms(ms);
    measured[i] = now_ns() - from;
    bc_dispatch_end(loop);
    busy += measured[i];
    slow += measured[i] > 16700000;
    frozen += measured[i] > 700 * MS;
  }
  bc_loop_stats stats = get(loop);
  uint64_t lasted = now_ns() - begin;
  qsort(measured, KNOWN, sizeof measured[0], ascending);
  CHECK(stats.dispatches == KNOWN && in_histogram(&stats) == KNOWN, "%d dispatches, %d in the histogram",
        (int)stats.dispatches, (int)in_histogram(&stats));
  CHECK(stats.slow_count == slow && slow >= 21, "%d slow, not %u", (int)stats.slow_count, slow);
  CHECK(stats.frozen_count == frozen && frozen >= 1, "%d frozen, not %u", (int)stats.frozen_count, frozen);
  CHECK_NEAR(stats.busy_ns, busy, 0.01);
  CHECK_NEAR(stats.observed_ns, lasted, 0.02);
  CHECK_NEAR(stats.max_ns, measured[KNOWN - 1], 0.001);
  CHECK_NEAR(stats.p50_ns, measured[KNOWN / 2], 0.065);
  CHECK_NEAR(stats.p90_ns, measured[(KNOWN * 90 + 99) / 100 - 1], 0.065);
  CHECK_NEAR(stats.p99_ns, measured[(KNOWN * 99 + 99) / 100 - 1], 0.065);
  CHECK(stats.blocks == 0 && stats.missed_frames == 0, "%d blocks", (int)stats.blocks);
  unsigned longest = bucket_of(stats.max_ns);
  CHECK(stats.histogram[longest] == 1, "%d in bucket %u", (int)stats.histogram[longest], longest);
  CHECK_OK(bc_uninstall());
}

/* Inner dispatches count themselves; only the outermost makes the loop busy. */
static void nested(void) {
  bc_loop *loop = start_watching(1000);
  uint64_t begin = now_ns();
  for (int i = 0; i < 20; i++) {
    bc_dispatch_begin(loop, NULL, 0);
  }
  spin_ms(20);
  for (int i = 0; i < 20; i++) {
    bc_dispatch_end(loop);
  }
  uint64_t lasted = now_ns() - begin;
  bc_loop_stats stats = take(loop);
  CHECK(stats.dispatches == 20 && stats.slow_count == 20, "%d dispatches, %d slow", (int)stats.dispatches,
        (int)stats.slow_count);
  CHECK(stats.busy_ns >= 20 * MS && stats.busy_ns <= lasted, "%d ns busy", (int)stats.busy_ns);

  /* Deeper than it keeps a begin for: balanced and counted. */
  for (int i = 0; i < 50; i++) {
    bc_dispatch_begin(loop, NULL, 0);
  }
  for (int i = 0; i < 50; i++) {
    bc_dispatch_end(loop);
  }
  stats = take(loop);
  CHECK(stats.dispatches == 50 && in_histogram(&stats) == 32, "%d dispatches, %d in the histogram",
        (int)stats.dispatches, (int)in_histogram(&stats));

  /* Closed by idle. */
  begin = now_ns();
  bc_dispatch_begin(loop, NULL, 0);
  bc_dispatch_begin(loop, NULL, 0);
  spin_ms(20);
  bc_loop_idle(loop);
  lasted = now_ns() - begin;
  stats = take(loop);
  CHECK(stats.dispatches == 2 && stats.slow_count == 2, "%d dispatches, %d slow", (int)stats.dispatches,
        (int)stats.slow_count);
  CHECK(stats.busy_ns >= 20 * MS && stats.busy_ns <= lasted, "%d ns busy", (int)stats.busy_ns);
  CHECK_OK(bc_uninstall());
}

static int on_event(int fd, int events, void *data) {
  uint64_t value;
  (void)events;
  (void)data;
  CHECK(read(fd, &value, sizeof value) == sizeof value, "read");
  spin_ms(5);
  return 1;
}

/* A poll's waiting is nobody's time, also inside a dispatch; callbacks and the time between polls are dispatches. */
static void polls(void) {
  bc_loop *loop = start_watching(1000);
  ALooper *looper = ALooper_prepare(0);
  int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  CHECK(looper && fd >= 0 && bc_looper_add_fd(looper, fd, 0, ALOOPER_EVENT_INPUT, on_event, NULL) == 1, "looper");
  uint64_t one = 1;
  bc_dispatch_begin(loop, "outer", 0);
  CHECK(bc_looper_poll_once(300, NULL, NULL, NULL) == ALOOPER_POLL_TIMEOUT, "poll");
  spin_ms(5);
  CHECK(write(fd, &one, sizeof one) == sizeof one, "write");
  CHECK(bc_looper_poll_once(-1, NULL, NULL, NULL) == ALOOPER_POLL_CALLBACK, "poll");
  bc_dispatch_end(loop);
  CHECK(bc_looper_poll_once(300, NULL, NULL, NULL) == ALOOPER_POLL_TIMEOUT, "poll");
  bc_loop_stats stats = take(loop);
  /* From poll to poll twice, the callback, and the outer one, which the second of the two overlaps. */
  CHECK(stats.dispatches == 4, "%d dispatches", (int)stats.dispatches);
  CHECK(stats.max_ns >= 10 * MS && stats.max_ns < 200 * MS, "%d ns: waiting is no part of it", (int)stats.max_ns);
  CHECK(stats.busy_ns >= stats.max_ns && stats.busy_ns < 200 * MS, "%d ns busy", (int)stats.busy_ns);
  CHECK(stats.observed_ns >= 600 * MS, "%d ns observed", (int)stats.observed_ns);

  /* Without any dispatch around them. */
  for (int i = 0; i < 10; i++) {
    CHECK(write(fd, &one, sizeof one) == sizeof one, "write");
    CHECK(bc_looper_poll_once(-1, NULL, NULL, NULL) == ALOOPER_POLL_CALLBACK, "poll");
  }
  bc_loop_idle(loop);
  stats = take(loop);
  CHECK(stats.dispatches == 21, "%d dispatches", (int)stats.dispatches);
  CHECK(stats.busy_ns >= 50 * MS && stats.busy_ns <= stats.observed_ns, "%d ns busy", (int)stats.busy_ns);
  close(fd);
  CHECK_OK(bc_uninstall());
}

/* What a pause or a stop has cut counts without its duration. */
static void cut(void) {
  bc_loop *loop = start_watching(1000);
  /* One that is whole, before. */
  bc_dispatch_begin(loop, NULL, 0);
  spin_ms(1);
  bc_dispatch_end(loop);
  bc_dispatch_begin(loop, NULL, 0);
  CHECK_OK(bc_pause());
  CHECK(in_histogram(&(bc_loop_stats[]){take(loop)}[0]) == 1, "one whole dispatch");
  spin_ms(20);
  CHECK_OK(bc_resume());
  bc_dispatch_end(loop);
  bc_loop_stats stats = get(loop);
  CHECK(stats.dispatches == 1 && in_histogram(&stats) == 0 && stats.busy_ns == 0 && stats.max_ns == 0 &&
            stats.slow_count == 0 && stats.p50_ns == 0,
        "%d dispatches, %d in the histogram, %d ns", (int)stats.dispatches, (int)in_histogram(&stats),
        (int)stats.max_ns);
  CHECK_OK(bc_pause());
  sleep_ms(200);
  uint64_t paused = get(loop).observed_ns;
  sleep_ms(50);
  CHECK(get(loop).observed_ns == paused && paused < 200 * MS, "%d ns observed", (int)paused);
  bc_dispatch_begin(loop, NULL, 0);
  CHECK_OK(bc_resume());
  CHECK_OK(bc_stop());
  bc_dispatch_end(loop);
  CHECK_OK(bc_start());
  stats = take(loop);
  CHECK(stats.dispatches == 2 && in_histogram(&stats) == 0, "%d dispatches", (int)stats.dispatches);

  bc_dispatch_begin(loop, NULL, 0);
  spin_ms(1);
  bc_dispatch_end(loop);
  stats = get(loop);
  CHECK(stats.dispatches == 1 && in_histogram(&stats) == 1 && stats.max_ns >= MS, "%d ns", (int)stats.max_ns);
  CHECK_OK(bc_uninstall());
}

/* The process is stopped by a child of its own, for so long. */
static void stop_for(unsigned ms) {
  pid_t child = fork();
  CHECK(child >= 0, "fork");
  if (child == 0) {
    pid_t parent = getppid();
    kill(parent, SIGSTOP);
    usleep(ms * 1000);
    kill(parent, SIGCONT);
    _exit(0);
  }
  CHECK(waitpid(child, NULL, 0) == child, "waitpid");
}

/* So has a stop of the process, whether the dispatch goes on afterwards or not. */
static void stopped(void) {
  bc_loop *loop = start_watching(1000);
  for (int goes_on = 0; goes_on < 2; goes_on++) {
    for (int i = 0; i < 4; i++) {
      bc_dispatch_begin(loop, NULL, 0);
      spin_ms(1);
      bc_dispatch_end(loop);
    }
    bc_dispatch_begin(loop, NULL, 0);
    bc_dispatch_begin(loop, NULL, 0);
    stop_for(900);
    if (goes_on) {
      spin_ms(200);
    }
    bc_dispatch_end(loop);
    bc_dispatch_end(loop);
    WAIT_FOR(get(loop).frozen_count == 0, 5000);
    bc_loop_stats stats = take(loop);
    CHECK(stats.dispatches == 6 && in_histogram(&stats) == 4 && stats.slow_count == 0,
          "%d dispatches, %d in the histogram, %d slow", (int)stats.dispatches, (int)in_histogram(&stats),
          (int)stats.slow_count);
    CHECK(stats.max_ns >= MS && stats.max_ns < 200 * MS && stats.busy_ns < 200 * MS, "%d us, %d us busy",
          (int)(stats.max_ns / 1000), (int)(stats.busy_ns / 1000));
  }
  CHECK_OK(bc_uninstall());
}

static void beats(void) {
  bc_loop *loop = start_watching(1000);
  bc_loop_beat(loop);
  uint64_t begin = now_ns();
  for (int i = 0; i < 10; i++) {
    sleep_ms(20);
    bc_loop_beat(loop);
  }
  uint64_t lasted = now_ns() - begin;
  bc_loop_idle(loop);
  sleep_ms(100);
  bc_loop_beat(loop);
  bc_loop_stats stats = get(loop);
  CHECK(stats.dispatches == 10 && stats.slow_count == 10, "%d gaps, %d slow", (int)stats.dispatches,
        (int)stats.slow_count);
  CHECK(stats.max_ns >= 20 * MS && stats.max_ns <= lasted && stats.busy_ns == 0, "%d ns", (int)stats.max_ns);
  CHECK_OK(bc_uninstall());
}

/* Taking begins anew: counts, longest, blocks and time. */
static void taken(void) {
  bc_loop *loop = start_watching(100);
  blocking_dispatch(loop, "block", 1, 150);
  for (int i = 0; i < 9; i++) {
    bc_dispatch_begin(loop, NULL, 0);
    spin_ms(1);
    bc_dispatch_end(loop);
  }
  flush();
  bc_loop_stats before = get(loop), first = take(loop), empty = get(loop);
  CHECK(first.dispatches == 10 && first.blocks == 1 && first.max_ns >= 150 * MS && first.slow_count >= 1,
        "%d dispatches, %d blocks", (int)first.dispatches, (int)first.blocks);
  CHECK(before.dispatches == 10 && before.max_ns == first.max_ns && before.busy_ns == first.busy_ns, "get differs");
  CHECK(empty.dispatches == 0 && empty.blocks == 0 && empty.max_ns == 0 && empty.busy_ns == 0 &&
            empty.slow_count == 0 && empty.p99_ns == 0 && in_histogram(&empty) == 0 &&
            empty.observed_ns < 100 * MS,
        "%d dispatches are left", (int)empty.dispatches);
  bc_dispatch_begin(loop, NULL, 0);
  spin_ms(3);
  bc_dispatch_end(loop);
  bc_loop_stats second = get(loop);
  CHECK(second.dispatches == 1 && second.max_ns >= 3 * MS && second.max_ns < 100 * MS, "%d ns", (int)second.max_ns);

  /* A loop that is watched anew begins with nothing. */
  CHECK_OK(bc_loop_unwatch(loop));
  CHECK_STATUS(bc_loop_stats_get(loop, &second), BC_ERROR_INVALID_ARGUMENT);
  loop = watched("again");
  CHECK(get(loop).dispatches == 0 && get(loop).blocks == 0, "not new");
  CHECK_OK(bc_uninstall());
  CHECK_STATUS(bc_loop_stats_get(loop, &second), BC_ERROR_INVALID_STATE);
}

static atomic_int told_full;

static void count_full(bc_log_level level, const char *message, void *user_data) {
  (void)user_data;
  if (strstr(message, "queue is never empty")) {
    CHECK(level == BC_LOG_WARN && strstr(message, "\"full\""), "level %d: %s", (int)level, message);
    printf("%s\n", message);
    atomic_fetch_add(&told_full, 1);
  }
}

static void dispatch_for(bc_loop *loop, unsigned ms, unsigned rest_ms) {
  uint64_t end = now_ns() + ms * MS;
  while (now_ns() < end) {
    bc_dispatch_begin(loop, NULL, 0);
    spin_ms(10);
    bc_dispatch_end(loop);
    if (rest_ms > 0) {
      sleep_ms(rest_ms);
    }
  }
}

/* A loop that always has something to do is told of once, though no dispatch is long; one that rests is not. */
static void never_empty(void) {
  CHECK_OK(bc_set_log_handler(count_full, NULL));
  bc_config config = config_of(1000);
  install_and_start(&config);
  bc_loop *loop = watched("full");
  dispatch_for(loop, 7000, 10);
  CHECK(atomic_load(&told_full) == 0, "told of a loop that rests half of the time");
  uint64_t end = now_ns() + 30000 * MS;
  while (atomic_load(&told_full) == 0 && now_ns() < end) {
    dispatch_for(loop, 500, 0);
  }
  CHECK(atomic_load(&told_full) == 1, "not told after 30 s");
  dispatch_for(loop, 7000, 0);
  CHECK(atomic_load(&told_full) == 1, "told %d times", atomic_load(&told_full));
  CHECK_OK(bc_uninstall());
}

#define RACED 1000000

static atomic_int dispatching;

static void *dispatch_many(void *argument) {
  bc_loop *loop = watched("raced");
  *(bc_loop **)argument = loop;
  atomic_store(&dispatching, 1);
  WAIT_FOR(atomic_load(&dispatching) == 2, 20000);
  for (int i = 0; i < RACED / 2; i++) {
    bc_dispatch_begin(loop, NULL, 0);
    bc_dispatch_begin(loop, NULL, 0);
    bc_dispatch_end(loop);
    bc_dispatch_end(loop);
  }
  atomic_store(&dispatching, 3);
  WAIT_FOR(atomic_load(&dispatching) == 4, 20000);
  return NULL;
}

static void add(bc_loop_stats *sum, const bc_loop_stats *part) {
  sum->dispatches += part->dispatches;
  sum->busy_ns += part->busy_ns;
  sum->observed_ns += part->observed_ns;
  for (unsigned i = 0; i < BC_HISTOGRAM_BUCKETS; i++) {
    sum->histogram[i] += part->histogram[i];
  }
}

/* Takes by another thread while the loop dispatches: nothing is lost, nothing told twice. */
static void raced(void) {
  bc_config config = config_of(1000);
  install_and_start(&config);
  bc_loop *loop = NULL;
  unsigned long thread = start_thread(dispatch_many, &loop);
  WAIT_FOR(atomic_load(&dispatching) == 1, 20000);
  uint64_t begin = now_ns();
  bc_loop_stats sum = {0};
  unsigned takes = 0, with_some = 0;
  atomic_store(&dispatching, 2);
  do {
    bc_loop_stats part = take(loop);
    CHECK(part.dispatches == in_histogram(&part), "%d dispatches, %d in the histogram", (int)part.dispatches,
          (int)in_histogram(&part));
    CHECK(part.dispatches == 0 || part.max_ns >= part.p99_ns, "the longest is %d ns, of 99 in 100 %d",
          (int)part.max_ns, (int)part.p99_ns);
    add(&sum, &part);
    takes++;
    with_some += part.dispatches > 0;
  } while (atomic_load(&dispatching) == 2);
  WAIT_FOR(atomic_load(&dispatching) == 3, 60000);
  bc_loop_stats last = get(loop);
  add(&sum, &last);
  uint64_t lasted = now_ns() - begin;
  printf("%u takes, %u of them with dispatches\n", takes, with_some);
  CHECK(with_some > 10, "only %u takes had any", with_some);
  CHECK(sum.dispatches == RACED && in_histogram(&sum) == RACED, "%d dispatches, %d in the histogram",
        (int)sum.dispatches, (int)in_histogram(&sum));
  CHECK(sum.busy_ns <= sum.observed_ns && sum.busy_ns > 0, "%d us busy of %d", (int)(sum.busy_ns / 1000),
        (int)(sum.observed_ns / 1000));
  CHECK(sum.observed_ns + 500 * MS > lasted, "%d us observed", (int)(sum.observed_ns / 1000));
  atomic_store(&dispatching, 4);
  join_thread(thread);
  CHECK_OK(bc_uninstall());
}

/* Not a byte beyond what the caller has, and none of a size that never was. */
static void sizes(void) {
  struct {
    bc_loop_stats stats;
    unsigned char tail[64];
  } larger, smaller;
  bc_loop *loop = start_watching(1000);
  memset(&larger, 0xa5, sizeof larger);
  larger.stats.struct_size = sizeof larger;
  CHECK_OK(bc_loop_stats_get(loop, &larger.stats));
  CHECK(larger.stats.struct_size == sizeof larger && larger.stats.dispatches == 0, "%d", (int)larger.stats.dispatches);
  for (unsigned i = 0; i < sizeof larger.tail; i++) {
    CHECK(larger.tail[i] == 0xa5, "byte %u of the tail was written", i);
  }
  memset(&smaller, 0xa5, sizeof smaller);
  smaller.stats.struct_size = sizeof smaller.stats - 1;
  CHECK_STATUS(bc_loop_stats_take(loop, &smaller.stats), BC_ERROR_INVALID_ARGUMENT);
  smaller.stats.struct_size = 0;
  CHECK_STATUS(bc_loop_stats_get(loop, &smaller.stats), BC_ERROR_INVALID_ARGUMENT);
  CHECK(smaller.stats.dispatches == UINT64_C(0xa5a5a5a5a5a5a5a5), "written all the same");
  CHECK_STATUS(bc_loop_stats_get(loop, NULL), BC_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(bc_loop_stats_get(NULL, &larger.stats), BC_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(bc_loop_stats_take((bc_loop *)&larger, &larger.stats), BC_ERROR_INVALID_ARGUMENT);
  CHECK_OK(bc_uninstall());
  CHECK_STATUS(bc_loop_stats_get(loop, &larger.stats), BC_ERROR_INVALID_STATE);
}

CASES({"known_durations", known_durations}, {"nested", nested}, {"polls", polls}, {"cut", cut}, {"stopped", stopped}, {"beats", beats},
      {"taken", taken}, {"never_empty", never_empty}, {"raced", raced}, {"sizes", sizes})
