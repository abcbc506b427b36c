// The NDK's looper interface over the genuine android::Looper: what libandroid.so is on a device, for tests only.
#include <android/looper.h>
#include <utils/Looper.h>

using android::Looper;
using android::sp;

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

Looper *looper_of(ALooper *looper) {
  return reinterpret_cast<Looper *>(looper);
}

ALooper *handle_of(const sp<Looper> &looper) {
  return reinterpret_cast<ALooper *>(looper.get());
}

}  // namespace

EXPORTED ALooper *ALooper_forThread() {
  return handle_of(Looper::getForThread());
}

EXPORTED ALooper *ALooper_prepare(int options) {
  return handle_of(Looper::prepare(options));
}

EXPORTED void ALooper_acquire(ALooper *looper) {
  looper_of(looper)->incStrong(looper);
}

EXPORTED void ALooper_release(ALooper *looper) {
  looper_of(looper)->decStrong(looper);
}

EXPORTED int ALooper_pollOnce(int timeout_ms, int *out_fd, int *out_events, void **out_data) {
  sp<Looper> looper = Looper::getForThread();
  return looper == nullptr ? ALOOPER_POLL_ERROR : looper->pollOnce(timeout_ms, out_fd, out_events, out_data);
}

EXPORTED int ALooper_pollAll(int timeout_ms, int *out_fd, int *out_events, void **out_data) {
  sp<Looper> looper = Looper::getForThread();
  return looper == nullptr ? ALOOPER_POLL_ERROR : looper->pollAll(timeout_ms, out_fd, out_events, out_data);
}

EXPORTED void ALooper_wake(ALooper *looper) {
  looper_of(looper)->wake();
}

EXPORTED int ALooper_addFd(ALooper *looper, int fd, int ident, int events, ALooper_callbackFunc callback, void *data) {
  return looper_of(looper)->addFd(fd, ident, events, callback, data);
}

EXPORTED int ALooper_removeFd(ALooper *looper, int fd) {
  return looper_of(looper)->removeFd(fd);
}
