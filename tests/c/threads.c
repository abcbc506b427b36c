/* All threads with their stacks, when the program asks for them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/crowd.h"
#include "support/dump.h"
#include "support/load.h"
#include "support/procfs.h"

static struct dump dump;

static const char *const own_chain[] = {"bc_threads_dump", "dump_now", "asks_for_dump"};
void asks_for_dump(uint64_t *took_ns);

STAYS void asks_for_dump(uint64_t *took_ns) {
  dump_now(&dump, took_ns);
  __asm__ volatile("");
}

/* How the lines about their states begin. */
static const char *const about[DOINGS] = {
    "state: S (sleeping) in futex", "state: S (sleeping) in read", "state: S (sleeping) in p", "state: S (sleeping) in ",
    "state: R (running)",           "state: R (running)",          "state: S (sleeping) in futex"};

/* All are there, with what must be known of each. */
static void check_all(void) {
  for (unsigned i = 0; i < crowd_count; i++) {
    struct one *one = &crowd[i];
    const struct dumped *found = dump_find(&dump, one->tid);
    CHECK(found != NULL, "thread %u is missing", i);
    CHECK(strcmp(found->name, strchr(one->name, '\n') == NULL ? one->name : "x) R 1?#00 pc") == 0, "%s", found->name);
    CHECK(strncmp(found->about, about[one->doing], strlen(about[one->doing])) == 0 ||
              (one->doing == IN_TIMED_WAITS && strcmp(found->about, "state: R (running)") == 0),
          "%s, not %s", found->about, about[one->doing]);
    CHECK(strstr(found->about, "watched") == NULL, "%s", found->about);
    bool runs = one->doing == SPINNING || one->doing == MASKED;
    CHECK(runs || one->doing == IN_TIMED_WAITS || found->frames >= 3, "%u frames, %s", found->frames, found->about);
    CHECK(one->doing != MASKED || found->frames == 0, "it cannot answer");
    bool is_quiet = one->doing == IN_FUTEX || one->doing == WITH_LOADERS_LOCK;
    bool is_spinning = one->doing == SPINNING && found->frames > 0;
    CHECK((!is_quiet || dump_has(found, quiet_chain, 3)) && (!is_spinning || dump_has(found, spins_chain, 1)), "%.*s",
          (int)(found->end - found->begin), found->begin);
    one->was_caught |= is_spinning;
  }
  if (crowd_loop_tid != 0) {
    CHECK(dump.thread[0].tid == crowd_loop_tid, "the watched one is not first");
    CHECK(strcmp(dump.thread[0].name, "loop-thread") == 0, "%s", dump.thread[0].name);
    CHECK(strcmp(dump.thread[0].about, "state: S (sleeping) in futex, watched as \"the loop\"") == 0, "%s",
          dump.thread[0].about);
    CHECK(dump_has(&dump.thread[0], loop_chain, 2), "%.*s", (int)(dump.thread[0].end - dump.thread[0].begin),
          dump.thread[0].begin);
  }
  const struct dumped *self = dump_find(&dump, tid_of_self());
  CHECK(self != NULL && dump_has(self, own_chain, 3),
        "the caller: %.*s", self == NULL ? 0 : (int)(self->end - self->begin), self == NULL ? "" : self->begin);
  for (unsigned i = 0; i < dump.threads; i++) {
    bool is_own = strstr(dump.thread[i].about, ", internal") != NULL;
    CHECK(is_own == (i + 3 >= dump.threads), "place %u of %u: %s, %s", i, dump.threads, dump.thread[i].name,
          dump.thread[i].about);
  }
}

/* Time that a thread has been ready to run and has had no processor. */
static uint64_t queued_ns(int32_t tid) {
  char path[64], text[128];
  unsigned long long ran = 0, queued = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", tid);
  read_whole(path, text, sizeof text);
  CHECK(sscanf(text, "%llu %llu", &ran, &queued) == 2, "%s: %s", path, text);
  return queued;
}

static int32_t monitor_tid(void) {
  for (unsigned i = 0; i < dump.threads; i++) {
    if (strcmp(dump.thread[i].name, "bc-monitor") == 0) {
      return dump.thread[i].tid;
    }
  }
  CHECK(false, "no monitor among %u threads", dump.threads);
}

static unsigned caught_once(void) {
  unsigned caught = 0;
  for (unsigned i = 0; i < crowd_count; i++) {
    caught += crowd[i].was_caught;
  }
  return caught;
}

/* Dumps at least five times, until so many of the running threads have been caught once. Each takes less than a second,
 * but for the time in which others have the processors. */
