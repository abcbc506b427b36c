/* Two copies of the library in one process, with one report directory: ids, files, recorders and signals keep apart. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../check.h"
#include "../support/procfs.h"
#include "canary.h"

#define BLOCKS 15
#define BLOCK_MS 120

static const char *directory;

struct copy {
  const char *path, *name;
  void *library;
  const struct canary *canary;
  uint64_t ids[BLOCKS];
  atomic_uint ended, killed, foreign;
  atomic_bool may_end;
  bc_loop *loop;
};

static void told(const bc_block *block, void *user_data) {
  struct copy *copy = user_data;
  if (block->state == BC_BLOCK_KILLED) {
    copy->killed++;
  } else if (strcmp(block->loop_name, copy->name) != 0) {
    copy->foreign++;
  } else if (block->state == BC_BLOCK_ENDED && copy->ended < BLOCKS) {
    copy->ids[copy->ended] = block->id;
    copy->ended++;
  }
}

static void bring_in(struct copy *copy) {
  copy->library = dlopen(copy->path, RTLD_NOW | RTLD_LOCAL);
  CHECK(copy->library != NULL, "%s", dlerror());
  copy->canary = dlsym(copy->library, "canary");
  CHECK(copy->canary != NULL, "%s", dlerror());
  bc_config config;
  copy->canary->config_init(&config, sizeof config);
  config.block_threshold_ms = 50;
  config.sample_interval_ms = 10;
  config.merge_window_s = BC_MERGE_OFF;
  config.report_dir = directory;
  CHECK(copy->canary->install(&config) == BC_OK && copy->canary->set_listener(told, copy) == BC_OK &&
            copy->canary->start() == BC_OK,
        "install");
}

static void *block_by_turns(void *argument) {
  struct copy *copy = argument;
  CHECK(copy->canary->watch(copy->name, &copy->loop) == BC_OK, "watch");
  for (unsigned i = 1; i < BLOCKS; i++) {
    copy->canary->begin(copy->loop, "block", i);
    spin_ms(BLOCK_MS / 2);
    sleep_ms(BLOCK_MS / 2);
    copy->canary->end(copy->loop);
  }
  /* One that goes on while the other copy looks for what was killed. */
  copy->canary->begin(copy->loop, "block", 0);
  while (!copy->may_end) {
    pause_ms(1);
  }
  copy->canary->end(copy->loop);
  return NULL;
}

static bc_health health_of(const struct copy *copy) {
  bc_health health = {.struct_size = sizeof health};
  CHECK(copy->canary->health_get(&health) == BC_OK, "health");
  return health;
}

/* Signals that somebody handles. */
static unsigned handled(void) {
  unsigned count = 0;
  for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
    struct sigaction action;
    count += sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
  }
  return count;
}

static void one_directory(void) {
  directory = fresh_directory("copies");
  static struct copy copies[2] = {{.path = INSIDE, .name = "one"}, {.path = INSIDE_TOO, .name = "other"}};
  unsigned before = handled();
  unsigned long threads[2];
  for (int i = 0; i < 2; i++) {
    bring_in(&copies[i]);
    WAIT_FOR(health_of(&copies[i]).signal_available, 20000);
    CHECK(handled() == before + (unsigned)i + 1, "%u signals are handled", handled());
    threads[i] = start_thread(block_by_turns, &copies[i]);
  }
  WAIT_FOR(copies[0].ended == BLOCKS - 1 && copies[1].ended == BLOCKS - 1, 60000);
  /* Both are in a block, and have a recorder that says so. */
  WAIT_FOR(files_in(directory, ".bcr") == 2, 20000);
  for (int i = 0; i < 2; i++) {
    const struct canary *canary = copies[i].canary;
    for (int round = 0; round < 5; round++) {
      CHECK(canary->stop() == BC_OK && canary->start() == BC_OK && canary->flush(20000) == BC_OK, "stop and start");
    }
  }
  CHECK(copies[0].killed == 0 && copies[1].killed == 0, "killed by the other: %u, %u", copies[0].killed,
        copies[1].killed);
  copies[0].may_end = copies[1].may_end = true;
  for (int i = 0; i < 2; i++) {
    join_thread(threads[i]);
    CHECK(copies[i].canary->flush(20000) == BC_OK, "flush");
    /* The stops have ended the one that went on. */
    CHECK(copies[i].ended >= BLOCKS && copies[i].foreign == 0, "%u ended, %u of the other copy", copies[i].ended,
          copies[i].foreign);
    bc_health now = health_of(&copies[i]);
    CHECK(now.reports_failed == 0 && !now.signal_taken_over && now.signals_sent > 0 && now.samples_taken > 0,
          "%lu failed, taken over %d, %lu signals", (unsigned long)now.reports_failed, now.signal_taken_over,
          (unsigned long)now.signals_sent);
  }
  for (unsigned i = 0; i < BLOCKS; i++) {
    for (unsigned j = 0; j < BLOCKS; j++) {
      CHECK(copies[0].ids[i] != copies[1].ids[j], "both have a block %lu", (unsigned long)copies[0].ids[i]);
    }
  }
  bc_health one = health_of(&copies[0]), other = health_of(&copies[1]);
  int files = files_in(directory, ".json");
  CHECK((uint64_t)files == one.blocks_seen + other.blocks_seen, "%d reports of %lu and %lu blocks", files,
        (unsigned long)one.blocks_seen, (unsigned long)other.blocks_seen);
  printf("%lu and %lu blocks, %d reports, %lu and %lu signals\n", (unsigned long)one.blocks_seen,
         (unsigned long)other.blocks_seen, files, (unsigned long)one.signals_sent, (unsigned long)other.signals_sent);
  for (int i = 0; i < 2; i++) {
    CHECK(copies[i].canary->uninstall() == BC_OK && dlclose(copies[i].library) == 0, "uninstall");
  }
  CHECK(handled() == before && files_in(directory, ".bcr") == 0, "%u signals, %d recorders are left", handled(),
        files_in(directory, ".bcr"));
}

CASES({"one_directory", one_directory})
