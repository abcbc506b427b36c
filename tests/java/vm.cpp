#include "vm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

extern "C" {
#include "../c/check.h"
}
#include "android.h"

void (*on_step)(JNIEnv *env, jint step);

namespace {

JavaVM *machine;

JNIEnv *env() {
  void *env = nullptr;
  CHECK(machine->GetEnv(&env, JNI_VERSION_1_6) == JNI_OK, "not attached");
  return static_cast<JNIEnv *>(env);
}

void fine(JNIEnv *env, const char *what) {
  bool is_thrown = env->ExceptionCheck();
  if (is_thrown) {
    env->ExceptionDescribe();
  }
  CHECK(!is_thrown, "%s", what);
}

jmethodID method(JNIEnv *env, jclass *app, const char *name, const char *signature,
                 const char *of = "dev/blockcanary/test/Messages") {
  *app = env->FindClass(of);
  fine(env, of);
  jmethodID method = env->GetStaticMethodID(*app, name, signature);
  fine(env, name);
  return method;
}

void call(JNIEnv *env, jclass, jint step) {
  on_step(env, step);
}

void leave(JNIEnv *, jclass) {
  android_leaves = true;
}

}  // namespace

JavaVM *vm() {
  return machine;
}

namespace {

void begin(bool is_fast) {
  const char *path = getenv("TEST_CLASS_PATH");
  CHECK(path != nullptr, "TEST_CLASS_PATH is not set");
  static char class_path[4096];
  snprintf(class_path, sizeof class_path, "-Djava.class.path=%s", path);
  const char *library = getenv("TEST_JNI");
  CHECK(library != nullptr, "TEST_JNI is not set");
  static char jni[1024];
  snprintf(jni, sizeof jni, "-Dtest.jni=%s", library);
  JavaVMOption options[] = {{class_path, nullptr},
                            {jni, nullptr},
                            {const_cast<char *>("-XX:+UseSerialGC"), nullptr},
                            {const_cast<char *>("-Xcheck:jni"), nullptr}};
  JavaVMInitArgs arguments = {JNI_VERSION_1_6, is_fast ? 3 : 4, options, JNI_FALSE};
  void *made = nullptr;
  CHECK(JNI_CreateJavaVM(&machine, &made, &arguments) == JNI_OK, "no VM");
  JNIEnv *env = static_cast<JNIEnv *>(made);
  android_register(env);
  jclass messages = env->FindClass("dev/blockcanary/test/Messages");
  fine(env, "Messages");
  const JNINativeMethod natives[] = {
      {const_cast<char *>("call"), const_cast<char *>("(I)V"), reinterpret_cast<void *>(call)},
      {const_cast<char *>("leave"), const_cast<char *>("()V"), reinterpret_cast<void *>(leave)}};
  CHECK(env->RegisterNatives(messages, natives, 2) == 0, "natives");
  app("prepare", "()V");
}

}  // namespace

void vm_begin() {
  begin(false);
}

void vm_begin_fast() {
  begin(true);
}

void app(const char *name, const char *signature, ...) {
  JNIEnv *here = env();
  jclass messages;
  jmethodID found = method(here, &messages, name, signature);
  va_list arguments;
  va_start(arguments, signature);
  here->CallStaticVoidMethodV(messages, found, arguments);
  va_end(arguments);
  fine(here, name);
  here->DeleteLocalRef(messages);
}

jint app_number(const char *name, jint number) {
  JNIEnv *here = env();
  jclass messages;
  jmethodID found = method(here, &messages, name, "(I)I");
  jint result = here->CallStaticIntMethod(messages, found, number);
  fine(here, name);
  here->DeleteLocalRef(messages);
  return result;
}

jint others(const char *name, jint number) {
  return number_of("dev/blockcanary/test/Others", name, number);
}

jint number_of(const char *of, const char *name, jint number) {
  JNIEnv *here = env();
  jclass owner;
  jmethodID found = method(here, &owner, name, "(I)I", of);
  jint result = here->CallStaticIntMethod(owner, found, number);
  fine(here, name);
  here->DeleteLocalRef(owner);
  return result;
}

bool app_truth(const char *name, jint number) {
  JNIEnv *here = env();
  jclass messages;
  jmethodID found = method(here, &messages, name, "(I)Z");
  bool result = here->CallStaticBooleanMethod(messages, found, number);
  fine(here, name);
  here->DeleteLocalRef(messages);
  return result;
}

void vm_attach() {
  void *made = nullptr;
  CHECK(machine->AttachCurrentThread(&made, nullptr) == JNI_OK, "not attached");
}

void vm_detach() {
  CHECK(machine->DetachCurrentThread() == JNI_OK, "not detached");
}
