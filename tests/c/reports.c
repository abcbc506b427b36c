/* The stored reports: names, modes, content, and how many are kept. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/json.h"
#include "support/procfs.h"

static char text[1024 * 1024];

/* Blocks in a function of its own, whose name the report must give, though the innermost frames are the C library's and
   the vDSO's. It takes so much time of the processor, and as long as that lasts. */
__attribute__((noinline)) void guilty_spin(unsigned ms) {
  uint64_t begin = now_ns();
  clock_t until = clock() + (clock_t)ms * (CLOCKS_PER_SEC / 1000);
  struct timespec time;
  do {
    for (unsigned i = 0; i < 10000; i++) {
      clock_gettime(CLOCK_MONOTONIC, &time);
    }
  } while (clock() < until || now_ns() < begin + ms * 1000000ull);
}

static void late(bc_loop *loop, uint64_t tag, unsigned ms) {
  bc_dispatch_begin(loop, "what \"is\"\n this", tag);
  guilty_spin(ms);
  bc_dispatch_end(loop);
}

static unsigned mode_of(const char *path) {
  struct stat status;
  CHECK(stat(path, &status) == 0, "%s: %s", path, strerror(errno));
  return status.st_mode & 0777;
}

/* <dir>/looper-YYYY-MM-DD_HH-mm-ss.SSS-<pid>-<id>.log */
static void check_name(const char *path, uint64_t id) {
  const char *name = strrchr(path, '/');
  CHECK(name != NULL, "%s", path);
  int year, month, day, hour, minute, second, ms, pid, end = 0;
  unsigned long long named;
  int fields = sscanf(name, "/looper-%4d-%2d-%2d_%2d-%2d-%2d.%3d-%d-%llu.log%n", &year, &month, &day, &hour, &minute,
                      &second, &ms, &pid, &named, &end);
  CHECK(fields == 9 && name[end] == 0, "%s: %d fields", name, fields);
  CHECK(year > 2000 && month >= 1 && month <= 12 && pid == getpid() && named == id, "%s", name);
}

static void json_path(const char *log_path, char *path, size_t size) {
  snprintf(path, size, "%.*s.json", (int)(strlen(log_path) - 4), log_path);
}

static void content(void) {
  umask(0);
  const char *directory = fresh_directory("content");
  bc_config config = config_of(60);
  config.sample_interval_ms = 20;
  config.report_dir = directory;
  config.qualifier = "tester";
  config.version_name = "1.2.3 \"quoted\"";
  install_and_start(&config);
  bc_loop *loop = watched("reported \\ loop");
  uint64_t begin = now_ns();
  late(loop, 0xabc, 200);
  double took_ms = (double)(now_ns() - begin) / 1e6;
  flush();
  const struct told *ended = blocks_get(BC_BLOCK_ENDED, 0xabc);
  check_name(ended->path, ended->id);
  CHECK(mode_of(ended->path) == 0600, "mode %o of the text", mode_of(ended->path));
  read_whole(ended->path, text, sizeof text);
  const char *const keys[] = {"qua = tester\r\n", "versionName = 1.2.3 \"quoted\"\r\n", "cpu-core = ", "process = ",
                              "time = ", "thread-time = ", "time-start = ", "time-end = ", "stack = "};
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    CHECK(strstr(text, keys[i]) != NULL, "no `%s` in %s", keys[i], ended->path);
  }
  CHECK(strstr(text, "guilty_spin") != NULL, "no guilty_spin in %s", ended->path);

  char path[600];
  json_path(ended->path, path, sizeof path);
  CHECK(mode_of(path) == 0600, "mode %o of the JSON", mode_of(path));
  CHECK(read_whole(path, text, sizeof text) > 0, "%s is empty", path);
  CHECK(json_valid(text), "not JSON: %s", path);
  char id[32];
  snprintf(id, sizeof id, "%llu", (unsigned long long)ended->id);
  CHECK(json_is(text, "schema", "\"blockcanary.report/1\"") && json_is(text, "id", id) &&
            json_is(text, "state", "\"ended\"") && json_is(text, "tag", "\"0xabc\"") &&
            json_is(text, "threshold_ms", "60"),
        "a member of %s is wrong", path);
  const char *wall = json_member(text, "wall_ms");
  CHECK(wall != NULL && strtod(wall, NULL) >= 200 && strtod(wall, NULL) <= took_ms + 2, "wall_ms %.20s", wall ? wall : "missing");
  const char *hot = json_member(text, "hot_stacks");
  CHECK(hot != NULL && strstr(hot, "guilty_spin") != NULL, "no guilty_spin in hot_stacks of %s", path);
  const char *const members[] = {"loop", "what", "start_unix_ms", "cpu_ms", "cpu_uncertainty_ms", "run_queue_wait_ms",
                                 "cause", "progress", "repeats", "samples", "frames", "build_id", "module_offset",
                                 "symbol_offset", "cpu", "process_percent", "system_percent", "process", "device", "app",
                                 "health"};
  for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
    CHECK(json_member(text, members[i]) != NULL, "no `%s` in %s", members[i], path);
  }
  CHECK(files_in(directory, "") == 2, "%d files", files_in(directory, ""));
  CHECK(health().reports_failed == 0 && health().reports_written >= 2, "%d written, %d failed",
        (int)health().reports_written, (int)health().reports_failed);
  CHECK_OK(bc_uninstall());
}

