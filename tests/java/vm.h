/* A Java VM in the test's own process, and the app in it. */
#ifndef VM_H
#define VM_H

#include <jni.h>

/* Begins, on the calling thread, which becomes the app's main one. */
void vm_begin(void);
/* The same without the VM's checks of calls. */
void vm_begin_fast(void);
JavaVM *vm(void);
/* Calls static methods of the app's: `name` with as many numbers as `signature` says. */
void app(const char *name, const char *signature, ...);
jint app_number(const char *name, jint number);
/* The same of `Others`. */
jint number_of(const char *of, const char *name, jint number);
jint others(const char *name, jint number);
bool app_truth(const char *name, jint number);
/* Calls this with the numbers of `Messages.step`. */
extern void (*on_step)(JNIEnv *env, jint step);
/* Attaches the calling thread, and detaches it. */
void vm_attach(void);
void vm_detach(void);

#endif
