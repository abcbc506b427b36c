/* redact_paths: no report, no block and no message holds a folder's name; only report_path leads somewhere. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/json.h"
#include "support/procfs.h"

static char text[1024 * 1024];
static atomic_uint modules;
static char fifo[300];
/* Only our own folders have this in their name. */
#define SECRET "secret-folder"

static bool has_folder(const char *string) {
  return string != NULL && (strchr(string, '/') != NULL || strstr(string, SECRET) != NULL);
}

static void examine(const bc_block *block) {
  CHECK(!has_folder(block->cause_detail), "cause_detail %s", block->cause_detail);
  CHECK(!has_folder(block->what) && !has_folder(block->loop_name), "what %s", block->what);
  const char *at = (const char *)block->samples;
  for (size_t i = 0; i < block->sample_count; i++, at += block->sample_size) {
    const bc_sample *sample = (const bc_sample *)(const void *)at;
    const char *frame_at = (const char *)sample->frames;
    for (size_t j = 0; j < sample->frame_count; j++, frame_at += block->frame_size) {
      const bc_frame *frame = (const bc_frame *)(const void *)frame_at;
      CHECK(!has_folder(frame->module) && !has_folder(frame->symbol), "module %s, symbol %s", frame->module, frame->symbol);
      atomic_fetch_add(&modules, frame->module != NULL);
    }
  }
}

static void check_file(const char *path) {
  CHECK(read_whole(path, text, sizeof text) > 0, "%s", path);
  char *schema = strstr(text, "\"blockcanary.report/1\"");
  if (schema != NULL) {
    CHECK(json_valid(text), "%s is no JSON", path);
    *strchr(schema, '/') = '_'; /* the one that is no path */
  }
  const char *found = strchr(text, '/');
  CHECK(found == NULL && strstr(text, SECRET) == NULL, "%s holds \"%.60s\"", path, found == NULL ? SECRET : found);
}

static void *feed(void *argument) {
  int fd = open(fifo, O_WRONLY);
  CHECK(fd >= 0, "%s", strerror(errno));
  WAIT_FOR(blocks_in(BC_BLOCK_HANG) > 0, 20000); /* long enough for the wait to be seen */
  CHECK(write(fd, "x", 1) == 1 && close(fd) == 0, "%s", strerror(errno));
  return argument;
}

/* A block that waits for a pipe which has a path: the path would be in the cause. */
static void waits_for_pipe(bc_loop *loop) {
  unsigned long other = start_thread(feed, NULL);
  int fd = open(fifo, O_RDONLY);
  CHECK(fd >= 0, "%s", strerror(errno));
  bc_dispatch_begin(loop, "reads", 1);
  char byte;
  CHECK(read(fd, &byte, 1) == 1, "%s", strerror(errno));
  bc_dispatch_end(loop);
  close(fd);
  join_thread(other);
}

static void run(bc_toggle redact_paths) {
  const char *directory = fresh_directory("redacted");
  char folder[400], path[700];
  snprintf(folder, sizeof folder, "%s/" SECRET, directory);
  snprintf(fifo, sizeof fifo, "%.250s/pipe", folder);
  CHECK(mkdir(folder, 0700) == 0 && mkfifo(fifo, 0600) == 0, "%s", strerror(errno));
  bc_config config = config_of(50);
  config.sample_interval_ms = 10;
  config.hang_threshold_ms = 200;
  config.report_dir = folder;
  config.redact_paths = redact_paths;
  blocks_examine(redact_paths == BC_ON ? examine : NULL);
  install_and_start(&config);
  bc_loop *loop = watched("redacted");
  waits_for_pipe(loop);
  flush();
  const struct told *block = blocks_get(BC_BLOCK_ENDED, 1);
  printf("%s: %s\n", redact_paths == BC_ON ? "redacted" : "whole", block->detail);
  CHECK(strstr(block->detail, "pipe") != NULL, "the wait was not seen: %s", block->detail);
  CHECK(has_folder(block->path), "report_path %s", block->path);
  snprintf(path, sizeof path, "%.*s.json", (int)(strlen(block->path) - 4), block->path);
  if (redact_paths == BC_ON) {
    CHECK(atomic_load(&modules) > 0, "no module was seen");
    check_file(block->path);
    check_file(path);
  } else {
    /* What is asked above would be seen. */
    CHECK(strstr(block->detail, SECRET "/pipe") != NULL, "%s", block->detail);
    CHECK(read_whole(path, text, sizeof text) > 0 && strstr(text, SECRET "/pipe") != NULL && strstr(text, "/tests/c/") != NULL,
          "no folder in %s", path);
  }
  CHECK_OK(bc_reports_delete_all());
  CHECK_OK(bc_uninstall());
  CHECK(unlink(fifo) == 0 && rmdir(folder) == 0 && rmdir(directory) == 0, "%s", strerror(errno));
}

static void redacted(void) {
  run(BC_ON);
}

static void whole(void) {
  run(BC_OFF);
}

CASES({"redacted", redacted}, {"whole", whole})
