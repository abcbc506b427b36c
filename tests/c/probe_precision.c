/* A thousand times a looper's thread has something to do, for around the limit and one period of its heartbeat, at random
   phases: what takes longer than both is told, what is below the limit never is, by the program's own clock. */
#include <android/looper.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/load.h"
#include "support/procfs.h"

#define WORKS 1000
#define LOOPERS 4
#define LIMIT_MS 60
#define PERIOD_MS (LIMIT_MS / 4)
#define AROUND_MS 40
#define DEAD_BAND_NS 2000000ull

/* One work: told to begin, begun, done, and the thread back in its poll for good; and how long the monitor has been ready
   meanwhile without a processor, UINT64_MAX where that is not known. */
struct timed {
  uint64_t told, begun, done, back, starved;
};

struct one {
  struct timed timed[WORKS / LOOPERS];
  ALooper *_Atomic looper;
  bc_loop *loop;
  int work_fd;
  atomic_uint work_ms, works_done;
  atomic_ullong returned; /* when its last poll returned, after all that it had to do in it */
  atomic_bool quit;
  struct timed *current;
};
static struct one ones[LOOPERS];

static int work(int fd, int events, void *data) {
  (void)events;
  struct one *one = data;
  eventfd_t count;
  eventfd_read(fd, &count);
  unsigned ms = atomic_exchange(&one->work_ms, 0);
  if (ms > 0) {
    one->current->begun = now_ns();
    sleep_ms(ms);
    one->current->done = now_ns();
    atomic_fetch_add(&one->works_done, 1);
  }
  return 1;
}

static void *loop_thread(void *argument) {
  struct one *one = argument;
  ALooper *own = ALooper_prepare(0);
  one->work_fd = eventfd(0, EFD_NONBLOCK);
  ALooper_addFd(own, one->work_fd, ALOOPER_POLL_CALLBACK, ALOOPER_EVENT_INPUT, work, one);
  atomic_store(&one->looper, own);
  while (!atomic_load(&one->quit)) {
    ALooper_pollOnce(-1, NULL, NULL, NULL);
    atomic_store(&one->returned, now_ns());
  }
  return argument;
}

static void *driver(void *argument) {
  struct one *one = argument;
  unsigned seed = (unsigned)(one - ones) + 1;
  for (unsigned i = 0; i < WORKS / LOOPERS; i++) {
    struct timed *mine = &one->timed[i];
    one->current = mine;
    atomic_store(&one->work_ms, LIMIT_MS + PERIOD_MS - AROUND_MS + (unsigned)rand_r(&seed) % (2 * AROUND_MS + 1));
    uint64_t before = threads_waited_ns(getpid(), "bc-monitor");
    mine->told = now_ns();
    eventfd_write(one->work_fd, 1);
    WAIT_FOR(atomic_load(&one->works_done) == i + 1, 60000);
    uint64_t after = threads_waited_ns(getpid(), "bc-monitor");
    mine->starved = before == UINT64_MAX || after == UINT64_MAX ? UINT64_MAX : after - before;
    /* Until it has been back for longer than any heartbeat of this work may take. */
    do {
      mine->back = atomic_load(&one->returned);
      sleep_ms(3 * PERIOD_MS + (unsigned)rand_r(&seed) % 25);
    } while (atomic_load(&one->returned) != mine->back || mine->back < mine->done);
  }
  return NULL;
}

static void judge(const char *kind) {
  unsigned late = 0, on_time = 0, missed = 0, starved = 0, wrong = 0, twice = 0, between = 0;
  for (unsigned l = 0; l < LOOPERS; l++) {
    for (unsigned i = 0; i < WORKS / LOOPERS; i++) {
      const struct timed *mine = &ones[l].timed[i];
      uint64_t least = mine->done - mine->begun, most = mine->back - mine->told;
      char name[16];
      snprintf(name, sizeof name, "probed %u", l);
      unsigned told = 0;
      for (unsigned n = 0; n < blocks_told(); n++) {
        const struct told *each = blocks_at(n);
        /* A heartbeat may have been on its way when the work came: the thread has that to do, too. */
        told += each->state == BC_BLOCK_ENDED && strcmp(each->loop_name, name) == 0 &&
                each->start_ns + each->wall_ns > mine->begun && each->start_ns <= mine->back;
      }
      bool is_late = least > (LIMIT_MS + PERIOD_MS) * 1000000ull + DEAD_BAND_NS, is_early = most < LIMIT_MS * 1000000ull - DEAD_BAND_NS;
      late += is_late;
      on_time += is_early;
      between += !is_late && !is_early;
      /* Whoever looks in such a time must himself have a processor to do so. */
      bool is_known = mine->starved != UINT64_MAX && least > mine->starved;
      bool is_sure = is_known && least - mine->starved > (LIMIT_MS + PERIOD_MS) * 1000000ull + DEAD_BAND_NS;
      missed += is_late && is_sure && told == 0;
      starved += is_late && !is_sure && told == 0;
      wrong += is_early && told > 0;
      twice += told > 1;
      if ((is_late && told == 0) || (is_early && told > 0)) {
        printf("  %.2f to %.2f ms, monitor %.2f ms without a processor: told %u times\n", (double)least / 1e6,
               (double)most / 1e6, (double)mine->starved / 1e6, told);
      }
    }
  }
  printf("%s: %u works, %u late, %u on time, %u between: %u missed, %u missed by a starved monitor, %u false, %u twice\n", kind, WORKS,
         late, on_time, between, missed, starved, wrong, twice);
  CHECK(late >= WORKS / 5 && on_time >= WORKS / 10, "only %u late, %u on time", late, on_time);
  CHECK(missed == 0 && wrong == 0 && twice == 0, "%u missed, %u false, %u twice", missed, wrong, twice);
}

static void measure(const char *kind) {
  bc_config config = config_of(LIMIT_MS);
  install_and_start(&config);
  unsigned long loops[LOOPERS], drivers[LOOPERS];
  for (unsigned l = 0; l < LOOPERS; l++) {
    loops[l] = start_thread(loop_thread, &ones[l]);
    WAIT_FOR(atomic_load(&ones[l].looper) != NULL, 20000);
    char name[16];
    snprintf(name, sizeof name, "probed %u", l);
    CHECK_OK(bc_looper_probe(atomic_load(&ones[l].looper), name, &ones[l].loop));
  }
  sleep_ms(500);
  for (unsigned l = 0; l < LOOPERS; l++) {
    drivers[l] = start_thread(driver, &ones[l]);
  }
  for (unsigned l = 0; l < LOOPERS; l++) {
    join_thread(drivers[l]);
  }
  flush();
  judge(kind);
  CHECK_OK(bc_uninstall());
  for (unsigned l = 0; l < LOOPERS; l++) {
    atomic_store(&ones[l].quit, true);
    eventfd_write(ones[l].work_fd, 1);
    join_thread(loops[l]);
  }
}

static void idle(void) { measure("heartbeat"); }

static void under_load(void) {
  load_every_core(2);
  measure("heartbeat, under load");
}

CASES({"idle", idle}, {"under_load", under_load})
