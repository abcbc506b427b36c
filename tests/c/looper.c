/* The looper calls on the genuine Looper: watched, and otherwise exactly what ALooper_* are. */
#include <android/looper.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"

static ALooper *looper;

static int event(void) {
  int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  CHECK(fd >= 0, "no eventfd");
  return fd;
}

static void signal_event(int fd) {
  uint64_t one = 1;
  CHECK(write(fd, &one, sizeof one) == sizeof one, "write");
}

static void clear_event(int fd) {
  uint64_t value;
  CHECK(read(fd, &value, sizeof value) == sizeof value, "read");
}

struct callback {
  int calls, result, fd, events;
  unsigned block_ms;
};

static int callback(int fd, int events, void *data) {
  struct callback *mine = data;
  clear_event(fd);
  mine->calls++;
  mine->fd = fd;
  mine->events = events;
  spin_ms(mine->block_ms);
  return mine->result;
}

static void setup(uint32_t threshold_ms) {
  bc_config config = config_of(threshold_ms);
  install_and_start(&config);
  looper = ALooper_prepare(ALOOPER_PREPARE_ALLOW_NON_CALLBACKS);
  CHECK(looper != NULL, "no looper");
}

/* A callback is a dispatch of the thread's loop, and so is the time between two polls. */
static void blocks(void) {
  prctl(PR_SET_NAME, "game thread");
  setup(80);
  int fd = event();
  struct callback mine = {.result = 1, .block_ms = 150};
  CHECK(bc_looper_add_fd(looper, fd, 0, ALOOPER_EVENT_INPUT, callback, &mine) == 1, "add");
  signal_event(fd);
  CHECK(bc_looper_poll_once(1000, NULL, NULL, NULL) == ALOOPER_POLL_CALLBACK, "poll");
  CHECK(mine.calls == 1 && mine.fd == fd && mine.events == ALOOPER_EVENT_INPUT, "%d calls, fd %d, events %d", mine.calls,
        mine.fd, mine.events);
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1, "%u blocks of a late callback", blocks_in(BC_BLOCK_ENDED));
  const struct told *first = blocks_at(blocks_told() - 1);
  CHECK(strcmp(first->loop_name, "game thread") == 0, "loop %s", first->loop_name);
  CHECK(first->wall_ns >= 150000000 && first->wall_ns < 250000000, "%d ms", (int)(first->wall_ns / 1000000));

  /* Waiting is no block. */
  CHECK(bc_looper_poll_once(300, NULL, NULL, NULL) == ALOOPER_POLL_TIMEOUT, "poll");
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1, "%u blocks after waiting", blocks_in(BC_BLOCK_ENDED));

  /* What the thread does between two polls is. */
  spin_ms(150);
  CHECK(bc_looper_poll_once(0, NULL, NULL, NULL) == ALOOPER_POLL_TIMEOUT, "poll");
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 2, "%u blocks after a late poll", blocks_in(BC_BLOCK_ENDED));

  /* Waiting inside an open dispatch belongs to no stretch. */
  bc_loop *loop = watched(NULL);
  bc_dispatch_begin(loop, "outer", 5);
  CHECK(bc_looper_poll_once(300, NULL, NULL, NULL) == ALOOPER_POLL_TIMEOUT, "poll");
  bc_dispatch_end(loop);
  CHECK(bc_looper_poll_once(0, NULL, NULL, NULL) == ALOOPER_POLL_TIMEOUT, "poll");
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 2, "%u blocks after waiting in a dispatch", blocks_in(BC_BLOCK_ENDED));
  CHECK(health().calls_misused == 0, "%d misused", (int)health().calls_misused);
  CHECK_OK(bc_uninstall());
}

