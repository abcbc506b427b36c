/* All threads with their stacks, in the reports of blocks. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/crowd.h"
#include "support/json.h"
#include "support/procfs.h"

static char text[4 << 20];

static const char *report(uint64_t tag, bc_block_state state, const char *ending) {
  const struct told *told = blocks_get(state, tag);
  char path[600];
  snprintf(path, sizeof path, "%.*s%s", (int)(strlen(told->path) - 4), told->path, ending);
  size_t length = read_whole(path, text, sizeof text);
  CHECK(length > 0 && length < sizeof text - 1, "%zu bytes in %s", length, path);
  return text;
}

/* The objects of a report's list of threads, each on lines of its own. */
static unsigned threads_in(const char *json) {
  const char *at = json_member(json, "threads"), *end = strstr(json, "\"threads_left_out\":");
  CHECK(at != NULL && *at == '[' && end != NULL, "no threads");
  unsigned count = 0;
  while ((at = strstr(at, "{\"tid\":")) != NULL && at < end) {
    at++;
    count++;
  }
  return count;
}

static const char *thread_in(const char *json, int32_t tid) {
  char wanted[64];
  snprintf(wanted, sizeof wanted, "{\"tid\":%d,\"name\":", tid);
  const char *at = strstr(json_member(json, "threads"), wanted);
  CHECK(at != NULL && at < strstr(json, "\"threads_left_out\":"), "thread %d is missing", tid);
  CHECK(strstr(at + 1, wanted) == NULL, "thread %d is there twice", tid);
  return at;
}

static void names_chain(const char *thread, const char *const *names, unsigned count) {
  const char *end = strstr(thread + 1, "{\"tid\":");
  for (unsigned i = 0; i < count; i++) {
    char symbol[64];
    snprintf(symbol, sizeof symbol, "\"symbol\":\"%s\"", names[i]);
    thread = strstr(thread, symbol);
    CHECK(thread != NULL && (end == NULL || thread < end), "%s is not there", names[i]);
  }
}

/* The report of a block has every other thread. */
static void with_blocks(void) {
  bc_config config = config_of(80);
  config.report_dir = fresh_directory("threads");
  config.all_threads_on_block = BC_ON;
  install_and_start(&config);
  crowd_of_all();
  bc_loop *loop = watched("blocked");
  for (unsigned n = 1; n <= 3; n++) {
    bc_dispatch_begin(loop, "block", n);
    sleep_ms(300);
    bc_dispatch_end(loop);
    flush();
  }
  const char *json = report(3, BC_BLOCK_ENDED, ".json");
  CHECK(json_valid(json), "no JSON");
  CHECK(threads_in(json) + 1 == threads(), "%u of %u threads", threads_in(json), threads());
  CHECK(json_is(json, "threads_left_out", "0"), "some are left out");
  const char *first = thread_in(json, crowd_loop_tid);
  CHECK(first < strstr(json_member(json, "threads"), "\"frames\""), "the watched one is not first");
  CHECK(json_is(first, "watched", "true") && json_is(first, "state", "\"S\"") &&
            json_is(first, "name", "\"loop-thread\"") && json_is(first, "role", "null"),
        "%.200s", first);
  names_chain(first, loop_chain, 2);
  for (unsigned i = 0; i < crowd_count; i++) {
    const char *thread = thread_in(json, crowd[i].tid);
    CHECK(json_is(thread, "watched", "false"), "%.200s", thread);
    if (crowd[i].doing == IN_FUTEX || crowd[i].doing == WITH_LOADERS_LOCK) {
      CHECK(json_is(thread, "state", "\"S\""), "%.200s", thread);
      names_chain(thread, quiet_chain, 3);
    }
  }
  const char *log = report(3, BC_BLOCK_ENDED, ".log"), *stack = strstr(log, "\nstack = ");
  CHECK(stack != NULL && strstr(log, "more-threads") == NULL, "no stack");
  for (unsigned i = 0; i < crowd_count; i++) {
    char line[64];
    snprintf(line, sizeof line, ", tid: %d, name: ", crowd[i].tid);
    const char *section = strstr(log, line);
    CHECK(section != NULL && section < stack, "thread %u has no section before the stack", i);
  }
  CHECK(atomic_load(&crowd_waits_cut) == 0 && health().waits_cut == 0, "waits were cut short");
  printf("%u threads; the texts have %zu and", threads_in(json = report(2, BC_BLOCK_ENDED, ".json")), strlen(text));
  report(2, BC_BLOCK_ENDED, ".log");
  printf(" %zu bytes\n", strlen(text));
  crowd_end();
  CHECK_OK(bc_uninstall());
}

/* Each report of a block has them, the first one too, and that of a block which the monitor only heard of at its end. */
static void with_short_blocks(void) {
  bc_config config = config_of(30);
  config.report_dir = fresh_directory("short");
  config.all_threads_on_block = BC_ON;
  install_and_start(&config);
  crowd_of(IN_FUTEX, 5);
  bc_loop *loop = watched("blocked");
  unsigned at_end = 0;
  for (unsigned n = 1; n <= 60; n++) {
    blocking_dispatch(loop, "short", n, 30);
    flush();
    if (blocks_tagged(BC_BLOCK_ENDED, n) == 0) {
      continue; /* not longer than the limit, by a hair */
    }
    at_end += blocks_tagged(BC_BLOCK_ONGOING, n) == 0;
    const char *json = report(n, BC_BLOCK_ENDED, ".json");
    CHECK(json_valid(json) && threads_in(json) + 1 == threads(), "%u threads with block %u", threads_in(json), n);
    names_chain(thread_in(json, crowd[4].tid), quiet_chain, 3);
  }
  printf("%u blocks, %u of them known at their end only\n", blocks_in(BC_BLOCK_ENDED), at_end);
  CHECK(at_end > 0, "all were seen while they went on");
  crowd_end();
  CHECK_OK(bc_uninstall());
}

