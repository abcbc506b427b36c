/* The looper's calls without the library behind them: straight to the system's, and without one the answers that the
 * library gives then. */
#include <blockcanary.h>

/* Android's header is not everywhere, and refuses pollAll. Weak, so that a program without a looper links all the same. */
int ALooper_addFd(ALooper *looper, int fd, int ident, int events, bc_looper_callback callback, void *data)
    __attribute__((weak));
int ALooper_removeFd(ALooper *looper, int fd) __attribute__((weak));
int ALooper_pollOnce(int timeout_ms, int *out_fd, int *out_events, void **out_data) __attribute__((weak));
int ALooper_pollAll(int timeout_ms, int *out_fd, int *out_events, void **out_data) __attribute__((weak));

enum { POLL_ERROR = -4 }; /* ALOOPER_POLL_ERROR */

int bc_looper_add_fd(ALooper *looper, int fd, int ident, int events, bc_looper_callback callback, void *data) {
  return ALooper_addFd ? ALooper_addFd(looper, fd, ident, events, callback, data) : -1;
}

int bc_looper_remove_fd(ALooper *looper, int fd) {
  return ALooper_removeFd ? ALooper_removeFd(looper, fd) : -1;
}

int bc_looper_poll_once(int timeout_ms, int *out_fd, int *out_events, void **out_data) {
  return ALooper_pollOnce ? ALooper_pollOnce(timeout_ms, out_fd, out_events, out_data) : POLL_ERROR;
}

int bc_looper_poll_all(int timeout_ms, int *out_fd, int *out_events, void **out_data) {
  return ALooper_pollAll ? ALooper_pollAll(timeout_ms, out_fd, out_events, out_data) : POLL_ERROR;
}

bc_status bc_looper_probe(ALooper *looper, const char *name, bc_loop **loop) {
  (void)looper, (void)name;
  if (loop != NULL) {
    *loop = NULL;
  }
  return BC_OK;
}

bc_status bc_frames_watch(const char *name, bc_loop **loop) {
  (void)name;
  if (loop != NULL) {
    *loop = NULL;
  }
  return BC_OK;
}

bc_status bc_java_watch(void *java_vm, const char *name, bc_loop **loop) {
  (void)java_vm, (void)name;
  if (loop != NULL) {
    *loop = NULL;
  }
  return BC_OK;
}
