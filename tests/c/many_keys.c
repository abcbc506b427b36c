/* A program with many thread-specific keys of its own: the end of a watched thread is noticed all the same. */
#include <pthread.h>

#include "check.h"
#include "support/blocks.h"

static void *watch(void *argument) {
  watched("first");
  return argument;
}

static void *block(void *argument) {
  blocking_dispatch(watched("second"), "work", 2, 150);
  return argument;
}

static void take_keys(void) {
  for (int i = 0; i < 40; i++) {
    pthread_key_t key;
    CHECK(pthread_key_create(&key, NULL) == 0, "no key");
  }
}

/* Within a second, says the contract, also while nothing is dispatched. */
static void end_is_noticed(void) {
  take_keys();
  bc_config config = config_of(50);
  install_and_start(&config);
  pause_ms(1500); /* the monitor has parked */
  join_thread(start_thread(watch, NULL));
  WAIT_FOR(health().loops_watched == 0, 2000);
  CHECK_OK(bc_uninstall());
}

/* The next thread may have the same handle; it is another one. */
static void handle_used_again(void) {
  take_keys();
  bc_config config = config_of(50);
  install_and_start(&config);
  join_thread(start_thread(watch, NULL));
  join_thread(start_thread(block, NULL));
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 2) == 1, "%u blocks", blocks_tagged(BC_BLOCK_ENDED, 2));
  CHECK_OK(bc_uninstall());
}

CASES({"end_is_noticed", end_is_noticed}, {"handle_used_again", handle_used_again})
