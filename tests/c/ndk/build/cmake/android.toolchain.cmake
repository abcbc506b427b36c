# A stand-in for the NDK's file of this name: says what it was asked for, and leaves the compiler as it is.
set(ANDROID ON)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ANDROID_ABI ANDROID_PLATFORM)
if(NOT ANDROID_ABI OR NOT ANDROID_PLATFORM)
  message(FATAL_ERROR "neither ABI nor platform")
endif()
message(STATUS "asked for ${ANDROID_ABI}, ${ANDROID_PLATFORM}")