/* A callback that returns 0 is removed; any other result keeps it; the looper sees the results as they are. */
static void removal(void) {
  setup(1000);
  int fd = event();
  struct callback mine = {.result = 7};
  CHECK(bc_looper_add_fd(looper, fd, 3, ALOOPER_EVENT_INPUT, callback, &mine) == 1, "add");
  for (int i = 1; i <= 3; i++) {
    mine.result = i < 3 ? -i : 0;
    signal_event(fd);
    CHECK(bc_looper_poll_once(1000, NULL, NULL, NULL) == ALOOPER_POLL_CALLBACK && mine.calls == i, "%d calls", mine.calls);
  }
  signal_event(fd);
  CHECK(bc_looper_poll_once(20, NULL, NULL, NULL) == ALOOPER_POLL_TIMEOUT && mine.calls == 3, "%d calls after its end",
        mine.calls);
  CHECK(bc_looper_remove_fd(looper, fd) == 0, "removed twice");
  clear_event(fd);

  /* Added again, replaced, removed. */
  struct callback other = {.result = 1};
  mine = (struct callback){.result = 1};
  CHECK(bc_looper_add_fd(looper, fd, 0, ALOOPER_EVENT_INPUT, callback, &mine) == 1, "add");
  CHECK(bc_looper_add_fd(looper, fd, 0, ALOOPER_EVENT_INPUT, callback, &other) == 1, "replace");
  signal_event(fd);
  CHECK(bc_looper_poll_once(1000, NULL, NULL, NULL) == ALOOPER_POLL_CALLBACK, "poll");
  CHECK(mine.calls == 0 && other.calls == 1, "%d of the replaced, %d of the other", mine.calls, other.calls);
  CHECK(bc_looper_remove_fd(looper, fd) == 1 && bc_looper_remove_fd(looper, fd) == 0, "remove");
  signal_event(fd);
  CHECK(bc_looper_poll_once(20, NULL, NULL, NULL) == ALOOPER_POLL_TIMEOUT && other.calls == 1, "%d calls", other.calls);
  CHECK_OK(bc_uninstall());
}

static int removing_itself(int fd, int events, void *data) {
  struct callback *mine = data;
  mine->calls++;
  mine->events = events;
  clear_event(fd);
  CHECK(bc_looper_remove_fd(looper, fd) == 1, "remove from inside");
  CHECK(bc_looper_add_fd(looper, fd, 0, ALOOPER_EVENT_INPUT, callback, mine) == 1, "add from inside");
  return 1;
}

static void changes_from_inside(void) {
  setup(1000);
  int fd = event();
  struct callback mine = {.result = 1};
  CHECK(bc_looper_add_fd(looper, fd, 0, ALOOPER_EVENT_INPUT, removing_itself, &mine) == 1, "add");
  for (int i = 1; i <= 3; i++) {
    signal_event(fd);
    CHECK(bc_looper_poll_once(1000, NULL, NULL, NULL) == ALOOPER_POLL_CALLBACK && mine.calls == i, "%d calls", mine.calls);
  }
  CHECK(bc_looper_remove_fd(looper, fd) == 1, "remove");
  CHECK_OK(bc_uninstall());
}

/* More registrations than there are records: all work, those without a record unwatched. */
#define MANY 1100
static void table_full(void) {
  setup(30);
  static int fds[MANY];
  static struct callback mine[MANY];
  for (int i = 0; i < MANY; i++) {
    fds[i] = event();
    mine[i].result = 1;
    CHECK(bc_looper_add_fd(looper, fds[i], 0, ALOOPER_EVENT_INPUT, callback, &mine[i]) == 1, "add %d", i);
  }
  uint64_t refused = health().loops_refused;
  CHECK(refused > 0 && refused < MANY, "%d refused", (int)refused);
  for (int i = 0; i < MANY; i++) {
    signal_event(fds[i]);
    CHECK(bc_looper_poll_once(1000, NULL, NULL, NULL) == ALOOPER_POLL_CALLBACK && mine[i].calls == 1, "callback %d", i);
  }
  for (int i = 0; i < MANY; i++) {
    CHECK(bc_looper_remove_fd(looper, fds[i]) == 1, "remove %d", i);
  }
  /* The records are free again. */
  struct callback late = {.result = 0, .block_ms = 80};
  CHECK(bc_looper_add_fd(looper, fds[0], 0, ALOOPER_EVENT_INPUT, callback, &late) == 1, "add");
  CHECK(health().loops_refused == refused, "no record although all are free");
  signal_event(fds[0]);
  CHECK(bc_looper_poll_once(1000, NULL, NULL, NULL) == ALOOPER_POLL_CALLBACK && late.calls == 1, "poll");
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) >= 1, "%u blocks", blocks_in(BC_BLOCK_ENDED));
  CHECK_OK(bc_uninstall());
}

/* The two sets of functions. */
struct calls {
  int (*add_fd)(ALooper *, int, int, int, ALooper_callbackFunc, void *);
  int (*remove_fd)(ALooper *, int);
  int (*poll_once)(int, int *, int *, void **);
  int (*poll_all)(int, int *, int *, void **);
};
static const struct calls plain = {ALooper_addFd, ALooper_removeFd, ALooper_pollOnce, ALooper_pollAll};
static const struct calls watching = {bc_looper_add_fd, bc_looper_remove_fd, bc_looper_poll_once, bc_looper_poll_all};

#define RESULTS 96
struct results {
  long of[RESULTS];
  int count;
};

