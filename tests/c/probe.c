/* A looper's thread that leaves no marks, watched by a heartbeat. */
#include <android/looper.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

static ALooper *_Atomic looper;
static atomic_bool quit;
static atomic_uint work_ms_wanted, works_done, polls;
static int work_fd;

static int work(int fd, int events, void *data) {
  (void)events, (void)data;
  eventfd_t count;
  eventfd_read(fd, &count);
  unsigned ms = atomic_exchange(&work_ms_wanted, 0);
  if (ms > 0) {
    sleep_ms(ms);
    atomic_fetch_add(&works_done, 1);
  }
  return 1;
}

static void *loop_thread(void *argument) {
  ALooper *own = ALooper_prepare(0);
  work_fd = eventfd(0, EFD_NONBLOCK);
  ALooper_addFd(own, work_fd, ALOOPER_POLL_CALLBACK, ALOOPER_EVENT_INPUT, work, NULL);
  atomic_store(&looper, own);
  while (!atomic_load(&quit)) {
    ALooper_pollOnce(-1, NULL, NULL, NULL);
    atomic_fetch_add(&polls, 1);
  }
  return argument;
}

static void have_it_work(unsigned ms) {
  unsigned before = atomic_load(&works_done);
  atomic_store(&work_ms_wanted, ms);
  eventfd_write(work_fd, 1);
  WAIT_FOR(atomic_load(&works_done) == before + 1, 20000);
}

static unsigned long started(bc_loop **loop, uint32_t threshold_ms) {
  bc_config config = config_of(threshold_ms);
  install_and_start(&config);
  unsigned long thread = start_thread(loop_thread, NULL);
  WAIT_FOR(atomic_load(&looper) != NULL, 20000);
  CHECK_OK(bc_looper_probe(atomic_load(&looper), "probed", loop));
  CHECK(*loop != NULL && health().loops_watched == 1, "not watched");
  return thread;
}

static void stopped(unsigned long thread) {
  CHECK_OK(bc_uninstall());
  atomic_store(&quit, true);
  eventfd_write(work_fd, 1);
  join_thread(thread);
}

/* Above the threshold and one period: always found, with the function that blocks. Below the threshold: never. */
static void found(void) {
  bc_loop *loop = NULL;
  blocks_expect("sleep_ms", 4);
  unsigned long thread = started(&loop, 200);
  for (unsigned i = 0; i < 10; i++) {
    have_it_work(100 + i);
  }
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 0, "%u blocks below the threshold", blocks_in(BC_BLOCK_ENDED));
  for (unsigned i = 0; i < 10; i++) {
    have_it_work(400 + 7 * i);
    /* The thread answers the ping behind its work. */
    WAIT_FOR(blocks_in(BC_BLOCK_ENDED) >= i + 1, 5000);
    CHECK(blocks_in(BC_BLOCK_ENDED) == i + 1, "%u blocks after %u", blocks_in(BC_BLOCK_ENDED), i + 1);
  }
  unsigned named = 0;
  for (unsigned i = 0; i < blocks_told(); i++) {
    named += blocks_at(i)->state == BC_BLOCK_ENDED && blocks_at(i)->samples_naming > 0;
  }
  printf("10 of 10 found, %u with the function that slept\n", named);
  CHECK(named >= 8, "%u of 10 name the function", named);
  stopped(thread);
}

/* A thread that waits in its poll is left there. */
static void idle(void) {
  bc_loop *loop = NULL;
  unsigned long thread = started(&loop, 200);
  have_it_work(1);
  pause_ms(1000);
  unsigned before = atomic_load(&polls);
  pause_ms(3000);
  unsigned woken = atomic_load(&polls) - before;
  printf("%u polls returned in 3 s\n", woken);
  CHECK(woken <= 1, "woken %u times", woken);
  stopped(thread);
}

static void given_up(void) {
  bc_loop *loop = NULL, *again = NULL;
  unsigned before = descriptors();
  unsigned long thread = started(&loop, 200);
  CHECK_OK(bc_looper_probe(atomic_load(&looper), "again", &again));
  CHECK(loop == again, "another token for the same looper");
  CHECK_OK(bc_pause());
  have_it_work(500);
  CHECK_OK(bc_resume());
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 0, "a block while paused");
  CHECK_OK(bc_loop_unwatch(loop));
  CHECK_STATUS(bc_loop_unwatch(loop), BC_ERROR_INVALID_ARGUMENT);
  have_it_work(500);
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 0, "a block after unwatch");
  CHECK_STATUS(bc_looper_probe(NULL, "none", &again), BC_ERROR_INVALID_ARGUMENT);
  CHECK(again == NULL, "a token after a failure");
  CHECK_STATUS(bc_looper_probe(atomic_load(&looper), NULL, NULL), BC_ERROR_INVALID_ARGUMENT);
  stopped(thread);
  close(work_fd);
  CHECK(descriptors() <= before + 2, "%u descriptors, %u before", descriptors(), before);
}

CASES({"found", found}, {"idle", idle}, {"given_up", given_up})
