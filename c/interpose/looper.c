/* What the linker puts in the place of a program's own ALooper_* calls: see blockcanary_interpose_looper in
 * cmake/interpose.cmake, which compiles this file as a part of the program. C11 and C++14.
 *
 * Without CMake: compile it with -DBLOCKCANARY_ENABLED=1 and link with -Wl,--wrap=ALooper_addFd,
 * --wrap=ALooper_removeFd,--wrap=ALooper_pollOnce,--wrap=ALooper_pollAll. */
#ifndef BLOCKCANARY_ENABLED
#error "blockcanary_interpose_looper: the target that it was called for must link blockcanary::blockcanary"
#else
#include <blockcanary.h>

/* With the no-op nothing is interposed. */
#if BLOCKCANARY_ENABLED

#ifdef __cplusplus
extern "C" {
#endif

/* Each program and each library that is linked with this has its own. */
#define HOOK __attribute__((visibility("hidden")))

HOOK int __wrap_ALooper_addFd(ALooper *looper, int fd, int ident, int events, bc_looper_callback callback, void *data);
HOOK int __wrap_ALooper_removeFd(ALooper *looper, int fd);
HOOK int __wrap_ALooper_pollOnce(int timeout_ms, int *out_fd, int *out_events, void **out_data);
HOOK int __wrap_ALooper_pollAll(int timeout_ms, int *out_fd, int *out_events, void **out_data);

int __wrap_ALooper_addFd(ALooper *looper, int fd, int ident, int events, bc_looper_callback callback, void *data) {
  return bc_looper_add_fd(looper, fd, ident, events, callback, data);
}

int __wrap_ALooper_removeFd(ALooper *looper, int fd) {
  return bc_looper_remove_fd(looper, fd);
}

int __wrap_ALooper_pollOnce(int timeout_ms, int *out_fd, int *out_events, void **out_data) {
  return bc_looper_poll_once(timeout_ms, out_fd, out_events, out_data);
}

int __wrap_ALooper_pollAll(int timeout_ms, int *out_fd, int *out_events, void **out_data) {
  return bc_looper_poll_all(timeout_ms, out_fd, out_events, out_data);
}

#ifdef __cplusplus
}
#endif

#endif
#endif
