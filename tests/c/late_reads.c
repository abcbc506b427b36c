/* A dispatch ends, and its text goes, at the very moment at which the library is about to read that text. */
#include <dlfcn.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"

/* Longer than the reporter takes to tell of a block. */
#define TELLING_MS 200

static char text[64];
/* The library is to be held when it reads the text next; it is held; it may go on. */
static atomic_bool is_armed, is_held, may_go_on;
/* The thread that was held. It is held once more before it sleeps, so that it takes no further look at once. */
static atomic_long reader;

static long (*system_call)(long number, ...);

__attribute__((constructor)) static void find(void) {
  *(void **)&system_call = dlsym(RTLD_NEXT, "syscall");
}

/* Takes the place of the C library's, which the library calls. */
long syscall(long number, ...) {
  long a[6];
  va_list arguments;
  va_start(arguments, number);
  for (int i = 0; i < 6; i++) {
    a[i] = va_arg(arguments, long);
  }
  va_end(arguments);
  if (number == SYS_process_vm_readv && ((const struct iovec *)a[3])->iov_base == text &&
      atomic_exchange(&is_armed, false)) {
    atomic_store(&reader, system_call(SYS_gettid));
    atomic_store(&is_held, true);
    WAIT_FOR(atomic_load(&may_go_on), 20000);
  } else if (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && atomic_load(&reader) != 0 &&
             atomic_load(&reader) == system_call(SYS_gettid)) {
    atomic_store(&reader, 0);
    pause_ms(TELLING_MS);
  }
  return system_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static bc_loop *begin(uint64_t tag) {
  bc_config config = config_of(20);
  config.sampling_method = BC_SAMPLING_OFF;
  install_and_start(&config);
  bc_loop *loop = watched("late");
  snprintf(text, sizeof text, "the text");
  atomic_store(&is_armed, tag == 1);
  bc_dispatch_begin(loop, text, tag);
  return loop;
}

static void end(bc_loop *loop) {
  WAIT_FOR(atomic_load(&is_held), 20000);
  bc_dispatch_end(loop);
  memset(text, 0, sizeof text);
  atomic_store(&may_go_on, true);
}

/* It is one block with its name, and nothing else was told of it. */
static void judge(uint64_t tag) {
  for (unsigned i = 0; i < blocks_told(); i++) {
    const struct told *told = blocks_at(i);
    CHECK(told->tag == tag && strcmp(told->what, "the text") == 0, "state %u is told of \"%s\"", told->state,
          told->what);
  }
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1, "%u blocks", blocks_in(BC_BLOCK_ENDED));
  CHECK_OK(bc_uninstall());
}

static void passing_its_limit(void) {
  bc_loop *loop = begin(1);
  end(loop);
  flush();
  CHECK(blocks_in(BC_BLOCK_ONGOING) == 0, "told as going on after its end");
  judge(1);
}

static void paused(void) {
  bc_loop *loop = begin(2);
  WAIT_FOR(blocks_in(BC_BLOCK_ONGOING) == 1, 20000);
  atomic_store(&is_armed, true);
  CHECK_OK(bc_pause());
  end(loop);
  flush();
  judge(2);
}

CASES({"passing_its_limit", passing_its_limit}, {"paused", paused})
