#include "polling.h"

#include <android/looper.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/eventfd.h>

#include "../check.h"

atomic_uint polls;
static atomic_bool is_ready, quit;
static int wake_fd;

/* What it is to do in its next callback. */
static void (*_Atomic wanted)(void);
static atomic_uint done;

static int on_wake(int fd, int events, void *data) {
  (void)events, (void)data;
  eventfd_t count;
  eventfd_read(fd, &count);
  void (*work)(void) = atomic_exchange(&wanted, NULL);
  if (work != NULL) {
    work();
    atomic_fetch_add(&done, 1);
  }
  return 1;
}

static void *poll_until_told(void *argument) {
  wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  ALooper_addFd(ALooper_prepare(0), wake_fd, ALOOPER_POLL_CALLBACK, ALOOPER_EVENT_INPUT, on_wake, NULL);
  atomic_store(&is_ready, true);
  while (!atomic_load(&quit)) {
    ALooper_pollOnce(-1, NULL, NULL, NULL);
    atomic_fetch_add(&polls, 1);
  }
  return argument;
}

unsigned long polling_thread(void) {
  unsigned long thread = start_thread(poll_until_told, NULL);
  WAIT_FOR(atomic_load(&is_ready), 20000);
  return thread;
}

void have_done(void (*work)(void)) {
  unsigned before = atomic_load(&done);
  atomic_store(&wanted, work);
  eventfd_write(wake_fd, 1);
  WAIT_FOR(atomic_load(&done) > before, 20000);
}

void end_polling(unsigned long thread) {
  atomic_store(&quit, true);
  eventfd_write(wake_fd, 1);
  join_thread(thread);
}
