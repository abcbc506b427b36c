# blockcanary for ndk-build, from archives that are built already: those of `cargo xtask android`, or of the folder that
# `cargo xtask dist` makes. In a project's Android.mk:
#
#   LOCAL_STATIC_LIBRARIES := blockcanary                                 the library
#   LOCAL_STATIC_LIBRARIES := blockcanary_interpose blockcanary           ... and the module's ALooper_* calls go through it
#   LOCAL_STATIC_LIBRARIES := blockcanary_noop                            the same interface, which does nothing
#   BLOCKCANARY_JNI := true                                               the library has bc_java_watch: `android --jni`
#   ...
#   include path/to/blockcanary/Android.mk
BLOCKCANARY_PATH := $(call my-dir)

# Beside this file in the folder of `cargo xtask dist`.
ifneq ($(wildcard $(BLOCKCANARY_PATH)/android),)
  BLOCKCANARY_ARCHIVES := android
else
  BLOCKCANARY_ARCHIVES := target/android
endif

ifeq ($(BLOCKCANARY_JNI),true)
  BLOCKCANARY_ARCHIVES := $(BLOCKCANARY_ARCHIVES)/jni
endif

LOCAL_PATH := $(BLOCKCANARY_PATH)
include $(CLEAR_VARS)
LOCAL_MODULE := blockcanary
LOCAL_SRC_FILES := $(BLOCKCANARY_ARCHIVES)/$(TARGET_ARCH_ABI)/libblockcanary.a
LOCAL_EXPORT_C_INCLUDES := $(LOCAL_PATH)/include
LOCAL_EXPORT_CFLAGS := -DBLOCKCANARY_ENABLED=1
LOCAL_EXPORT_LDLIBS := -ldl
ifeq ($(wildcard $(LOCAL_PATH)/$(LOCAL_SRC_FILES)),)
  $(error blockcanary: no archive for $(TARGET_ARCH_ABI): there is no $(LOCAL_PATH)/$(LOCAL_SRC_FILES); cargo xtask android makes those for arm64-v8a, armeabi-v7a, x86_64, x86 and riscv64, with --jni those for BLOCKCANARY_JNI)
endif
include $(PREBUILT_STATIC_LIBRARY)

# Calls of ALooper_addFd, _removeFd, _pollOnce and _pollAll by the module that links this, and by all archives in it.
LOCAL_PATH := $(BLOCKCANARY_PATH)
include $(CLEAR_VARS)
LOCAL_MODULE := blockcanary_interpose
LOCAL_SRC_FILES := c/interpose/looper.c
LOCAL_STATIC_LIBRARIES := blockcanary
LOCAL_EXPORT_LDFLAGS := -Wl,--wrap=ALooper_addFd -Wl,--wrap=ALooper_removeFd \
  -Wl,--wrap=ALooper_pollOnce -Wl,--wrap=ALooper_pollAll
LOCAL_EXPORT_LDLIBS := -landroid
include $(BUILD_STATIC_LIBRARY)

LOCAL_PATH := $(BLOCKCANARY_PATH)
include $(CLEAR_VARS)
LOCAL_MODULE := blockcanary_noop
LOCAL_SRC_FILES := c/noop/noop.c c/noop/looper.c
LOCAL_C_INCLUDES := $(LOCAL_PATH)/include
LOCAL_CFLAGS := -DBLOCKCANARY_VERSION='"0.1.0"'
LOCAL_EXPORT_C_INCLUDES := $(LOCAL_PATH)/include
LOCAL_EXPORT_CFLAGS := -DBLOCKCANARY_ENABLED=0
include $(BUILD_STATIC_LIBRARY)
