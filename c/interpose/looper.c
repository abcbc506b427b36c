/* What the linker puts in the place of a program's own ALooper_* calls: see blockcanary_interpose_looper in
 * cmake/interpose.cmake, which compiles this file as a part of the program. C11 and C++14.
 *
 * Without CMake: compile it with -DBLOCKCANARY_ENABLED=1 and link with -Wl,--wrap=ALooper_addFd,
 * --wrap=ALooper_removeFd,--wrap=ALooper_pollOnce,--wrap=ALooper_pollAll. */
#ifndef BLOCKCANARY_ENABLED
#error "blockcanary_interpose_looper: the target that it was called for must link blockcanary::blockcanary"
#else

/* With the no-op nothing is interposed. */
#if BLOCKCANARY_ENABLED

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include <blockcanary.h>
#ifndef __ANDROID__
#include <dlfcn.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Each program and each library that is linked with this has its own. */
#define HOOK __attribute__((visibility("hidden")))

HOOK int __wrap_ALooper_addFd(ALooper *looper, int fd, int ident, int events, bc_looper_callback callback, void *data);
HOOK int __wrap_ALooper_removeFd(ALooper *looper, int fd);
HOOK int __wrap_ALooper_pollOnce(int timeout_ms, int *out_fd, int *out_events, void **out_data);
HOOK int __wrap_ALooper_pollAll(int timeout_ms, int *out_fd, int *out_events, void **out_data);

/* What the program would have called. References to it also keep the looper's library linked, which the library looks for
 * at run time, where the linker leaves out libraries that nothing refers to. */
int __real_ALooper_addFd(ALooper *looper, int fd, int ident, int events, bc_looper_callback callback, void *data);
int __real_ALooper_removeFd(ALooper *looper, int fd);
int __real_ALooper_pollOnce(int timeout_ms, int *out_fd, int *out_events, void **out_data);
int __real_ALooper_pollAll(int timeout_ms, int *out_fd, int *out_events, void **out_data);

/* Does the library find the looper? Not one that the program has inside and does not export, which on Android none has. */
static int is_found(void) {
#ifdef __ANDROID__
  return 1;
#else
  static int found; /* 1 yes, -1 no, 0 not known yet */
  int known = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (known == 0) {
    void *android = dlopen("libandroid.so", RTLD_LAZY | RTLD_NOLOAD);
    known = android != NULL || dlsym(RTLD_DEFAULT, "ALooper_pollOnce") != NULL ? 1 : -1;
    if (android != NULL) {
      dlclose(android);
    }
    __atomic_store_n(&found, known, __ATOMIC_RELAXED);
  }
  return known > 0;
#endif
}

int __wrap_ALooper_addFd(ALooper *looper, int fd, int ident, int events, bc_looper_callback callback, void *data) {
  return is_found() ? bc_looper_add_fd(looper, fd, ident, events, callback, data)
                    : __real_ALooper_addFd(looper, fd, ident, events, callback, data);
}

int __wrap_ALooper_removeFd(ALooper *looper, int fd) {
  return is_found() ? bc_looper_remove_fd(looper, fd) : __real_ALooper_removeFd(looper, fd);
}

int __wrap_ALooper_pollOnce(int timeout_ms, int *out_fd, int *out_events, void **out_data) {
  return is_found() ? bc_looper_poll_once(timeout_ms, out_fd, out_events, out_data)
                    : __real_ALooper_pollOnce(timeout_ms, out_fd, out_events, out_data);
}

int __wrap_ALooper_pollAll(int timeout_ms, int *out_fd, int *out_events, void **out_data) {
  return is_found() ? bc_looper_poll_all(timeout_ms, out_fd, out_events, out_data)
                    : __real_ALooper_pollAll(timeout_ms, out_fd, out_events, out_data);
}

#ifdef __cplusplus
}
#endif

#endif
#endif
