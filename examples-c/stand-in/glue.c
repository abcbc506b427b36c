/* A stand-in for android_native_app_glue.c, NativeActivity's or (with STAND_IN_GAME_ACTIVITY) GameActivity's: starts
 * android_main on a thread of its own, sends it commands by a pipe in its looper, and has the activity's thread wait until
 * the game has done what a command says. */
#ifdef STAND_IN_GAME_ACTIVITY
#include <game-activity/native_app_glue/android_native_app_glue.h>
#else
#include <android_native_app_glue.h>
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct glue {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int commands[2], touches[2];
  int done; /* the last command that the game has done */
  int running;
};

static void must(int good, const char *what) {
  if (!good) {
    perror(what);
    exit(1);
  }
}

static void process_command(struct android_app *app, struct android_poll_source *source) {
  (void)source;
  char command;
  must(read(app->glue->commands[0], &command, 1) == 1, "a command");
  app->destroyRequested |= command == APP_CMD_DESTROY;
  if (app->onAppCmd != NULL) {
    app->onAppCmd(app, command);
  }
  pthread_mutex_lock(&app->glue->mutex);
  app->glue->done = command;
  pthread_cond_broadcast(&app->glue->changed);
  pthread_mutex_unlock(&app->glue->mutex);
}

/* Here Java's thread is blocked for as long as the game is. */
__attribute__((noinline)) void glue_wait_for_game(struct android_app *app, int command);
__attribute__((noinline)) void glue_wait_for_game(struct android_app *app, int command) {
  pthread_mutex_lock(&app->glue->mutex);
  while (app->glue->done != command) {
    pthread_cond_wait(&app->glue->changed, &app->glue->mutex);
  }
  pthread_mutex_unlock(&app->glue->mutex);
}

static void send_command(struct activity *activity, char command) {
  struct android_app *app = activity->instance;
  app->glue->done = -1;
  must(write(app->glue->commands[1], &command, 1) == 1, "a command");
  glue_wait_for_game(app, command);
}

static void on_window(struct activity *activity) {
  send_command(activity, APP_CMD_INIT_WINDOW);
}

static void on_destroy(struct activity *activity) {
  struct android_app *app = activity->instance;
  send_command(activity, APP_CMD_DESTROY);
  pthread_join(app->glue->thread, NULL);
  free(app->glue);
  free(app);
}

#ifdef STAND_IN_GAME_ACTIVITY

static void on_touch(struct activity *activity, float x) {
  struct android_app *app = activity->instance;
  pthread_mutex_lock(&app->glue->mutex);
  struct android_input_buffer *buffer = &app->inputBuffers[app->currentInputBuffer];
  if (buffer->motionEventsCount < NATIVE_APP_GLUE_MAX_NUM_MOTION_EVENTS) {
    buffer->motionEvents[buffer->motionEventsCount++].x = x;
  }
  pthread_mutex_unlock(&app->glue->mutex);
}

struct android_input_buffer *android_app_swap_input_buffers(struct android_app *app) {
  pthread_mutex_lock(&app->glue->mutex);
  struct android_input_buffer *buffer = &app->inputBuffers[app->currentInputBuffer];
  if (buffer->motionEventsCount > 0) {
    app->currentInputBuffer = 1 - app->currentInputBuffer;
  }
  pthread_mutex_unlock(&app->glue->mutex);
  return buffer->motionEventsCount > 0 ? buffer : NULL;
}

void android_app_clear_motion_events(struct android_input_buffer *buffer) {
  buffer->motionEventsCount = 0;
}

#else

static void on_touch(struct activity *activity, float x) {
  struct android_app *app = activity->instance;
  must(write(app->glue->touches[1], &x, sizeof x) == sizeof x, "a touch");
}

static void process_input(struct android_app *app, struct android_poll_source *source) {
  (void)source;
  AInputEvent event;
  must(read(app->glue->touches[0], &event.x, sizeof event.x) == sizeof event.x, "a touch");
  if (app->onInputEvent != NULL) {
    app->onInputEvent(app, &event);
  }
}

#endif

static void *glue_main(void *argument) {
  struct android_app *app = argument;
  app->looper = ALooper_prepare(ALOOPER_PREPARE_ALLOW_NON_CALLBACKS);
  app->cmdPollSource = (struct android_poll_source){LOOPER_ID_MAIN, app, process_command};
  ALooper_addFd(app->looper, app->glue->commands[0], LOOPER_ID_MAIN, ALOOPER_EVENT_INPUT, NULL, &app->cmdPollSource);
#ifndef STAND_IN_GAME_ACTIVITY
  app->inputPollSource = (struct android_poll_source){LOOPER_ID_INPUT, app, process_input};
  ALooper_addFd(app->looper, app->glue->touches[0], LOOPER_ID_INPUT, ALOOPER_EVENT_INPUT, NULL, &app->inputPollSource);
#endif
  pthread_mutex_lock(&app->glue->mutex);
  app->glue->running = 1;
  pthread_cond_broadcast(&app->glue->changed);
  pthread_mutex_unlock(&app->glue->mutex);
  android_main(app);
  return NULL;
}

static struct activity_callbacks callbacks = {on_window, on_touch, on_destroy};

__attribute__((visibility("default"))) void stand_in_on_create(struct activity *activity);
void stand_in_on_create(struct activity *activity) {
  struct android_app *app = calloc(1, sizeof *app);
  struct glue *glue = calloc(1, sizeof *glue);
  must(app != NULL && glue != NULL, "memory");
  app->activity = activity;
  app->glue = glue;
  activity->callbacks = &callbacks;
  activity->instance = app;
  pthread_mutex_init(&glue->mutex, NULL);
  pthread_cond_init(&glue->changed, NULL);
  must(pipe(glue->commands) == 0 && pipe(glue->touches) == 0, "pipes");
  must(pthread_create(&glue->thread, NULL, glue_main, app) == 0, "a thread");
  pthread_mutex_lock(&glue->mutex);
  while (!glue->running) {
    pthread_cond_wait(&glue->changed, &glue->mutex);
  }
  pthread_mutex_unlock(&glue->mutex);
}