static atomic_uint ongoing_with_threads, hangs_with_threads;
static void examine_files(const bc_block *block) {
  if (block->state == BC_BLOCK_ENDED) {
    return;
  }
  static char early[4 << 20];
  char path[600];
  snprintf(path, sizeof path, "%.*s.json", (int)(strlen(block->report_path) - 4), block->report_path);
  read_whole(path, early, sizeof early);
  bool is_there = json_valid(early) && threads_in(early) + 1 == threads() && json_is(early, "threads_left_out", "0");
  atomic_fetch_add(block->state == BC_BLOCK_HANG ? &hangs_with_threads : &ongoing_with_threads, is_there);
}

/* While the block goes on, and anew when it becomes a hang. */
static void with_hangs(void) {
  bc_config config = config_of(50);
  config.hang_threshold_ms = 400;
  config.report_dir = fresh_directory("hangs");
  config.all_threads_on_block = BC_ON;
  blocks_examine(examine_files);
  install_and_start(&config);
  crowd_of(IN_FUTEX, 20);
  bc_loop *loop = watched("blocked");
  for (unsigned n = 1; n <= 5; n++) {
    bc_dispatch_begin(loop, "hang", n);
    WAIT_FOR(blocks_tagged(BC_BLOCK_HANG, n) == 1, 60000);
    bc_dispatch_end(loop);
    flush();
    const char *json = report(n, BC_BLOCK_ENDED, ".json");
    CHECK(threads_in(json) + 1 == threads(), "%u of %u", threads_in(json), threads());
  }
  printf("of 5 blocks, %u had all threads when they were told first, %u as hangs\n", atomic_load(&ongoing_with_threads),
         atomic_load(&hangs_with_threads));
  /* On a busy machine the first telling does not wait for ever. */
  CHECK(atomic_load(&ongoing_with_threads) >= 1 && atomic_load(&hangs_with_threads) >= 1, "too few");
  crowd_end();
  CHECK_OK(bc_uninstall());
}

/* What has no room is counted. */
static void too_many(void) {
  bc_config config = config_of(80);
  config.report_dir = fresh_directory("many");
  config.all_threads_on_block = BC_ON;
  install_and_start(&config);
  crowd_of(IN_READ, 300);
  bc_loop *loop = watched("blocked");
  bc_dispatch_begin(loop, "block", 1);
  sleep_ms(300);
  bc_dispatch_end(loop);
  flush();
  const char *json = report(1, BC_BLOCK_ENDED, ".json");
  CHECK(json_valid(json), "no JSON");
  unsigned left_out = (unsigned)atoi(json_member(json, "threads_left_out")), told = threads_in(json);
  printf("%u with the block, %u left out\n", told, left_out);
  CHECK(told == 256 && told + left_out + 1 == threads(), "%u and %u of %u", told, left_out, threads());
  char line[64];
  snprintf(line, sizeof line, "\nmore-threads = %u\r\n", left_out);
  CHECK(strstr(report(1, BC_BLOCK_ENDED, ".log"), line) != NULL, "not in the text");
  crowd_end();
  CHECK_OK(bc_uninstall());
}

/* What is executed for `killed_inside`: blocks until it is killed. */
static void victim(void) {
  const char *directory = getenv("VICTIM_DIRECTORY");
  if (directory == NULL) {
    return;
  }
  bc_config config = config_of(50);
  config.report_dir = directory;
  config.all_threads_on_block = BC_ON;
  install_and_start(&config);
  crowd_of(IN_FUTEX, 20);
  bc_dispatch_begin(watched("blocked"), "block", 1);
  pause();
}

/* A block whose process is killed has them, too, as far as the flight recorder has room. */
static void killed_inside(void) {
  char directory[300];
  snprintf(directory, sizeof directory, "%s/reports", fresh_directory("killed_inside"));
  setenv("VICTIM_DIRECTORY", directory, 1);
  pid_t pid = start_case("victim");
  WAIT_FOR(files_in(directory, ".json") == 1, 60000);
  CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid, "not killed");
  bc_config config = config_of(60000);
  config.all_threads_on_block = BC_ON; /* or there is room for a few only */
  config.report_dir = directory;
  install_and_start(&config);
  WAIT_FOR(blocks_in(BC_BLOCK_KILLED) == 1, 60000);
  const char *json = report(1, BC_BLOCK_KILLED, ".json");
  CHECK(json_valid(json) && json_is(json, "state", "\"killed\""), "%.300s", json);
  unsigned left_out = (unsigned)atoi(json_member(json, "threads_left_out")), told = threads_in(json);
  printf("%u threads, %u left out\n", told, left_out);
  /* The library's own three beside. */
  CHECK(told >= 20 && told + left_out == 23, "%u and %u", told, left_out);
  names_chain(strstr(json_member(json, "threads"), "{\"tid\":"), quiet_chain, 3);
  CHECK_OK(bc_uninstall());
}

CASES({"with_blocks", with_blocks}, {"with_short_blocks", with_short_blocks}, {"with_hangs", with_hangs},
      {"too_many", too_many}, {"victim", victim}, {"killed_inside", killed_inside})
