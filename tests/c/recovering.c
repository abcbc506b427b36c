/* Blocks that many loops were killed in, told by processes that end, or stop using the library, while they are at it. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

#define LOOPS 40

static void *blocks_for_ever(void *tag) {
  bc_dispatch_begin(watched("killed"), "killed", (uint64_t)(uintptr_t)tag);
  for (;;) {
    pause();
  }
  return tag;
}

/* What is executed for `kill_one`: dies when all of its loops are known to be blocked. */
static void victim(void) {
  const char *directory = getenv("RECOVERING_DIRECTORY");
  if (directory == NULL) {
    return;
  }
  bc_config config = config_of(20);
  config.report_dir = directory;
  config.max_loops = LOOPS;
  install_and_start(&config);
  /* One after the other: in a queue that is full, blocks that go on give way. */
  for (uintptr_t tag = 0; tag < LOOPS; tag++) {
    start_thread(blocks_for_ever, (void *)tag);
    WAIT_FOR(blocks_tagged(BC_BLOCK_ONGOING, tag) == 1, 60000);
  }
  raise(SIGKILL);
}

static char directory[300];

static void kill_one(const char *name) {
  snprintf(directory, sizeof directory, "%s/reports", fresh_directory(name));
  setenv("RECOVERING_DIRECTORY", directory, 1);
  pid_t pid = start_case("victim");
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x", status);
  CHECK(files_in(directory, ".bcr") == 1, "%d recorders", files_in(directory, ".bcr"));
}

/* How often each was told, by all processes. */
struct counts {
  atomic_uint of[LOOPS];
};
static struct counts *told;

static unsigned all_told(void) {
  unsigned sum = 0;
  for (unsigned tag = 0; tag < LOOPS; tag++) {
    CHECK(atomic_load(&told->of[tag]) <= 1, "block %u was told %u times", tag, atomic_load(&told->of[tag]));
    sum += atomic_load(&told->of[tag]);
  }
  return sum;
}

static void count(const bc_block *block, void *exits) {
  CHECK(block->state == BC_BLOCK_KILLED && block->tag < LOOPS, "state %u, tag %lu", block->state,
        (unsigned long)block->tag);
  atomic_fetch_add(&told->of[block->tag], 1);
  if (exits != NULL) {
    exit(0);
  }
}

static void begin(const char *name) {
  told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(told != MAP_FAILED, "no memory");
  kill_one(name);
}

static void recover(void *exits) {
  bc_config config = config_of(60000);
  config.report_dir = directory;
  CHECK_OK(bc_install(&config));
  CHECK_OK(bc_set_listener(count, exits));
  CHECK_OK(bc_start());
}

/* At whatever moment it is uninstalled: what was not told is told by the next start. */
static void uninstalled_meanwhile(void) {
  begin("uninstalled");
  unsigned rounds = 0;
  for (; all_told() < LOOPS; rounds++) {
    CHECK(files_in(directory, ".bcr") > 0, "%u of %d were told, after %u rounds", all_told(), LOOPS, rounds);
    recover(NULL);
    spin_ms(rounds % 3);
    CHECK_OK(bc_uninstall());
  }
  recover(NULL);
  flush();
  CHECK_OK(bc_uninstall());
  CHECK(all_told() == LOOPS && files_in(directory, ".bcr") == 0, "%u told", all_told());
  printf("all told after %u rounds\n", rounds);
}

/* A process that ends while it tells of one leaves the others to the next. */
static void ended_meanwhile(void) {
  begin("ended");
  for (unsigned processes = 1; processes <= LOOPS; processes++) {
    pid_t pid = fork();
    if (pid == 0) {
      recover(told);
      pause_ms(60000);
      _exit(1);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
    CHECK(all_told() == processes, "%u told by %u processes", all_told(), processes);
  }
  recover(NULL);
  flush();
  CHECK(health().blocks_seen == 0, "told once more");
  CHECK_OK(bc_uninstall());
}

CASES({"victim", victim}, {"uninstalled_meanwhile", uninstalled_meanwhile}, {"ended_meanwhile", ended_meanwhile})
