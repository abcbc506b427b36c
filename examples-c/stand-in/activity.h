/* A stand-in for what a device has and a desktop has not: of an activity in Java, as much as these examples need. On a
 * device <android/native_activity.h> and <game-activity/GameActivity.h> are in its place.
 *
 * host.c plays Java: its first thread loads the game's library and calls what is in `callbacks`. */
#ifndef STAND_IN_ACTIVITY_H
#define STAND_IN_ACTIVITY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct activity;

struct activity_callbacks {
  void (*onNativeWindowCreated)(struct activity *activity);
  void (*onTouchEvent)(struct activity *activity, float x);
  void (*onDestroy)(struct activity *activity);
};

struct activity {
  struct activity_callbacks *callbacks;
  void *instance;
};

typedef struct activity ANativeActivity;
typedef struct activity GameActivity;

#ifdef __cplusplus
}
#endif
#endif