static void dump_until(unsigned wanted, const char *what) {
  asks_for_dump(NULL);
  int32_t monitor = monitor_tid();
  uint64_t best_ns = UINT64_MAX, worst_ns = 0, own_ns = 0, until = now_ns() + 100000000000ull;
  unsigned caught = 0, dumps = 0;
  do {
    uint64_t took_ns, before_ns = queued_ns(monitor) + queued_ns(tid_of_self());
    asks_for_dump(&took_ns);
    uint64_t lost_ns = queued_ns(monitor) + queued_ns(tid_of_self()) - before_ns;
    uint64_t rest_ns = took_ns > lost_ns ? took_ns - lost_ns : 0;
    best_ns = took_ns < best_ns ? took_ns : best_ns;
    worst_ns = took_ns > worst_ns ? took_ns : worst_ns;
    own_ns = rest_ns > own_ns ? rest_ns : own_ns;
    check_all();
    caught = caught_once();
    dumps++;
  } while ((caught < wanted || dumps < 5) && now_ns() < until);
  printf("%s: %u dumps of %u threads in %.1f to %.1f ms, at most %.1f ms of that with a processor at hand; %u running ones "
         "caught at least once\n",
         what, dumps, dump.threads, best_ns / 1e6, worst_ns / 1e6, own_ns / 1e6, caught);
  CHECK(caught >= wanted, "%u caught", caught);
  CHECK(own_ns < 1000000000, "%.1f ms", own_ns / 1e6);
}

/* Fifty threads of every kind. */
static void content(void) {
  bc_config config = config_of(60000);
  install_and_start(&config);
  crowd_of_all();
  dump_until(2, "all kinds");
  CHECK(dump.announced == threads() && dump.threads == dump.announced && dump.more == 0, "%u of %u, %u announced",
        dump.threads, threads(), dump.announced);
  bc_health end = health();
  printf("%u timed waits, %u cut short; %d signals, %d waits cut by its own count\n", atomic_load(&crowd_waits),
         atomic_load(&crowd_waits_cut), (int)end.signals_sent, (int)end.waits_cut);
  CHECK(atomic_load(&crowd_waits_cut) == 0 && end.waits_cut == 0, "waits were cut short");
  CHECK(end.blocks_seen == 0, "a block");
  crowd_end();
  CHECK_OK(bc_uninstall());
}

static atomic_uint come_and_gone;
static void *short_life(void *argument) {
  atomic_fetch_add(&come_and_gone, 1);
  return argument;
}
static void *starter(void *argument) {
  while (!atomic_load(&crowd_over)) {
    join_thread(start_thread(short_life, NULL));
  }
  return argument;
}

/* Threads that end while they are listed and looked at, with the machine busy. */
static void under_load(void) {
  bc_config config = config_of(60000);
  install_and_start(&config);
  crowd_of_all();
  unsigned long starters[2] = {start_thread(starter, NULL), start_thread(starter, NULL)};
  load_every_core(2);
  dump_until(1, "under load");
  printf("%u threads have come and gone\n", atomic_load(&come_and_gone));
  CHECK(atomic_load(&come_and_gone) > 10, "too few");
  CHECK(atomic_load(&crowd_waits_cut) == 0 && health().waits_cut == 0, "waits were cut short");
  crowd_end();
  join_thread(starters[0]);
  join_thread(starters[1]);
  CHECK_OK(bc_uninstall());
}

/* Far more threads that run than processors: those that have none keep nobody waiting. */
static void fifty_running(void) {
  bc_config config = config_of(60000);
  install_and_start(&config);
  crowd_of(SPINNING, 50);
  dump_until(0, "all running");
  crowd_end();
  CHECK_OK(bc_uninstall());
}

/* What has no room is counted; the calling thread always has some. */
static void *dump_when_last(void *argument) {
  uint64_t took_ns;
  asks_for_dump(&took_ns);
  printf("%u of %u threads in %.1f ms, %u more\n", dump.threads, threads(), took_ns / 1e6, dump.more);
  CHECK(dump.threads == 1024 && dump.threads + dump.more == threads() && dump.announced == threads(), "%u and %u of %u",
        dump.threads, dump.more, threads());
  const struct dumped *self = dump_find(&dump, tid_of_self());
  CHECK(self != NULL && dump_has(self, own_chain, 3), "the caller is missing");
  return argument;
}

static void too_many(void) {
  bc_config config = config_of(60000);
  install_and_start(&config);
  crowd_of(IN_READ, 1100);
  join_thread(start_thread(dump_when_last, NULL));
  crowd_end();
  CHECK_OK(bc_uninstall());
}

/* The main thread has ended, and something of it is still there. */
static void *after_main(void *argument) {
  (void)argument;
  bc_config config = config_of(60000);
  install_and_start(&config);
  uint64_t until = now_ns() + 60000000000ull;
  const struct dumped *main_one;
  do {
    asks_for_dump(NULL);
    main_one = dump_find(&dump, (int32_t)getpid());
    CHECK(main_one != NULL && now_ns() < until, "the main thread is missing, or does not end");
  } while (main_one->state != 'Z');
  CHECK(main_one->frames == 0 && strcmp(main_one->about, "state: Z (ended)") == 0, "%s", main_one->about);
  CHECK_OK(bc_uninstall());
  exit(0);
}

static void main_gone(void) {
  start_thread(after_main, NULL);
  pthread_exit(NULL);
}

CASES({"content", content}, {"under_load", under_load}, {"fifty_running", fifty_running}, {"too_many", too_many},
      {"main_gone", main_gone})
