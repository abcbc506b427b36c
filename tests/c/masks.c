/* Who says that watching begins, or wants a dump, may block signals: the library's own threads, which callbacks run on,
 * block all of them, and so do threads of other libraries. Threads that run have stacks all the same. */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "check.h"
#include "support/blocks.h"
#include "support/crowd.h"
#include "support/dump.h"

static struct dump dump;
static atomic_bool is_done;

/* Some block of a thread that runs: on a busy machine it may not answer in time. */
static void running_threads_answer(void) {
  bc_loop *loop = watched("runs");
  uint64_t until = now_ns() + 60000000000ull;
  unsigned stacks = 0;
  for (uint64_t tag = 100; stacks == 0 && tag < BLOCKS_MAX / 4 && now_ns() < until; tag++) {
    blocking_dispatch(loop, "runs", tag, 60);
    flush();
    stacks = blocks_get(BC_BLOCK_ENDED, tag)->samples_with_stack;
  }
  CHECK(stacks > 0 && health().signal_available, "no stack of a thread that runs");
}

static void starts_again(const bc_block *block, void *unused) {
  (void)unused;
  if (block->state == BC_BLOCK_ENDED && !atomic_load(&is_done)) {
    CHECK_OK(bc_stop());
    CHECK_OK(bc_start());
    atomic_store(&is_done, true);
  }
}

static unsigned actions_of_ours(int except) {
  unsigned count = 0;
  for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
    struct sigaction action;
    count += number != except && sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL;
  }
  return count;
}

/* A signal that the program waits for stays its own, whoever starts anew. */
static void started_by_a_listener(void) {
  sigset_t waited_for;
  sigemptyset(&waited_for);
  sigaddset(&waited_for, SIGRTMAX);
  CHECK(sigprocmask(SIG_BLOCK, &waited_for, NULL) == 0, "sigprocmask");
  bc_config config = config_of(20);
  install_and_start(&config);
  CHECK_OK(bc_add_listener(starts_again, NULL));
  blocking_dispatch(watched("runs"), "first", 1, 60);
  WAIT_FOR(atomic_load(&is_done), 20000);
  running_threads_answer();
  CHECK(actions_of_ours(SIGRTMAX) == 1, "%u signals were taken, without the one that is waited for",
        actions_of_ours(SIGRTMAX));
  CHECK_OK(bc_uninstall());
}

static void dumps_when_stopped(const bc_block *block, void *unused) {
  (void)unused;
  if (block->state != BC_BLOCK_ENDED || atomic_load(&is_done)) {
    return;
  }
  CHECK_OK(bc_stop());
  const struct dumped *found = dump_until_caught(&dump, crowd[0].tid);
  CHECK(dump_has(found, spins_chain, 1), "%.200s", found->begin);
  atomic_store(&is_done, true);
}

static void dumped_by_a_listener(void) {
  bc_config config = config_of(20);
  install_and_start(&config);
  CHECK_OK(bc_add_listener(dumps_when_stopped, NULL));
  crowd_of(SPINNING, 1);
  blocking_dispatch(watched("runs"), "first", 1, 60);
  WAIT_FOR(atomic_load(&is_done), 80000);
  crowd_end();
  CHECK_OK(bc_uninstall());
}

static void started_with_all_blocked(void) {
  bc_config config = config_of(20);
  CHECK_OK(bc_install(&config));
  CHECK_OK(bc_set_listener(blocks_listener, NULL));
  sigset_t all, before;
  sigfillset(&all);
  CHECK(sigprocmask(SIG_SETMASK, &all, &before) == 0, "sigprocmask");
  CHECK_OK(bc_start());
  CHECK(sigprocmask(SIG_SETMASK, &before, NULL) == 0, "sigprocmask");
  running_threads_answer();
  CHECK_OK(bc_uninstall());
}

CASES({"started_by_a_listener", started_by_a_listener}, {"dumped_by_a_listener", dumped_by_a_listener},
      {"started_with_all_blocked", started_with_all_blocked})
