/* The native half of dev.blockcanary.BlockCanary: compile it into the library that blockcanary is linked into. */
#include <blockcanary.h>
#include <jni.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define NATIVE(type, name) JNIEXPORT type JNICALL Java_dev_blockcanary_BlockCanary_##name

static JavaVM *vm;
static jclass canary;
static jmethodID on_block;

static jstring answer(JNIEnv *env, bc_status status) {
  return status == BC_OK ? NULL : (*env)->NewStringUTF(env, bc_status_str(status));
}

static jbyteArray bytes(JNIEnv *env, const char *text, size_t length) {
  if (text == NULL) {
    return NULL;
  }
  jbyteArray array = (*env)->NewByteArray(env, (jsize)length);
  if (array != NULL) {
    (*env)->SetByteArrayRegion(env, array, 0, (jsize)length, (const jbyte *)text);
  }
  return array;
}

static void tell(JNIEnv *env, const bc_block *block) {
  size_t length = bc_block_format_text(block, NULL, 0);
  char *text = malloc(length + 1);
  if (text == NULL || (*env)->PushLocalFrame(env, 8) != 0) {
    free(text);
    return;
  }
  bc_block_format_text(block, text, length + 1);
  jbyteArray what = bytes(env, block->what, block->what == NULL ? 0 : strlen(block->what));
  jbyteArray path = bytes(env, block->report_path, block->report_path == NULL ? 0 : strlen(block->report_path));
  jbyteArray report = bytes(env, text, length);
  if (!(*env)->ExceptionCheck(env)) {
    (*env)->CallStaticVoidMethod(env, canary, on_block, (jlong)block->id, (jint)block->state,
                                 (jlong)(block->wall_ns / 1000000), what, path, report);
  }
  if ((*env)->ExceptionCheck(env)) {
    /* A listener's mistake ends with it: nobody else could catch it. */
    (*env)->ExceptionDescribe(env);
    (*env)->ExceptionClear(env);
  }
  (*env)->PopLocalFrame(env, NULL);
  free(text);
}

/* On the library's own thread, which blocks all signals; a VM needs those that a fault of Java code's raises. */
static void listener(const bc_block *block, void *user_data) {
  (void)user_data;
  sigset_t faults, before;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  sigaddset(&faults, SIGFPE);
  sigaddset(&faults, SIGILL);
  sigaddset(&faults, SIGTRAP);
  pthread_sigmask(SIG_UNBLOCK, &faults, &before);
  JavaVMAttachArgs name = {JNI_VERSION_1_6, (char *)"bc-reporter", NULL};
#ifdef __ANDROID__
  JNIEnv *env = NULL;
#else
  void *env = NULL;
#endif
  if ((*vm)->AttachCurrentThreadAsDaemon(vm, &env, &name) == JNI_OK) {
    tell(env, block);
    (*vm)->DetachCurrentThread(vm);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

NATIVE(jstring, nativeInstall)
(JNIEnv *env, jclass class, jint threshold_ms, jint interval_ms, jlong seconds, jobjectArray words) {
  if (canary == NULL) {
    on_block = (*env)->GetStaticMethodID(env, class, "onBlock", "(JIJ[B[B[B)V");
    if (on_block == NULL || (*env)->GetJavaVM(env, &vm) != JNI_OK) {
      return NULL; /* an exception is pending */
    }
    canary = (*env)->NewGlobalRef(env, class);
  }
  bc_config config;
  bc_config_init(&config, sizeof config);
  config.block_threshold_ms = (uint32_t)threshold_ms;
  config.sample_interval_ms = (uint32_t)interval_ms;
  config.monitor_duration_s = (uint32_t)(seconds > UINT32_MAX ? UINT32_MAX : seconds);
  const char **places[] = {&config.report_dir,   &config.qualifier, &config.version_name,
                           &config.version_code, &config.user_id,   &config.network_type};
  enum { WORDS = sizeof places / sizeof places[0] };
  jbyteArray arrays[WORDS];
  /* Each ends in a NUL. The library copies them. */
  for (int i = 0; i < WORDS; i++) {
    arrays[i] = (*env)->GetObjectArrayElement(env, words, i);
    *places[i] = arrays[i] == NULL ? NULL : (const char *)(*env)->GetByteArrayElements(env, arrays[i], NULL);
  }
  bc_status status = bc_install(&config);
  for (int i = 0; i < WORDS; i++) {
    if (*places[i] != NULL) {
      (*env)->ReleaseByteArrayElements(env, arrays[i], (jbyte *)*places[i], JNI_ABORT);
    }
  }
  if (status == BC_OK) {
    status = bc_set_listener(listener, NULL);
    if (status != BC_OK) {
      bc_uninstall(); /* so that it can be tried again */
    }
  }
  return answer(env, status);
}

NATIVE(jstring, nativeStart)(JNIEnv *env, jclass class) {
  (void)class;
  bc_loop *loop;
  bc_status status = bc_java_watch(vm, NULL, &loop);
  return answer(env, status == BC_OK ? bc_start() : status);
}

NATIVE(jstring, nativeStop)(JNIEnv *env, jclass class) {
  (void)class;
  return answer(env, bc_stop());
}
