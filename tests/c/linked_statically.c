/* A program that is linked with -static: the linker makes no table of its unwind information then unless it is told to. */
#include "check.h"
#include "support/blocks.h"

STAYS static void the_outer_function(bc_loop *loop) {
  bc_dispatch_begin(loop, "spins", 1);
  spin_ms(300);
  bc_dispatch_end(loop);
  __asm__ volatile("");
}

static void stacks(void) {
  bc_config config = config_of(60);
  config.sample_interval_ms = 20;
  blocks_expect("the_outer_function", 8);
  install_and_start(&config);
  the_outer_function(watched("static"));
  flush();
  const struct told *ended = blocks_get(BC_BLOCK_ENDED, 1);
  CHECK(ended->samples_with_stack >= 4, "%u of %u samples have frames", ended->samples_with_stack, ended->samples);
  CHECK(ended->samples_naming * 20 >= ended->samples_with_stack * 19, "%u of %u stacks name it", ended->samples_naming,
        ended->samples_with_stack);
  CHECK_OK(bc_uninstall());
}

CASES({"stacks", stacks})
