/* A program's own handler of the signal that it asked for, running while the library is uninstalled. */
#include <signal.h>
#include <stdatomic.h>

#include "check.h"
#include "support/blocks.h"

static atomic_bool inside, released;

static void own_handler(int number) {
  (void)number;
  atomic_store(&inside, true);
  while (!atomic_load(&released)) {
    pause_ms(1);
  }
}

static void *raise_it(void *argument) {
  raise(SIGRTMIN + 5);
  return argument;
}

/* After a timeout everything is still installed: a start makes it work again. */
static void works_after_timeout(void) {
  signal(SIGRTMIN + 5, own_handler);
  bc_config config = config_of(50);
  config.signal_number = SIGRTMIN + 5;
  install_and_start(&config);
  WAIT_FOR(health().signal_available, 5000);
  unsigned long other = start_thread(raise_it, NULL);
  WAIT_FOR(atomic_load(&inside), 5000);
  CHECK_STATUS(bc_uninstall(), BC_ERROR_TIMEOUT);
  atomic_store(&released, true);
  join_thread(other);
  CHECK_OK(bc_start());
  blocking_dispatch(watched("again"), "work", 1, 100);
  CHECK_OK(bc_flush(5000));
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 1) == 1, "%u blocks", blocks_tagged(BC_BLOCK_ENDED, 1));
  CHECK_OK(bc_uninstall());
}

CASES({"works_after_timeout", works_after_timeout})
