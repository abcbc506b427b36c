/* A loop that is watched from a stack of the program's own making, which goes while the thread lives. */
#include <sys/mman.h>
#include <ucontext.h>

#include "check.h"
#include "support/blocks.h"

#define STACK (64u * 1024u)

static ucontext_t outer, first, second;
static bc_loop *loop;

static void watch(void) {
  loop = watched("fibers");
}

static void block(void) {
  blocking_dispatch(loop, "in the second", 2, 300);
}

static void make(ucontext_t *fiber, char *stack, void (*run)(void)) {
  CHECK(getcontext(fiber) == 0, "getcontext");
  fiber->uc_stack.ss_sp = stack;
  fiber->uc_stack.ss_size = STACK;
  fiber->uc_link = &outer;
  makecontext(fiber, run, 0);
}

/* Two stacks side by side are one mapping for the kernel. */
static void neighbour_unmapped(void) {
  bc_config config = config_of(100);
  install_and_start(&config);
  char *stacks = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(stacks != MAP_FAILED, "mmap");
  make(&first, stacks + STACK, watch);
  make(&second, stacks, block);
  CHECK(swapcontext(&outer, &first) == 0, "swapcontext");
  blocking_dispatch(loop, "meanwhile", 1, 40);
  CHECK(munmap(stacks + STACK, STACK) == 0, "munmap");
  CHECK(swapcontext(&outer, &second) == 0, "swapcontext");
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 2) == 1, "%u blocks", blocks_tagged(BC_BLOCK_ENDED, 2));
  CHECK_OK(bc_uninstall());
}

CASES({"neighbour_unmapped", neighbour_unmapped})
