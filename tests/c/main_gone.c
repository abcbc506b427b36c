/* The main thread ends by pthread_exit and the process goes on: what is read of it must not go through that thread. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

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

/* On kernels without process_vm_readv, memory is read through a file. */
static void reads_a_file(void) {
  struct sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {.len = sizeof program / sizeof program[0], .filter = program};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "%s", strerror(errno));
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0, "%s", strerror(errno));
  goes_on();
}

CASES({"goes_on", goes_on}, {"reads_a_file", reads_a_file})
