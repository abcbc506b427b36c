/* Two Rust libraries in one program: it links, ours works, and the other one still catches its own panics. */
#include "../check.h"
#include "../support/blocks.h"

int second_catches(int value);

static void together(void) {
  bc_config config = config_of(50);
  install_and_start(&config);
  CHECK(second_catches(1) == 1, "the other library's panic was not caught");
  blocking_dispatch(watched("two"), "late", 1, 100);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 1) == 1, "%u blocks", blocks_tagged(BC_BLOCK_ENDED, 1));
  CHECK_OK(bc_uninstall());
}

CASES({"together", together})
