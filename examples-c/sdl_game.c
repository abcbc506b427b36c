/* A game on SDL, and what is to be added so that it is watched: the lines marked [+], and in CMakeLists.txt
 *
 *   target_link_libraries(game PRIVATE blockcanary::blockcanary)
 *
 * SDL polls the looper itself, where there is one, and its own queue: the game marks what it does with an event and in a
 * frame. Waiting for an event or for the display is outside of both, and no block. */
#include <SDL.h>
#include <stdbool.h>

#include "blocking.h"
#include "telling.h" /* [+] your own listener */

#include <blockcanary.h> /* [+] */

static bc_loop *loop; /* [+] */
static bool running = true;

/* Both too long on purpose. */
static void open_menu(void) { engine_sleep(500); }
static void draw(unsigned frame) { frame == 20 ? engine_spin(400) : engine_spin(1); }

static void handle(const SDL_Event *event) {
  if (event->type == SDL_QUIT) {
    running = false;
  } else if (event->type == SDL_KEYDOWN) {
    open_menu();
  }
}

/* [+] Called by the thread that learns of it, before the system stops the program's threads. */
static int on_app_event(void *unused, SDL_Event *event) {    /* [+] */
  (void)unused;                                              /* [+] */
  if (event->type == SDL_APP_WILLENTERBACKGROUND) {          /* [+] */
    bc_pause();                                              /* [+] */
  } else if (event->type == SDL_APP_DIDENTERFOREGROUND) {    /* [+] */
    bc_resume();                                             /* [+] */
  }                                                          /* [+] */
  return 1;                                                  /* [+] */
}                                                            /* [+] */

static void watch(void) {                   /* [+] */
  bc_config config;                         /* [+] */
  bc_config_init(&config, sizeof config);   /* [+] */
  config.block_threshold_ms = 200;          /* [+] */
  bc_install(&config);                      /* [+] and config.report_dir: SDL_GetPrefPath, or on Android the internal path */
  bc_set_listener(telling_listener, NULL);  /* [+] */
  bc_start();                               /* [+] */
  bc_loop_watch("SDL", &loop);              /* [+] on Android SDL_main has a thread of its own */
  SDL_AddEventWatch(on_app_event, NULL);    /* [+] */
}                                           /* [+] */

/* What a device would send. */
static void play(unsigned frame) {
  SDL_Event event = {.type = 0};
  switch (frame) {
    case 10: event.type = SDL_KEYDOWN; break;
    case 30: event.type = SDL_APP_WILLENTERBACKGROUND; break;
    case 31: engine_sleep(400); return;
    case 32: event.type = SDL_APP_DIDENTERFOREGROUND; break;
    case 60: event.type = SDL_QUIT; break;
    default: return;
  }
  SDL_PushEvent(&event);
}

int main(int argc, char **argv) {
  (void)argc, (void)argv;
  if (SDL_Init(SDL_INIT_VIDEO | SDL_INIT_EVENTS) != 0) {
    SDL_Log("SDL_Init: %s", SDL_GetError());
    return 1;
  }
  watch(); /* [+] */
  for (unsigned frame = 1; running; frame++) {
    play(frame);
    SDL_Event event;
    while (SDL_PollEvent(&event)) {
      bc_dispatch_begin(loop, "event", event.type); /* [+] */
      handle(&event);
      bc_dispatch_end(loop); /* [+] */
    }
    bc_dispatch_begin(loop, "frame", frame); /* [+] */
    draw(frame);
    bc_dispatch_end(loop); /* [+] */
    SDL_Delay(5); /* as SDL_GL_SwapWindow waits for the display */
  }
  bc_uninstall(); /* [+] */
  SDL_Quit();
  return 0;
}