static void note(struct results *results, long value) {
  CHECK(results->count < RESULTS, "too many results");
  results->of[results->count++] = value;
}

static void note_poll(struct results *results, int (*poll)(int, int *, int *, void **), int timeout_ms) {
  int fd = -7, events = -7;
  void *data = results;
  note(results, poll(timeout_ms, &fd, &events, &data));
  note(results, fd < 0 ? fd : fd != 0); /* numbers differ between the two runs */
  note(results, events);
  note(results, data == NULL ? 0 : data == results ? 1 : 2);
}

/* Two descriptors that are signalled at once; whose callback comes first takes the other away. */
struct pair {
  const struct calls *calls;
  ALooper *looper;
  int fds[2], called;
  /* And gives it to this one, if that is to be. */
  struct callback *taker;
  struct results *results;
};
struct side {
  struct pair *pair;
  int other;
};

static int removing_the_other(int fd, int events, void *data) {
  (void)events;
  struct side *side = data;
  struct pair *pair = side->pair;
  clear_event(fd);
  if (pair->called++ == 0) {
    note(pair->results, pair->calls->remove_fd(pair->looper, pair->fds[side->other]));
    if (pair->taker != NULL) {
      int added = pair->calls->add_fd(pair->looper, pair->fds[side->other], 0, ALOOPER_EVENT_INPUT, callback, pair->taker);
      note(pair->results, added);
    }
  }
  return 1;
}

static void take_away(struct results *results, const struct calls *calls, ALooper *mine, struct callback *taker) {
  struct pair pair = {calls, mine, {event(), event()}, 0, taker, results};
  struct side sides[2] = {{&pair, 1}, {&pair, 0}};
  for (int i = 0; i < 2; i++) {
    note(results, calls->add_fd(mine, pair.fds[i], 0, ALOOPER_EVENT_INPUT, removing_the_other, &sides[i]));
    signal_event(pair.fds[i]);
  }
  note_poll(results, calls->poll_once, 100);
  note(results, pair.called);
  note(results, calls->poll_once(0, NULL, NULL, NULL));
  note(results, pair.called);
  for (int i = 0; i < 2; i++) {
    calls->remove_fd(mine, pair.fds[i]);
    close(pair.fds[i]);
  }
}

static void *script(void *argument) {
  struct results *results = argument;
  const struct calls *calls = results->of[0] == 0 ? &plain : &watching;
  note(results, calls->poll_once(0, NULL, NULL, NULL)); /* no looper yet */
  note(results, calls->poll_all(0, NULL, NULL, NULL));
  ALooper *mine = ALooper_prepare(ALOOPER_PREPARE_ALLOW_NON_CALLBACKS);
  ALooper_wake(mine);
  note_poll(results, calls->poll_once, 100);
  note_poll(results, calls->poll_once, 0);
  int with = event(), without = event();
  struct callback counting = {.result = 1};
  note(results, calls->add_fd(mine, with, 5, ALOOPER_EVENT_INPUT, callback, &counting));
  note(results, calls->add_fd(mine, without, 5, ALOOPER_EVENT_INPUT, NULL, &counting));
  note(results, calls->add_fd(mine, without, -5, ALOOPER_EVENT_INPUT, NULL, &counting));
  note(results, calls->add_fd(mine, -1, 0, ALOOPER_EVENT_INPUT, callback, &counting));
  note(results, calls->remove_fd(mine, 9999));
  signal_event(without);
  note_poll(results, calls->poll_once, 100);
  note_poll(results, calls->poll_all, 100);
  clear_event(without);
  signal_event(with);
  note_poll(results, calls->poll_once, 100);
  signal_event(with);
  note_poll(results, calls->poll_all, 20);
  note(results, counting.calls);
  note(results, calls->remove_fd(mine, with));
  note(results, calls->remove_fd(mine, without));
  note(results, calls->remove_fd(mine, without));
  close(with);
  close(without);
  take_away(results, calls, mine, NULL);
  struct callback taker = {.result = 1};
  take_away(results, calls, mine, &taker);
  note(results, taker.calls);
  return NULL;
}

static void compare(const char *when) {
  struct results bare = {.of = {0}}, watched_ones = {.of = {1}};
  join_thread(start_thread(script, &bare));
  join_thread(start_thread(script, &watched_ones));
  CHECK(bare.count == watched_ones.count, "%d and %d results", bare.count, watched_ones.count);
  for (int i = 0; i < bare.count; i++) {
    CHECK(bare.of[i] == watched_ones.of[i], "%s: result %d is %ld, of ALooper_* %ld", when, i, watched_ones.of[i],
          bare.of[i]);
  }
}

