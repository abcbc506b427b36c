// A game with a loop of its own, in C++, and what is to be added so that it is watched: the lines marked [+], and in
// CMakeLists.txt
//
//   target_link_libraries(game PRIVATE blockcanary::blockcanary)
//
// A frame is one dispatch; waiting for the next one is outside of it, and no block. An inner dispatch names a part of the
// frame. What may take longer says so.
#include <time.h>

#include "blocking.h"
#include "telling.h"  // [+] your own listener

#include <blockcanary.hpp>  // [+]

namespace {

bc_loop *loop;  // [+]

void load_level() { engine_sleep(600); }

// Too long on purpose, once.
void find_path(unsigned frame) { engine_spin(frame == 40 ? 500 : 1); }
void draw() { engine_spin(1); }

void update(unsigned frame) {
  if (frame == 20) {
    blockcanary::Allowance loading(loop, 30000, "level");  // [+]
    load_level();
  }
  blockcanary::Dispatch dispatch(loop, "update", frame);  // [+]
  find_path(frame);
}

void watch() {                                 // [+]
  bc_config config;                            // [+]
  bc_config_init(&config, sizeof config);      // [+]
  config.block_threshold_ms = 200;             // [+]
  bc_install(&config);                         // [+] and config.report_dir
  bc_set_listener(telling_listener, nullptr);  // [+]
  bc_start();                                  // [+]
  bc_loop_watch("loop", &loop);                // [+]
}                                              // [+]

}  // namespace

int main() {
  watch();  // [+]
  for (unsigned frame = 1; frame <= 60; frame++) {
    {
      blockcanary::Dispatch dispatch(loop, "frame", frame);  // [+]
      update(frame);
      draw();
    }
    const timespec rest = {0, 5000000};
    nanosleep(&rest, nullptr);
  }
  bc_uninstall();  // [+]
}