/* The name of the function that blocks is among the first frames of nearly every sample. */
static void names_the_function(void) {
  bc_config config = config_of(60);
  config.sample_interval_ms = 10;
  blocks_expect("guilty_spin", 4); /* behind the vDSO, clock_gettime and at times clock */
  install_and_start(&config);
  late(watched("named"), 1, 400);
  flush();
  const struct told *ended = blocks_get(BC_BLOCK_ENDED, 1);
  CHECK(ended->samples_with_stack >= 20, "%u of %u samples have frames", ended->samples_with_stack, ended->samples);
  CHECK(ended->samples_naming * 20 >= ended->samples_with_stack * 19, "%u of %u stacks name it", ended->samples_naming,
        ended->samples_with_stack);
  CHECK_OK(bc_uninstall());
}

static void formats(void) {
  const char *directory = fresh_directory("formats");
  bc_config config = config_of(30);
  config.report_dir = directory;
  config.report_formats = BC_FORMAT_JSON;
  install_and_start(&config);
  late(watched("formats"), 1, 60);
  flush();
  CHECK(files_in(directory, ".json") == 1 && files_in(directory, "") == 1, "%d files", files_in(directory, ""));
  const char *path = blocks_get(BC_BLOCK_ENDED, 1)->path;
  CHECK(strcmp(path + strlen(path) - 5, ".json") == 0, "report_path %s", path);
  CHECK_OK(bc_uninstall());

  config.report_formats = BC_FORMAT_TEXT;
  install_and_start(&config);
  late(watched("formats"), 2, 60);
  flush();
  CHECK(files_in(directory, ".log") == 1 && files_in(directory, "") == 2, "%d files", files_in(directory, ""));
  CHECK_OK(bc_uninstall());

  config.report_dir = NULL;
  install_and_start(&config);
  late(watched("formats"), 3, 60);
  flush();
  CHECK(blocks_get(BC_BLOCK_ENDED, 3)->path[0] == 0, "path %s without a directory", blocks_get(BC_BLOCK_ENDED, 3)->path);
  CHECK(files_in(directory, "") == 2, "%d files", files_in(directory, ""));
  CHECK_OK(bc_uninstall());
}

