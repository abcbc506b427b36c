#include "main_looper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern "C" {
#include "../c/check.h"
#include "../c/support/blocks.h"
}
#include "reports.h"
#include "vm.h"

namespace {

char folder[64];
bc_loop *watched_loop;

}  // namespace

void name_folder(void) {
  snprintf(folder, sizeof folder, "/dev/shm/bc-java-%d", static_cast<int>(getpid()));
}

void begin(bool is_precise, uint32_t threshold_ms) {
  vm_begin();
  app("precise", "(Z)V", is_precise);
  name_folder();
  begin_again(threshold_ms);
}

void begin_again(uint32_t threshold_ms) {
  bc_config config = config_of(threshold_ms);
  config.report_dir = folder;
  install_and_start(&config);
}

void end(void) {
  CHECK_OK(bc_reports_delete_all());
  CHECK_OK(bc_uninstall());
  /* What is left there is no report. */
  char lock[96];
  snprintf(lock, sizeof lock, "rm -rf %s", folder);
  CHECK(system(lock) == 0, "%s", lock);
}

bc_loop *watch(void) {
  bc_loop *loop = nullptr;
  CHECK_OK(bc_java_watch(vm(), nullptr, &loop));
  watched_loop = loop;
  CHECK(loop != nullptr && health().loops_watched == 1, "not watched");
  return loop;
}

void run_bare(int count, int each, int ms) {
  app("post", "(III)V", count, each, ms);
  app("quit", "()V");
  app("loop", "()V");
}

void run(int count, int each, int ms) {
  run_bare(count, each, ms);
  flush();
}

void count_blocks(unsigned *named, unsigned *stacks) {
  *named = *stacks = 0;
  for (unsigned i = 0; i < blocks_told(); i++) {
    const struct told *block = blocks_at(i);
    if (block->state != BC_BLOCK_ENDED) {
      continue;
    }
    *named += strcmp(block->what, WHAT) == 0;
    bool is_in_json = strstr(java_stack(block->path), ELEMENT) != nullptr;
    const char *log = strstr(report_at(block->path), "\nstack = ");
    bool is_in_log = log != nullptr && strstr(log, ELEMENT) != nullptr;
    CHECK(is_in_json == is_in_log, "one form of the report has the Java stack, the other has not: %s", block->path);
    *stacks += is_in_json;
  }
}

uint64_t dispatches(void) {
  bc_loop_stats stats = {};
  stats.struct_size = sizeof stats;
  CHECK_OK(bc_loop_stats_get(watched_loop, &stats));
  return stats.dispatches;
}
