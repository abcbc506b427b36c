// Polls five times, and prints what the library has seen of it: nothing without hooks or without the library.
#include <blockcanary.hpp>
#include <cstdio>

extern "C" int ALooper_pollOnce(int timeout_ms, int *out_fd, int *out_events, void **out_data);

int main() {
  if (bc_install(nullptr) != BC_OK || bc_start() != BC_OK) {
    return 1;
  }
  bool running = bc_is_running();
  bc_loop *loop = nullptr;
  if (bc_loop_watch("polls", &loop) != BC_OK) {
    return 1;
  }
  for (int i = 0; i < 5; i++) {
    if (ALooper_pollOnce(0, nullptr, nullptr, nullptr) != -3) {
      return 1;
    }
  }
  bc_loop_idle(loop);
  bc_loop_stats stats = {};
  stats.struct_size = sizeof stats;
  if (bc_loop_stats_get(loop, &stats) != BC_OK) {
    return 1;
  }
  std::printf("%s, %d dispatches\n", running ? "live" : "noop", static_cast<int>(stats.dispatches));
  return bc_uninstall() != BC_OK;
}
