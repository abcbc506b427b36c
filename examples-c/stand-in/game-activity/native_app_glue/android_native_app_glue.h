/* A stand-in for the header of this name in the package androidx.games:games-activity, with its names and as much of it as
 * the example needs, so that this builds and runs on a desktop. On a device leave it out and use the package's. */
#ifndef STAND_IN_GAME_ACTIVITY_GLUE_H
#define STAND_IN_GAME_ACTIVITY_GLUE_H

#include <android/looper.h>
#include <stdint.h>

#include "../../activity.h"

#ifdef __cplusplus
extern "C" {
#endif

struct android_app;

struct android_poll_source {
  int32_t id;
  struct android_app *app;
  void (*process)(struct android_app *app, struct android_poll_source *source);
};

/* A touch, and where. */
struct GameActivityMotionEvent {
  float x;
};

enum { NATIVE_APP_GLUE_MAX_NUM_MOTION_EVENTS = 16 };

/* Touches do not pass through the looper: they are gathered here, until the game asks for them. */
struct android_input_buffer {
  struct GameActivityMotionEvent motionEvents[NATIVE_APP_GLUE_MAX_NUM_MOTION_EVENTS];
  uint64_t motionEventsCount;
};

struct android_app {
  void *userData;
  void (*onAppCmd)(struct android_app *app, int32_t command);
  GameActivity *activity;
  ALooper *looper;
  int destroyRequested;
  struct android_input_buffer inputBuffers[2];
  int currentInputBuffer;
  /* The glue's own. */
  struct android_poll_source cmdPollSource;
  struct glue *glue;
};

enum { LOOPER_ID_MAIN = 1, LOOPER_ID_USER = 3 };
enum { APP_CMD_INIT_WINDOW = 1, APP_CMD_TERM_WINDOW = 2, APP_CMD_DESTROY = 15 };

/* What has come since the last call; NULL: nothing. */
struct android_input_buffer *android_app_swap_input_buffers(struct android_app *app);
void android_app_clear_motion_events(struct android_input_buffer *buffer);

/* The game's. Runs on a thread of its own. */
extern void android_main(struct android_app *app);

#ifdef __cplusplus
}
#endif
#endif
