/* bc_block_format_text and _json: what the stored reports say, in the program's own memory. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "support/blocks.h"
#include "support/json.h"
#include "support/procfs.h"

#define ROOM (1024 * 1024)
static char text[ROOM], json[ROOM], stored[ROOM], again[ROOM];
static atomic_uint examined;

typedef size_t (*format)(const bc_block *, char *, size_t);

static void whole(const bc_block *block, format write, char *buffer) {
  size_t needed = write(block, NULL, 0);
  memset(buffer, 'x', ROOM);
  CHECK(needed > 500 && needed + 1 < ROOM, "%zu bytes needed", needed);
  CHECK(write(block, buffer, ROOM) == needed, "another length with room");
  CHECK(strlen(buffer) == needed, "%zu bytes, not %zu", strlen(buffer), needed);
  CHECK(buffer[needed + 1] == 'x', "something behind the NUL");
}

/* As snprintf: whatever the room, the same length, the same begin, a NUL at its end, and nothing behind it. */
static void cut(const bc_block *block, format write, const char *expected) {
  size_t needed = strlen(expected);
  size_t sizes[] = {1, 2, 100, needed - 1, needed, needed + 1, needed + 2};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    size_t size = sizes[i], kept = size - 1 < needed ? size - 1 : needed;
    memset(again, 'x', ROOM);
    CHECK(write(block, again, size) == needed, "another length with %zu bytes", size);
    CHECK(strncmp(again, expected, kept) == 0 && again[kept] == 0, "wrong with %zu bytes", size);
    CHECK(again[kept + 1] == 'x' && again[size] == 'x', "written behind %zu bytes", size);
  }
  again[0] = 'x';
  CHECK(write(block, again, 0) == needed && again[0] == 'x', "written with no room");
}

/* The line that says when it was written is the report's own. */
static void same_as_stored(const char *path, const char *expected) {
  CHECK(read_whole(path, stored, sizeof stored) > 0, "%s cannot be read", path);
  CHECK(strcmp(stored, expected) == 0, "not what %s says", path);
}

static void examine(const bc_block *block) {
  whole(block, bc_block_format_text, text);
  whole(block, bc_block_format_json, json);
  CHECK(json_valid(json), "not JSON");
  cut(block, bc_block_format_text, text);
  cut(block, bc_block_format_json, json);
  CHECK(block->report_path != NULL, "no report");
  same_as_stored(block->report_path, text);
  char path[600];
  snprintf(path, sizeof path, "%.*s.json", (int)(strlen(block->report_path) - 4), block->report_path);
  same_as_stored(path, json);
  atomic_fetch_add(&examined, 1);
}

static bool judge(const bc_block *block, void *user_data) {
  (void)user_data;
  whole(block, bc_block_format_json, again);
  CHECK(json_valid(again) && json_is(again, "cpu_uncertainty_ms", "null") == false, "not whole in the filter");
  return true;
}

/* Byte for byte what is stored, in every state. */
static void as_stored(void) {
  bc_config config = config_of(50);
  config.hang_threshold_ms = 150;
  config.sample_interval_ms = 20;
  config.qualifier = "formatted";
  config.report_dir = fresh_directory("formatting");
  blocks_examine(examine);
  install_and_start(&config);
  CHECK_OK(bc_set_filter(judge, NULL));
  bc_loop *loop = watched("formatted \"loop\"");
  bc_dispatch_begin(loop, "what\n", 1);
  WAIT_FOR(blocks_tagged(BC_BLOCK_ONGOING, 1) == 1, 20000);
  WAIT_FOR(blocks_tagged(BC_BLOCK_HANG, 1) == 1, 20000);
  bc_dispatch_end(loop);
  flush();
  CHECK(atomic_load(&examined) == 3, "%u blocks", atomic_load(&examined));
  printf("%zu bytes of text, %zu of JSON, as stored, in 3 states\n", strlen(text), strlen(json));
  CHECK_OK(bc_uninstall());
}

static bc_block kept;
static bc_sample kept_sample;
static bc_frame kept_frame;
static const bc_block *shown;
static atomic_int is_shown, is_read;

static void *read_elsewhere(void *argument) {
  WAIT_FOR(atomic_load(&is_shown), 20000);
  whole(shown, bc_block_format_json, again);
  atomic_store(&is_read, 1);
  return argument;
}

static void keep(const bc_block *block) {
  if (block->state != BC_BLOCK_ENDED || atomic_load(&is_shown)) {
    return;
  }
  shown = block;
  whole(block, bc_block_format_json, json);
  atomic_store(&is_shown, 1);
  WAIT_FOR(atomic_load(&is_read), 20000);
  kept = *block;
  const bc_sample *samples = block->samples;
  kept_sample = samples[0];
  kept_frame = kept_sample.frames[0];
  kept_frame.module = kept_frame.module == NULL ? NULL : strdup(kept_frame.module);
  kept_frame.build_id = NULL;
  kept_frame.symbol = "kept";
  kept_sample.frames = &kept_frame;
  kept_sample.frame_count = 1;
  kept.samples = &kept_sample;
  kept.sample_count = 1;
  kept.loop_name = "kept";
  kept.what = NULL;
  kept.cause_detail = NULL;
  kept.report_path = NULL;
}

/* On another thread while the listener waits; and a copy, for as long as the library is installed. */
static void elsewhere(void) {
  bc_config config = config_of(50);
  config.sample_interval_ms = 10;
  blocks_examine(keep);
  install_and_start(&config);
  unsigned long other = start_thread(read_elsewhere, NULL);
  bc_loop *loop = watched("elsewhere");
  bc_dispatch_begin(loop, "late", 7);
  sleep_ms(200);
  bc_dispatch_end(loop);
  join_thread(other);
  flush();
  CHECK(strcmp(json, again) == 0, "another thread reads another block");
  CHECK(bc_block_format_json(&kept, json, sizeof json) > 0 && json_valid(json), "a copy is not JSON");
  CHECK(json_is(json, "name", "\"kept\"") && json_is(json, "symbol", "\"kept\"") && json_is(json, "tag", "\"0x7\"") &&
            json_is(json, "what", "null") && json_is(json, "cpu_uncertainty_ms", "null"),
        "%.400s", json);
  CHECK(bc_block_format_text(&kept, text, sizeof text) > 0 && strstr(text, "\r\nloop-name = kept\r\n") != NULL, "%s", text);
  char cut_off[8];
  CHECK(bc_block_format_text(&kept, cut_off, sizeof cut_off) > 500 && strlen(cut_off) == 7, "%zu", strlen(cut_off));
  /* Larger than the library knows: the tail is left alone. Smaller, or with values that are none: nothing. */
  bc_block wrong = kept;
  wrong.struct_size += 100;
  CHECK(bc_block_format_json(&wrong, NULL, 0) > 0, "a larger structure is refused");
  wrong.struct_size = sizeof wrong - 1;
  CHECK(bc_block_format_json(&wrong, cut_off, sizeof cut_off) == 0 && cut_off[0] == 0, "a smaller one is not");
  wrong = kept;
  wrong.state = (bc_block_state)9;
  CHECK(bc_block_format_text(&wrong, cut_off, sizeof cut_off) == 0, "state 9");
  wrong = kept;
  wrong.cause = (bc_cause)99;
  CHECK(bc_block_format_text(&wrong, cut_off, sizeof cut_off) == 0, "cause 99");
  CHECK(bc_block_format_text(NULL, cut_off, sizeof cut_off) == 0 && bc_block_format_json(NULL, NULL, 0) == 0, "NULL");
  wrong = kept;
  wrong.loop_name = NULL;
  wrong.samples = NULL;
  CHECK(bc_block_format_json(&wrong, json, sizeof json) > 0 && json_valid(json), "without anything");
  CHECK_OK(bc_uninstall());
  cut_off[0] = 'x';
  CHECK(bc_block_format_text(&kept, cut_off, sizeof cut_off) == 0 && cut_off[0] == 0, "not installed");
}

CASES({"as_stored", as_stored}, {"elsewhere", elsewhere})
