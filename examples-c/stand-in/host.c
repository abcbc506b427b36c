/* A stand-in for Java: its first thread has a looper, loads the game's library, and calls the activity's functions from
 * that looper, one each second. */
#include <android/looper.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "activity.h"

static struct activity activity;
static bool running = true;

static int on_second(int fd, int events, void *data) {
  static int seconds;
  unsigned long long times;
  (void)events, (void)data;
  if (read(fd, &times, sizeof times) != sizeof times) {
    return 1;
  }
  switch (++seconds) {
    case 1: activity.callbacks->onNativeWindowCreated(&activity); break;
    case 3: activity.callbacks->onTouchEvent(&activity, 0.5f); break;
    case 5: activity.callbacks->onDestroy(&activity); running = false; break;
    default: break;
  }
  return 1;
}

int main(int argc, char **argv) {
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  struct itimerspec second = {.it_interval.tv_sec = 1, .it_value.tv_sec = 1};
  ALooper *looper = ALooper_prepare(0);
  if (argc != 2 || timer < 0 || timerfd_settime(timer, 0, &second, NULL) != 0 ||
      ALooper_addFd(looper, timer, ALOOPER_POLL_CALLBACK, ALOOPER_EVENT_INPUT, on_second, NULL) != 1) {
    fprintf(stderr, "usage: %s LIBRARY\n", argv[0]);
    return 2;
  }
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void (*on_create)(struct activity *) = NULL;
  if (library != NULL) {
    *(void **)&on_create = dlsym(library, "stand_in_on_create");
  }
  if (on_create == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  on_create(&activity);
  while (running) {
    ALooper_pollOnce(-1, NULL, NULL, NULL);
  }
  return 0;
}
