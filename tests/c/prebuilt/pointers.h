/* Put before the engine's source: its calls go by pointers, in data that stays writable and in data that does not. */
#include <android/looper.h>

#define PROTECTED __attribute__((section(".data.rel.ro")))

static int (*volatile add_fd)(ALooper *, int, int, int, ALooper_callbackFunc, void *) = ALooper_addFd;
PROTECTED static int (*const volatile remove_fd)(ALooper *, int) = ALooper_removeFd;
PROTECTED static int (*const volatile once)(int, int *, int *, void **) = ALooper_pollOnce;
static int (*volatile all)(int, int *, int *, void **) = ALooper_pollAll;

#define ALooper_addFd add_fd
#define ALooper_removeFd remove_fd
#define ALooper_pollOnce once
#define ALooper_pollAll all
