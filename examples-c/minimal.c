/* Any loop of any thread can be watched; here it is a plain one, and its third round blocks. */
#include <blockcanary.h>
#include <stdio.h>
#include <time.h>

static void compute_ms(long ms) {
  clock_t end = clock() + ms * CLOCKS_PER_SEC / 1000;
  while (clock() < end) {
  }
}

static void on_block(const bc_block *block, void *user_data) {
  (void)user_data;
  if (block->state == BC_BLOCK_ENDED) {
    printf("%s was blocked for %.1f ms in %s: %s\n", block->loop_name, (double)block->wall_ns / 1e6, block->what,
           block->report_path);
  }
}

int main(void) {
  bc_config config;
  bc_config_init(&config, sizeof config);
  config.block_threshold_ms = 100;
  config.report_dir = "minimal-reports";
  bc_status status = bc_install(&config);
  if (status != BC_OK) {
    fprintf(stderr, "blockcanary: %s\n", bc_status_str(status));
    return 1;
  }
  bc_set_listener(on_block, NULL);
  bc_start();

  bc_loop *loop;
  bc_loop_watch("main loop", &loop);
  for (unsigned round = 1; round <= 5; round++) {
    bc_dispatch_begin(loop, "round", round);
    compute_ms(round == 3 ? 300 : 10);
    bc_dispatch_end(loop);
  }
  bc_flush(1000);
  return bc_uninstall() != BC_OK;
}
