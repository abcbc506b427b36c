/* What Android's framework finds in the system: native methods of Looper's neighbours, over the genuine android::Looper. */
#ifndef ANDROID_H
#define ANDROID_H

#include <jni.h>

/* The calling thread's next poll throws, by which the main loop ends. */
extern thread_local bool android_leaves;

void android_register(JNIEnv *env);

#endif
