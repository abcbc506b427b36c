/* A stand-in for the NDK's sources/android/native_app_glue/android_native_app_glue.h, with its names and as much of it as
 * the example needs, so that this builds and runs on a desktop. On a device leave it out and use the NDK's. */
#ifndef STAND_IN_NATIVE_APP_GLUE_H
#define STAND_IN_NATIVE_APP_GLUE_H

#include <android/looper.h>
#include <stdint.h>

#include "../activity.h"

struct android_app;

struct android_poll_source {
  int32_t id;
  struct android_app *app;
  void (*process)(struct android_app *app, struct android_poll_source *source);
};

/* A touch, and where. */
typedef struct AInputEvent {
  float x;
} AInputEvent;

struct android_app {
  void *userData;
  void (*onAppCmd)(struct android_app *app, int32_t command);
  int32_t (*onInputEvent)(struct android_app *app, AInputEvent *event);
  ANativeActivity *activity;
  ALooper *looper;
  int destroyRequested;
  /* The glue's own. */
  struct android_poll_source cmdPollSource, inputPollSource;
  struct glue *glue;
};

enum { LOOPER_ID_MAIN = 1, LOOPER_ID_INPUT = 2, LOOPER_ID_USER = 3 };
enum { APP_CMD_INPUT_CHANGED, APP_CMD_INIT_WINDOW, APP_CMD_TERM_WINDOW, APP_CMD_DESTROY = 15 };

/* The game's. Runs on a thread of its own. */
extern void android_main(struct android_app *app);

#endif
