/* In the place of a looper: a program that refers to one can be linked, and its cases without one run. */
#include <android/looper.h>
#include <stddef.h>

ALooper *ALooper_prepare(int options) {
  (void)options;
  return NULL;
}

int ALooper_pollOnce(int timeout_ms, int *fd, int *events, void **data) {
  (void)timeout_ms, (void)fd, (void)events, (void)data;
  return ALOOPER_POLL_ERROR;
}
