/* In the place of Android's own libandroid.so, which wants a whole system around it: a looper that sleeps and has nothing to
 * tell. What is tested with it is the loader's work and ours on the words of libraries, not a looper. */
#include <android/looper.h>
#include <stddef.h>
#include <time.h>

static int the_looper;

ALooper *ALooper_prepare(int options) {
  (void)options;
  return (ALooper *)&the_looper;
}

ALooper *ALooper_forThread(void) {
  return (ALooper *)&the_looper;
}

void ALooper_acquire(ALooper *looper) {
  (void)looper;
}

void ALooper_release(ALooper *looper) {
  (void)looper;
}

int ALooper_addFd(ALooper *looper, int fd, int ident, int events, ALooper_callbackFunc callback, void *data) {
  (void)looper, (void)fd, (void)ident, (void)events, (void)callback, (void)data;
  return -1;
}

int ALooper_removeFd(ALooper *looper, int fd) {
  (void)looper, (void)fd;
  return 0;
}

int ALooper_pollOnce(int timeout_ms, int *fd, int *events, void **data) {
  (void)fd, (void)events, (void)data;
  struct timespec time = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
  nanosleep(&time, NULL);
  return ALOOPER_POLL_TIMEOUT;
}

int ALooper_pollAll(int timeout_ms, int *fd, int *events, void **data) {
  return ALooper_pollOnce(timeout_ms, fd, events, data);
}
