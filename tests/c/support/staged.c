#include "staged.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "../check.h"
#include "procfs.h"

atomic_uint run, begun, done;
atomic_bool over;

void wait_for(atomic_uint *number, unsigned n) {
  while (atomic_load(number) < n && !atomic_load(&over)) {
    pause_ms(1);
  }
}

void go_first(void) {
  setpriority(PRIO_PROCESS, (id_t)tid_of_self(), -20);
}

/* Of the blocks of one state: how many were told, and how many of them rightly. */
static unsigned count_right(bc_block_state state, bool (*is_right)(const struct told *), unsigned *right) {
  unsigned told = 0;
  *right = 0;
  for (unsigned n = 1; n <= RUNS; n++) {
    if (blocks_tagged(state, n) == 0) {
      continue;
    }
    const struct told *block = blocks_get(state, n);
    told++;
    *right += is_right(block);
    if (!is_right(block)) {
      printf("  not right%s: cause %u, %s (%.1f ms of %.1f on a processor)\n", state == BC_BLOCK_ONGOING ? " yet" : "",
             block->cause, block->detail, (double)block->cpu_ns / 1e6, (double)block->wall_ns / 1e6);
    }
  }
  return told;
}

void staged(const char *name, bool (*is_right)(const struct told *told), void (*prepare)(unsigned n),
            void (*block)(unsigned n)) {
  bc_config config = config_of(LIMIT_MS);
  config.report_dir = fresh_directory(name);
  install_and_start(&config);
  bc_loop *loop = watched(name);
  for (unsigned n = 1; n <= RUNS; n++) {
    if (prepare != NULL) {
      prepare(n);
    }
    bc_dispatch_begin(loop, name, n);
    atomic_store(&begun, n);
    block(n);
    bc_dispatch_end(loop);
    atomic_store(&done, n);
    flush();
  }
  atomic_store(&over, true);
  unsigned right = 0, early = 0;
  unsigned ended = count_right(BC_BLOCK_ENDED, is_right, &right), open = count_right(BC_BLOCK_ONGOING, is_right, &early);
  printf("%s: %u of %u told rightly at their end, %u of %u while they went on\n", name, right, ended, early, open);
  printf("  for example: %s\n", blocks_get(BC_BLOCK_ENDED, RUNS / 2)->detail);
  CHECK(ended == RUNS && right >= 95, "%u blocks, %u right", ended, right);
  CHECK(early * 100 >= open * 95, "%u of %u right while they went on", early, open);
}

bool says(const struct told *told, bc_cause cause, const char *words) {
  return told->cause == cause && strstr(told->detail, words) != NULL;
}

void finish(void) {
  bc_health end = health();
  printf("  %d samples, %d unanswered, %d waits cut\n", (int)end.samples_taken, (int)end.samples_unanswered,
         (int)end.waits_cut);
  CHECK(end.waits_cut == 0, "waits were cut short");
  CHECK_OK(bc_uninstall());
}
