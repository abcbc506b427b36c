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

/* Spins below a page that nobody may touch, in a stack carved out of this thread's own. */
static void *carve(void *unused) {
  static char *carved;
  loop = watched("carved");
  blocking_dispatch(loop, "before", 1, 150); /* so that the library has seen the stack as it was */
  char room[4 * STACK];
  carved = (char *)(((uintptr_t)room + 4095) & ~(uintptr_t)4095);
  CHECK(mprotect(carved + STACK, 4096, PROT_NONE) == 0, "mprotect");
  make(&second, carved, block);
  CHECK(swapcontext(&outer, &second) == 0, "swapcontext");
  CHECK(mprotect(carved + STACK, 4096, PROT_READ | PROT_WRITE) == 0, "mprotect");
  return unused;
}

static void carved_out(void) {
  bc_config config = config_of(100);
  config.sample_interval_ms = 10;
  config.sampling_method = BC_SAMPLING_SIGNAL;
  install_and_start(&config);
  join_thread(start_thread(carve, NULL));
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 1) == 1 && blocks_tagged(BC_BLOCK_ENDED, 2) == 1, "%u, %u blocks",
        blocks_tagged(BC_BLOCK_ENDED, 1), blocks_tagged(BC_BLOCK_ENDED, 2));
  CHECK(blocks_get(BC_BLOCK_ENDED, 2)->samples_with_stack > 0, "no stack from below the page");
  CHECK_OK(bc_uninstall());
}

CASES({"neighbour_unmapped", neighbour_unmapped}, {"carved_out", carved_out})
