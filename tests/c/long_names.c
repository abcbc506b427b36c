/* A deep stack of functions with long names, as templates have them: the block's own texts have room all the same. */
#include <string.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

#define A8(name) name##aaaaaaaabbbbbbbbccccccccddddddddeeeeeeeeffffffffgggggggghhhhhhhh
#define A16(name) A8(name##iiiiiiiijjjjjjjjkkkkkkkkllllllllmmmmmmmmnnnnnnnnoooooooopppppppp)
#define LONG(name) A16(name##qqqqqqqqrrrrrrrrssssssssttttttttuuuuuuuuvvvvvvvvwwwwwwwwxxxxxxxx)
#define LINK(name, next)                                     \
  __attribute__((noinline)) void LONG(name)(void);           \
  void LONG(name)(void) {                                    \
    next();                                                  \
    __asm__ volatile("");                                    \
  }
#define TEN(name, next)                                                                                             \
  LINK(name##0, next) LINK(name##1, LONG(name##0)) LINK(name##2, LONG(name##1)) LINK(name##3, LONG(name##2))         \
  LINK(name##4, LONG(name##3)) LINK(name##5, LONG(name##4)) LINK(name##6, LONG(name##5))                             \
  LINK(name##7, LONG(name##6)) LINK(name##8, LONG(name##7)) LINK(name##9, LONG(name##8))
#define HUNDRED(name, next)                                                                                         \
  TEN(name##0, next) TEN(name##1, LONG(name##09)) TEN(name##2, LONG(name##19)) TEN(name##3, LONG(name##29))          \
  TEN(name##4, LONG(name##39)) TEN(name##5, LONG(name##49)) TEN(name##6, LONG(name##59))                             \
  TEN(name##7, LONG(name##69)) TEN(name##8, LONG(name##79)) TEN(name##9, LONG(name##89))

static void innermost(void) {
  spin_ms(200);
}

HUNDRED(first, innermost)
HUNDRED(second, LONG(first99))
HUNDRED(third, LONG(second99))
HUNDRED(fourth, LONG(third99))

static void what_and_path(void) {
  bc_config config = config_of(50);
  config.report_dir = fresh_directory("long_names");
  config.max_stack_depth = 512;
  install_and_start(&config);
  bc_loop *loop = watched("deep");
  bc_dispatch_begin(loop, "the name", 1);
  LONG(fourth99)();
  bc_dispatch_end(loop);
  flush();
  const struct told *ended = blocks_get(BC_BLOCK_ENDED, 1);
  CHECK(strcmp(ended->what, "the name") == 0, "named '%s'", ended->what);
  CHECK(ended->path[0] != 0, "no report_path");
  CHECK_OK(bc_uninstall());
}

CASES({"what_and_path", what_and_path})
