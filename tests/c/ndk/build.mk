# A stand-in for ndk-build: evaluates an Android.mk as that does, and says what it was told of each module.
#   make -f build.mk MK=path/to/Android.mk TARGET_ARCH_ABI=abi
my-dir = $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
here := $(call my-dir)
CLEAR_VARS := $(here)/clear.mk
PREBUILT_STATIC_LIBRARY := $(here)/module.mk
BUILD_STATIC_LIBRARY := $(here)/module.mk
include $(MK)

.PHONY: all
all:
	@:
