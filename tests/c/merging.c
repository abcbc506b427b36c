/* Blocks that come again share the report of the first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/json.h"
#include "support/procfs.h"

static char text[1024 * 1024];
static const char *directory;

/* Asleep, since on a busy machine a thread that runs may not be seen with a stack in time. */
STAYS static void first_way(unsigned ms) {
  sleep_ms(ms);
  __asm__ volatile("");
}

STAYS static void second_way(unsigned ms) {
  sleep_ms(ms);
  __asm__ volatile("");
}

static void block(bc_loop *loop, uint64_t tag, void (*way)(unsigned), unsigned ms) {
  bc_dispatch_begin(loop, "late", tag);
  way(ms);
  bc_dispatch_end(loop);
}

static bc_config merging(const char *name) {
  directory = fresh_directory(name);
  bc_config config = config_of(60);
  config.sample_interval_ms = 15;
  config.merge_window_s = 0; /* the default */
  config.report_dir = directory;
  return config;
}

static const struct told *ended(uint64_t tag) {
  CHECK(blocks_tagged(BC_BLOCK_ENDED, tag) == 1, "%llu told %u times", (unsigned long long)tag,
        blocks_tagged(BC_BLOCK_ENDED, tag));
  return blocks_get(BC_BLOCK_ENDED, tag);
}

static void check_files(int blocks) {
  CHECK(files_in(directory, ".log") == blocks && files_in(directory, ".json") == blocks && files_in(directory, ".tmp") == 0,
        "%d texts, %d JSON", files_in(directory, ".log"), files_in(directory, ".json"));
}

static double number(const char *json, const char *name) {
  const char *value = json_member(json, name);
  CHECK(value != NULL, "no %s", name);
  return strtod(value, NULL);
}

/* Both reports tell of so many repeats; the JSON of their time, too. */
static bool tells(const char *log_path, unsigned count, uint64_t wall_ns, int64_t last_unix_ms) {
  char line[64], path[512];
  snprintf(line, sizeof line, "\r\nrepeat-count = %u\r\n", count);
  read_whole(log_path, text, sizeof text);
  if (strstr(text, line) == NULL || strstr(text, "\nstack = ") == NULL) {
    return false;
  }
  snprintf(path, sizeof path, "%.*s.json", (int)(strlen(log_path) - 4), log_path);
  read_whole(path, text, sizeof text);
  CHECK(json_valid(text), "%s is no JSON", path);
  const char *repeats = json_member(text, "repeats");
  CHECK(repeats != NULL, "no repeats");
  if (number(repeats, "count") != count) {
    return false;
  }
  double off = number(repeats, "wall_ms_total") - (double)wall_ns / 1e6;
  return off > -0.01 && off < 0.01 && (count == 0 || (int64_t)number(repeats, "last_unix_ms") == last_unix_ms);
}

static void repeats(void) {
  bc_config config = merging("repeats");
  install_and_start(&config);
  bc_loop *loop = watched("again");
  uint64_t wall_ns = 0, longest = 0;
  for (unsigned i = 0; i < 5; i++) {
    block(loop, i, first_way, 120);
    WAIT_FOR(blocks_tagged(BC_BLOCK_ENDED, i) == 1, 10000);
    uint64_t told = now_ns();
    const struct told *now = ended(i), *first = ended(0);
    CHECK(now->repeats == i, "repeat %u of %u", now->repeats, i);
    CHECK(strcmp(now->path, first->path) == 0, "%s, not %s", now->path, first->path);
    wall_ns += i == 0 ? 0 : now->wall_ns;
    WAIT_FOR(tells(first->path, i, wall_ns, now->start_unix_ms), 500);
    longest = now_ns() - told > longest ? now_ns() - told : longest;
    check_files(1);
  }
  flush();
  bc_health after = health();
  CHECK(after.reports_merged == 4 && after.blocks_delivered == 5, "%d merged", (int)after.reports_merged);
  for (unsigned i = 1; i < 5; i++) {
    CHECK(blocks_tagged(BC_BLOCK_ONGOING, i) == 1, "ongoing %u", i);
    CHECK(strcmp(blocks_get(BC_BLOCK_ONGOING, i)->path, ended(0)->path) == 0, "%s", blocks_get(BC_BLOCK_ONGOING, i)->path);
  }
  printf("5 equal blocks: one report, up to date %.1f ms after the listener was told\n", (double)longest / 1e6);
  CHECK_OK(bc_uninstall());
}

static void *other_loop(void *argument) {
  (void)argument;
  block(watched("other"), 3, first_way, 120);
  return NULL;
}

/* Another stack, another loop, an installation of its own, or no wish for it: no merging. */
static void unlike(void) {
  bc_config config = merging("unlike");
  install_and_start(&config);
  bc_loop *loop = watched("again");
  block(loop, 1, first_way, 120);
  block(loop, 2, second_way, 120);
  join_thread(start_thread(other_loop, NULL));
  flush();
  check_files(3);
  CHECK(ended(1)->repeats == 0 && ended(2)->repeats == 0 && ended(3)->repeats == 0, "repeats");
  CHECK_OK(bc_uninstall());
  config.merge_window_s = BC_MERGE_OFF;
  install_and_start(&config);
  loop = watched("again");
  block(loop, 4, first_way, 120);
  block(loop, 5, first_way, 120);
  flush();
  check_files(5);
  CHECK(health().reports_merged == 0, "%d merged", (int)health().reports_merged);
  CHECK_OK(bc_uninstall());
}

/* A block that is like another one at first, and then is not: as a hang, or because another stack leads it in the end. */
static void like_at_first(void) {
  bc_config config = merging("like_at_first");
  config.hang_threshold_ms = 300;
  install_and_start(&config);
  bc_loop *loop = watched("again");
  block(loop, 1, first_way, 100);
  flush();
  const char *first = ended(1)->path;
  block(loop, 2, first_way, 400);
  flush();
  CHECK(strcmp(blocks_get(BC_BLOCK_ONGOING, 2)->path, first) == 0, "%s", blocks_get(BC_BLOCK_ONGOING, 2)->path);
  CHECK(strcmp(blocks_get(BC_BLOCK_HANG, 2)->path, first) != 0, "a hang is merged");
  CHECK(strcmp(ended(2)->path, blocks_get(BC_BLOCK_HANG, 2)->path) == 0, "%s", ended(2)->path);
  CHECK(ended(2)->repeats == 0, "%u", ended(2)->repeats);
  check_files(2);
  CHECK(tells(first, 0, 0, 0), "a repeat is left:\n%.3000s", text);
  block(loop, 3, first_way, 400);
  flush();
  check_files(3);
  bc_dispatch_begin(loop, "late", 4);
  first_way(80);
  second_way(180);
  bc_dispatch_end(loop);
  flush();
  check_files(4);
  CHECK(strcmp(ended(4)->path, first) != 0 && ended(4)->repeats == 0, "%s", ended(4)->path);
  CHECK(health().reports_merged == 0, "%d merged", (int)health().reports_merged);
  CHECK_OK(bc_uninstall());
}

/* A report that is too long ago, or gone, is not joined. */
static void no_more(void) {
  bc_config config = merging("no_more");
  config.merge_window_s = 1;
  install_and_start(&config);
  bc_loop *loop = watched("again");
  block(loop, 1, first_way, 120);
  flush();
  uint64_t stored = now_ns();
  block(loop, 2, first_way, 120);
  flush();
  CHECK(ended(2)->repeats == 1 || now_ns() - stored > 1000000000, "%u", ended(2)->repeats);
  WAIT_FOR(now_ns() - stored > 1100000000, 10000);
  block(loop, 3, first_way, 120);
  flush();
  check_files(2);
  CHECK(ended(3)->repeats == 0 && strcmp(ended(3)->path, ended(1)->path) != 0, "%s", ended(3)->path);
  CHECK(unlink(ended(3)->path) == 0, "%s", ended(3)->path);
  block(loop, 4, first_way, 120);
  flush();
  CHECK(ended(4)->repeats == 0 && access(ended(4)->path, F_OK) == 0, "%s", ended(4)->path);
  CHECK_OK(bc_uninstall());
  config.max_reports = 1;
  config.merge_window_s = 60;
  install_and_start(&config);
  loop = watched("again");
  block(loop, 5, first_way, 120);
  block(loop, 6, second_way, 120);
  block(loop, 7, first_way, 120);
  flush();
  CHECK(ended(7)->repeats == 0, "joined a report that retention has removed");
  check_files(1);
  CHECK_OK(bc_uninstall());
}

/* However fast they come: one report with the right sum, and nothing half written to be seen. */
static void in_a_row(void) {
  bc_config config = merging("in_a_row");
  config.block_threshold_ms = 4;
  config.sample_interval_ms = 2;
  config.report_ongoing = BC_OFF;
  install_and_start(&config);
  bc_loop *loop = watched("again");
  uint64_t begin = now_ns();
  for (unsigned i = 0; i < 200; i++) {
    block(loop, i, first_way, 8);
  }
  uint64_t blocked = now_ns();
  flush();
  uint64_t done = now_ns();
  unsigned counted = 0;
  for (unsigned i = 0; i < 200; i++) {
    counted += blocks_tagged(BC_BLOCK_ENDED, i);
  }
  bc_health after = health();
  CHECK(after.blocks_seen == after.blocks_delivered + after.blocks_dropped && after.blocks_seen >= 199, "%d seen, %d told",
        (int)after.blocks_seen, (int)after.blocks_delivered);
  printf("%u blocks in %.0f ms, flushed in %.0f: %d texts, %d merged, %d files written, %d failed\n", counted,
         (double)(blocked - begin) / 1e6, (double)(done - blocked) / 1e6, files_in(directory, ".log"),
         (int)after.reports_merged, (int)after.reports_written, (int)after.reports_failed);
  int texts = files_in(directory, ".log");
  CHECK(texts + (int)after.reports_merged == (int)after.blocks_seen, "%d texts, %d merged", texts, (int)after.reports_merged);
  CHECK(after.reports_merged > 100, "%d merged", (int)after.reports_merged);
  CHECK(files_in(directory, ".json") == texts && files_in(directory, ".tmp") == 0, "%d", files_in(directory, ".json"));
  CHECK_OK(bc_uninstall());
}

CASES({"repeats", repeats}, {"unlike", unlike}, {"like_at_first", like_at_first}, {"no_more", no_more},
      {"in_a_row", in_a_row})
