/* A game on native_app_glue, and what is to be added so that it is watched: the lines marked [+], and in CMakeLists.txt
 *
 *   target_link_libraries(game PRIVATE blockcanary::blockcanary)
 *   blockcanary_interpose_looper(game)
 *
 * With the second one the loop itself stays as it is: what the thread does from a poll's return to its next poll is one
 * dispatch, "between polls", whose tag is what the poll returned (here LOOPER_ID_MAIN for commands, LOOPER_ID_INPUT for
 * touches, ALOOPER_POLL_TIMEOUT for frames); a looper's callback is a dispatch of the callback's name.
 *
 * android_main runs on a thread of its own. Java's main thread waits for it while it handles a command, so that a game that
 * takes long there freezes the other one, too, and that is what the system complains about: both are watched. */
#include <android_native_app_glue.h>
#include <stdbool.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "blocking.h"
#include "telling.h" /* [+] your own listener */

#include <blockcanary.h> /* [+] */

static ALooper *main_looper; /* [+] */

/* [+] A library is loaded by Java's main thread, if nobody loads it elsewhere. */
__attribute__((constructor)) static void find_main_looper(void) { main_looper = ALooper_forThread(); } /* [+] */

static bool has_window;
static unsigned frames;

/* Four times too long on purpose. */
static void load_level(void) { engine_sleep(600); }
static void aim(void) { engine_spin(500); }
static void draw(void) { frames++ == 20 ? engine_sleep(400) : engine_spin(1); }

int on_music(int fd, int events, void *data);
int on_music(int fd, int events, void *data) {
  uint64_t times;
  (void)events, (void)data;
  if (read(fd, &times, sizeof times) == sizeof times) {
    engine_sleep(450);
  }
  return 0;
}

static void begin_music(struct android_app *app) {
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  struct itimerspec later = {.it_value.tv_sec = 2};
  timerfd_settime(timer, 0, &later, NULL);
  ALooper_addFd(app->looper, timer, ALOOPER_POLL_CALLBACK, ALOOPER_EVENT_INPUT, on_music, NULL);
}

static void on_command(struct android_app *app, int32_t command) {
  if (command == APP_CMD_INIT_WINDOW) {
    load_level();
    begin_music(app);
    has_window = true;
  }
}

static int32_t on_input(struct android_app *app, AInputEvent *event) {
  (void)app, (void)event;
  aim();
  return 1;
}

static void watch(void) {                            /* [+] */
  bc_config config;                                  /* [+] */
  bc_config_init(&config, sizeof config);            /* [+] */
  config.block_threshold_ms = 200;                   /* [+] */
  bc_install(&config);                               /* [+] and config.report_dir: a folder below internalDataPath */
  bc_set_listener(telling_listener, NULL);           /* [+] */
  bc_start();                                        /* [+] */
  bc_loop *main_loop, *game;                         /* [+] */
  bc_looper_probe(main_looper, "main", &main_loop);  /* [+] Java's main thread */
  bc_loop_watch("game", &game);                      /* [+] gives this thread's loop a name */
}                                                    /* [+] */

void android_main(struct android_app *app) {
  watch(); /* [+] */
  app->onAppCmd = on_command;
  app->onInputEvent = on_input;
  while (!app->destroyRequested) {
    struct android_poll_source *source = NULL;
    ALooper_pollOnce(has_window ? 16 : -1, NULL, NULL, (void **)&source);
    if (source != NULL) {
      source->process(app, source);
    }
    if (has_window) {
      draw();
    }
  }
  bc_uninstall(); /* [+] */
}
