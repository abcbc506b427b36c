#include "android.h"

#include <time.h>
#include <unistd.h>
#include <utils/Looper.h>

extern "C" {
#include "../c/check.h"
}

thread_local bool android_leaves;

using android::Looper;
using android::sp;

namespace {

jlong queue_init(JNIEnv *, jclass) {
  sp<Looper> looper = Looper::getForThread();
  if (looper == nullptr) {
    looper = new Looper(false);
    Looper::setForThread(looper);
  }
  looper->incStrong(nullptr);
  return reinterpret_cast<jlong>(looper.get());
}

Looper *of(jlong queue) {
  return reinterpret_cast<Looper *>(queue);
}

void queue_destroy(JNIEnv *, jclass, jlong queue) {
  of(queue)->decStrong(nullptr);
}

void queue_poll_once(JNIEnv *env, jobject, jlong queue, jint timeout_ms) {
  if (android_leaves) {
    android_leaves = false;
    env->ThrowNew(env->FindClass("dev/blockcanary/test/Messages$Quit"), "left");
    return;
  }
  of(queue)->pollOnce(timeout_ms);
}

void queue_wake(JNIEnv *, jclass, jlong queue) {
  of(queue)->wake();
}

jboolean queue_is_polling(JNIEnv *, jclass, jlong queue) {
  return of(queue)->isPolling();
}

jlong uptime_ms(JNIEnv *, jclass) {
  return static_cast<jlong>(now_ns() / 1000000);
}

jlong thread_ms(JNIEnv *, jclass) {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

jlong no_identity(JNIEnv *, jclass) {
  return 0;
}

void put_identity(JNIEnv *, jclass, jlong) {}

void flush_nothing(JNIEnv *, jclass) {}

jlong no_tags(JNIEnv *, jclass) {
  return 0;
}

jint default_int(JNIEnv *, jclass, jstring, jint value) {
  return value;
}

jint uid(JNIEnv *, jobject) {
  return static_cast<jint>(getuid());
}

jint tid(JNIEnv *, jobject) {
  return static_cast<jint>(gettid());
}

void leave_priority(JNIEnv *, jclass, jint) {}

jint print(JNIEnv *, jclass, jint, jint, jstring, jstring) {
  return 0;
}

jboolean no_debugger(JNIEnv *, jclass) {
  return false;
}

void put_in(JNIEnv *env, const char *name, const JNINativeMethod *methods, jint count) {
  jclass of_name = env->FindClass(name);
  bool is_done = of_name != nullptr && env->RegisterNatives(of_name, methods, count) == 0;
  if (!is_done) {
    env->ExceptionDescribe();
  }
  CHECK(is_done, "%s", name);
  env->DeleteLocalRef(of_name);
}

#define METHOD(name, signature, function) \
  {const_cast<char *>(name), const_cast<char *>(signature), reinterpret_cast<void *>(function)}

}  // namespace

void android_register(JNIEnv *env) {
  static const JNINativeMethod queue[] = {
      METHOD("nativeInit", "()J", queue_init),
      METHOD("nativeDestroy", "(J)V", queue_destroy),
      METHOD("nativePollOnce", "(JI)V", queue_poll_once),
      METHOD("nativeWake", "(J)V", queue_wake),
      METHOD("nativeIsPolling", "(J)Z", queue_is_polling),
  };
  put_in(env, "android/os/MessageQueue", queue, 5);
  static const JNINativeMethod clock[] = {METHOD("uptimeMillis", "()J", uptime_ms),
                                          METHOD("currentThreadTimeMillis", "()J", thread_ms)};
  put_in(env, "android/os/SystemClock", clock, 2);
  static const JNINativeMethod binder[] = {
      METHOD("clearCallingIdentity", "()J", no_identity),
      METHOD("restoreCallingIdentity", "(J)V", put_identity),
      METHOD("flushPendingCommands", "()V", flush_nothing),
  };
  put_in(env, "android/os/Binder", binder, 3);
  static const JNINativeMethod trace[] = {METHOD("nativeGetEnabledTags", "()J", no_tags)};
  put_in(env, "android/os/Trace", trace, 1);
  static const JNINativeMethod properties[] = {METHOD("native_get_int", "(Ljava/lang/String;I)I", default_int)};
  put_in(env, "android/os/SystemProperties", properties, 1);
  static const JNINativeMethod system[] = {METHOD("getuid", "()I", uid), METHOD("gettid", "()I", tid)};
  put_in(env, "libcore/io/Linux", system, 2);
  static const JNINativeMethod process[] = {METHOD("setThreadPriority", "(I)V", leave_priority)};
  put_in(env, "android/os/Process", process, 1);
  static const JNINativeMethod log[] = {
      METHOD("println_native", "(IILjava/lang/String;Ljava/lang/String;)I", print)};
  put_in(env, "android/util/Log", log, 1);
  static const JNINativeMethod debug[] = {METHOD("isDebuggerConnected", "()Z", no_debugger)};
  put_in(env, "dalvik/system/VMDebug", debug, 1);
}
