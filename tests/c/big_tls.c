/* A program with large thread-local variables: the C library takes them from each thread's stack, ours too. */
#include <string.h>

#include "check.h"
#include "support/blocks.h"

#ifndef BYTES
#define BYTES (180 * 1024)
#endif

static __thread char large[BYTES];

static void block(void) {
  memset(large, 1, sizeof large);
  bc_config config = config_of(50);
  install_and_start(&config);
  bc_loop *loop = watched("large");
  blocking_dispatch(loop, "work", 1, 150);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 1) == 1, "%u blocks", blocks_tagged(BC_BLOCK_ENDED, 1));
  CHECK_OK(bc_uninstall());
}

CASES({"block", block})
