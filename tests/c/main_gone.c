/* The main thread ends by pthread_exit and the process goes on: what is read of it must not go through that thread. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "support/blocks.h"

static void *work(void *argument) {
  pause_ms(200); /* the main thread is gone */
  blocks_expect("spin_ms", 8);
  bc_loop *loop = watched("worker");
  blocking_dispatch(loop, "work item", 1, 300);
  flush();
  const struct told *ongoing = blocks_get(BC_BLOCK_ONGOING, 1);
  CHECK(strcmp(ongoing->what, "work item") == 0, "named '%s'", ongoing->what);
  const struct told *ended = blocks_get(BC_BLOCK_ENDED, 1);
  CHECK(ended->samples_naming > 0, "none of %u samples names the function", ended->samples);
  CHECK_OK(bc_uninstall());
  exit(0);
  return argument;
}

static void goes_on(void) {
  bc_config config = config_of(50);
  install_and_start(&config);
  start_thread(work, NULL);
  pthread_exit(NULL);
}

CASES({"goes_on", goes_on})