static void same_results(void) {
  compare("before install");
  bc_config config = config_of(1000);
  install_and_start(&config);
  compare("watching");
  CHECK_OK(bc_stop());
  compare("stopped");
  CHECK_OK(bc_uninstall());
  compare("after uninstall");
}

/* A registration outlives the installation that made it. */
static void outliving(void) {
  setup(50);
  int fd = event();
  struct callback mine = {.result = 1, .block_ms = 100};
  CHECK(bc_looper_add_fd(looper, fd, 0, ALOOPER_EVENT_INPUT, callback, &mine) == 1, "add");
  CHECK_OK(bc_uninstall());
  signal_event(fd);
  CHECK(bc_looper_poll_once(1000, NULL, NULL, NULL) == ALOOPER_POLL_CALLBACK && mine.calls == 1, "%d calls", mine.calls);
  bc_config config = config_of(50);
  install_and_start(&config);
  CHECK(blocks_told() == 0, "%u blocks while uninstalled", blocks_told());
  signal_event(fd);
  CHECK(bc_looper_poll_once(1000, NULL, NULL, NULL) == ALOOPER_POLL_CALLBACK && mine.calls == 2, "%d calls", mine.calls);
  CHECK_OK(bc_uninstall());
  CHECK(bc_looper_remove_fd(looper, fd) == 1, "remove");
}

static atomic_bool given_up, taken, done;

static void *idle_thread(void *argument) {
  WAIT_FOR(atomic_load(&given_up), 10000);
  pause_ms(50); /* the monitor has freed the place */
  watched("idle");
  atomic_store(&taken, true);
  WAIT_FOR(atomic_load(&done), 10000);
  return argument;
}

static int unwatching(int fd, int events, void *data) {
  (void)events, (void)data;
  clear_event(fd);
  CHECK_OK(bc_loop_unwatch(watched("polling")));
  atomic_store(&given_up, true);
  WAIT_FOR(atomic_load(&taken), 10000);
  return 1;
}

/* A loop is given up inside a callback, and another thread's takes its place before that returns. */
static void unwatched_inside(void) {
  setup(80);
  unsigned long other = start_thread(idle_thread, NULL);
  int fd = event();
  CHECK(bc_looper_add_fd(looper, fd, 0, ALOOPER_EVENT_INPUT, unwatching, NULL) == 1, "add");
  signal_event(fd);
  CHECK(bc_looper_poll_once(1000, NULL, NULL, NULL) == ALOOPER_POLL_CALLBACK, "poll");
  pause_ms(300);
  atomic_store(&done, true);
  join_thread(other);
  flush();
  CHECK(blocks_told() == 0, "a block of \"%s\" (%s), which dispatched nothing", blocks_at(0)->loop_name,
        blocks_at(0)->what);
  CHECK_OK(bc_uninstall());
}

static pthread_barrier_t both;
static int shared_fd;

static void *removing(void *argument) {
  for (int i = 0; i < 20000; i++) {
    pthread_barrier_wait(&both);
    bc_looper_remove_fd(looper, shared_fd);
    pthread_barrier_wait(&both);
  }
  return argument;
}

/* Whichever came last, a descriptor that the looper has answers by its callback. */
static void removed_while_added(void) {
  setup(1000);
  shared_fd = event();
  struct callback mine = {.result = 1};
  CHECK(pthread_barrier_init(&both, NULL, 2) == 0, "barrier");
  unsigned long other = start_thread(removing, NULL);
  for (int i = 0; i < 20000; i++) {
    bc_looper_add_fd(looper, shared_fd, 0, ALOOPER_EVENT_INPUT, callback, &mine);
    pthread_barrier_wait(&both);
    for (volatile int k = 0; k < i % 1000; k++) {
    }
    bc_looper_add_fd(looper, shared_fd, 0, ALOOPER_EVENT_INPUT, callback, &mine);
    pthread_barrier_wait(&both);
    mine.calls = 0;
    signal_event(shared_fd);
    int result = bc_looper_poll_once(0, NULL, NULL, NULL);
    CHECK((result == ALOOPER_POLL_CALLBACK) == (mine.calls == 1), "round %d: %d, %d calls", i, result, mine.calls);
    if (mine.calls == 0) {
      clear_event(shared_fd);
    }
  }
  join_thread(other);
  CHECK_OK(bc_uninstall());
}

CASES({"blocks", blocks}, {"removal", removal}, {"changes_from_inside", changes_from_inside}, {"table_full", table_full},
      {"same_results", same_results}, {"outliving", outliving},
      {"unwatched_inside", unwatched_inside},
      {"removed_while_added", removed_while_added})
