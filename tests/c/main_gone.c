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
  /* On a busy machine a thread that runs may not be caught running in one block. */
  unsigned naming = 0;
  uint64_t n = 0;
  while (naming == 0 && n < 20) {
    n++;
    blocking_dispatch(loop, "work item", n, 300);
    flush();
    naming = blocks_get(BC_BLOCK_ENDED, n)->samples_naming;
  }
  const struct told *ended = blocks_get(BC_BLOCK_ENDED, n);
  CHECK(strcmp(ended->what, "work item") == 0, "named '%s'", ended->what);
  CHECK(naming > 0, "none of %u samples of block %u names the function", ended->samples, (unsigned)n);
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
