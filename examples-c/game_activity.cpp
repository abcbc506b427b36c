// A game on GameActivity's glue, in C++, and what is to be added so that it is watched: the lines marked [+], and in
// CMakeLists.txt
//
//   target_link_libraries(game PRIVATE blockcanary::blockcanary)
//
// Here the loop calls bc_looper_poll_once itself, in the place of ALooper_pollOnce (the line marked [-]). GameActivity's
// input does not pass through the looper: touches lie in a buffer that the game asks for after each poll, whatever that has
// returned. So no callback and no ident stands for them; the time from any poll's return to the next poll sees them.
//
// android_main runs on a thread of its own, and Java's main thread waits for it while it handles a command: both are watched.
#include <game-activity/native_app_glue/android_native_app_glue.h>

#include "blocking.h"
#include "telling.h"  // [+] your own listener

#include <blockcanary.hpp>  // [+]

namespace {

ALooper *main_looper;  // [+]
// [+] A library is loaded by Java's main thread, if nobody loads it elsewhere.
__attribute__((constructor)) void find_main_looper() { main_looper = ALooper_forThread(); }  // [+]

bool has_window;

// Both too long on purpose.
void load_level() { engine_sleep(600); }
void aim(const GameActivityMotionEvent &touch) { engine_sleep(touch.x < 1 ? 500 : 1); }

void on_command(android_app *, int32_t command) {
  if (command == APP_CMD_INIT_WINDOW) {
    load_level();
    has_window = true;
  }
}

void handle_input(android_app *app) {
  android_input_buffer *buffer = android_app_swap_input_buffers(app);
  if (buffer == nullptr) {
    return;
  }
  for (uint64_t i = 0; i < buffer->motionEventsCount; i++) {
    aim(buffer->motionEvents[i]);
  }
  android_app_clear_motion_events(buffer);
}

bc_loop *watch() {                                   // [+]
  bc_config config;                                  // [+]
  bc_config_init(&config, sizeof config);            // [+]
  config.block_threshold_ms = 200;                   // [+]
  bc_install(&config);                               // [+] and config.report_dir: a folder below internalDataPath
  bc_set_listener(telling_listener, nullptr);        // [+]
  bc_start();                                        // [+]
  bc_loop *main_loop, *game;                         // [+]
  bc_looper_probe(main_looper, "main", &main_loop);  // [+] Java's main thread
  bc_loop_watch("game", &game);                      // [+] gives this thread's loop a name
  return game;                                       // [+]
}                                                    // [+]

}  // namespace

extern "C" void android_main(android_app *app) {
  bc_loop *game = watch();  // [+]
  app->onAppCmd = on_command;
  unsigned frame = 0;
  while (!app->destroyRequested) {
    android_poll_source *source = nullptr;
    void **data = reinterpret_cast<void **>(&source);
    bc_looper_poll_once(has_window ? 16 : -1, nullptr, nullptr, data);  // [+]
    // [-] ALooper_pollOnce(has_window ? 16 : -1, nullptr, nullptr, data);
    if (source != nullptr) {
      source->process(app, source);
    }
    handle_input(app);
    if (has_window) {
      blockcanary::Dispatch drawing(game, "draw", frame);  // [+] a name for a part of it
      engine_spin(1);
      if (++frame == 30) {
        engine_sleep(400);
      }
    }
  }
  bc_uninstall();  // [+]
}