/* Of 12 blocks the newest 5 are kept, files of others are left alone, and nothing half-written stays. */
static void retention(void) {
  const char *directory = fresh_directory("retention");
  char foreign[400], alike[400];
  snprintf(foreign, sizeof foreign, "%s/notes.log", directory);
  snprintf(alike, sizeof alike, "%s/looper-2020-01-01.log", directory);
  fclose(fopen(foreign, "w"));
  fclose(fopen(alike, "w"));
  bc_config config = config_of(20);
  config.report_dir = directory;
  config.max_reports = 5;
  install_and_start(&config);
  bc_loop *loop = watched("kept");
  for (unsigned i = 1; i <= 12; i++) {
    late(loop, i, 40);
    flush();
    unsigned kept = i < 5 ? i : 5;
    CHECK(files_in(directory, ".json") == (int)kept, "%d reports after %u blocks", files_in(directory, ".json"), i);
  }
  CHECK(files_in(directory, "") == 12, "%d files", files_in(directory, ""));
  CHECK(access(foreign, F_OK) == 0 && access(alike, F_OK) == 0, "a file of somebody else's was deleted");
  for (unsigned i = 1; i <= 12; i++) {
    const char *path = blocks_get(BC_BLOCK_ENDED, i)->path;
    CHECK((access(path, F_OK) == 0) == (i > 7), "block %u: %s is%s there", i, path, i > 7 ? " not" : "");
  }
  CHECK_OK(bc_uninstall());

  /* Reports of an earlier installation count. */
  install_and_start(&config);
  late(watched("kept"), 13, 40);
  flush();
  CHECK(files_in(directory, ".json") == 5, "%d reports", files_in(directory, ".json"));
  CHECK(access(blocks_get(BC_BLOCK_ENDED, 13)->path, F_OK) == 0, "the newest is not there");
  CHECK(access(blocks_get(BC_BLOCK_ENDED, 8)->path, F_OK) != 0, "the oldest is still there");
  CHECK_OK(bc_uninstall());
}

/* A block is on disk while it goes on, and its file keeps its name. */
static void while_open(void) {
  const char *directory = fresh_directory("while_open");
  bc_config config = config_of(50);
  config.report_dir = directory;
  install_and_start(&config);
  bc_loop *loop = watched("open");
  bc_dispatch_begin(loop, "open", 1);
  WAIT_FOR(blocks_tagged(BC_BLOCK_ONGOING, 1) == 1, 20000);
  const struct told *ongoing = blocks_get(BC_BLOCK_ONGOING, 1);
  char path[600];
  json_path(ongoing->path, path, sizeof path);
  read_whole(path, text, sizeof text);
  CHECK(json_valid(text) && json_is(text, "state", "\"ongoing\""), "%s", path);
  bc_dispatch_end(loop);
  flush();
  CHECK(strcmp(blocks_get(BC_BLOCK_ENDED, 1)->path, ongoing->path) == 0, "another name");
  read_whole(path, text, sizeof text);
  CHECK(json_valid(text) && json_is(text, "state", "\"ended\""), "%s", path);
  CHECK(files_in(directory, "") == 2, "%d files", files_in(directory, ""));
  CHECK_OK(bc_uninstall());
}

static void *block_beside(void *argument) {
  blocking_dispatch(watched("beside"), "work", (uint64_t)(uintptr_t)argument, argument == NULL ? 500 : 300);
  return argument;
}

/* The cap holds, although a block that goes on is not removed for another one. */
static void retention_beside_open(void) {
  const char *directory = fresh_directory("beside_open");
  bc_config config = config_of(50);
  config.report_dir = directory;
  config.max_reports = 1;
  install_and_start(&config);
  unsigned long others[3];
  for (uintptr_t i = 0; i < 3; i++) {
    others[i] = start_thread(block_beside, (void *)i);
  }
  for (unsigned i = 0; i < 3; i++) {
    join_thread(others[i]);
  }
  flush();
  CHECK(files_in(directory, ".log") == 1, "%d blocks are stored", files_in(directory, ".log"));
  CHECK_OK(bc_uninstall());
}

CASES({"content", content}, {"names_the_function", names_the_function}, {"formats", formats}, {"retention", retention},
      {"while_open", while_open},
      {"retention_beside_open", retention_beside_open})
