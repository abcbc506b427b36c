/* The no-op: it has every function of the header, and each does nothing and says that all is well. */
#include <blockcanary.h>
#include <string.h>

#include "../check.h"

static void answer_bc_status(const char *name, bc_status status) {
  CHECK(status == BC_OK, "%s gives %d", name, (int)status);
}

static void answer_bool(const char *name, bool is_so) {
  CHECK(strcmp(name, "bc_is_running") == 0 && !is_so, "%s", name);
}

static void answer_size_t(const char *name, size_t length) {
  CHECK(length == 0, "%s gives %zu", name, length);
}

/* The looper's. This program has none. */
static void answer_int(const char *name, int result) {
  int expected = strstr(name, "_poll_") ? -4 : -1;
  CHECK(strncmp(name, "bc_looper_", 10) == 0 && result == expected, "%s gives %d", name, result);
}

static void answer_const_char_p(const char *name, const char *words) {
  CHECK(words && words[0], "%s gives no words", name);
}

/* Each with NULL and 0. */
static void everything(void) {
#include "calls.inc"
}

/* Filled with 0xff, given a size, handed to a call. Returns how many bytes the call has cleared behind the size. */
static size_t cleared(void *structure, size_t room, size_t struct_size, void (*call)(void *)) {
  unsigned char *bytes = structure;
  memset(bytes, 0xff, room);
  memcpy(bytes, &struct_size, sizeof struct_size);
  call(structure);
  CHECK(memcmp(bytes, &struct_size, sizeof struct_size) == 0, "struct_size %zu was changed", struct_size);
  size_t zeros = 0;
  while (sizeof struct_size + zeros < room && bytes[sizeof struct_size + zeros] == 0) {
    zeros++;
  }
  for (size_t i = sizeof struct_size + zeros; i < room; i++) {
    CHECK(bytes[i] == 0xff, "byte %zu of a structure of %zu", i, struct_size);
  }
  return zeros;
}

static void get_health(void *health) {
  CHECK_OK(bc_health_get(health));
}

static void get_stats(void *stats) {
  CHECK_OK(bc_loop_stats_get(NULL, stats));
}

static void take_stats(void *stats) {
  CHECK_OK(bc_loop_stats_take(NULL, stats));
}

static void structures(void) {
  static const struct {
    void (*call)(void *);
    size_t size;
  } calls[] = {{get_health, sizeof(bc_health)}, {get_stats, sizeof(bc_loop_stats)}, {take_stats, sizeof(bc_loop_stats)}};
  static union {
    size_t size;
    unsigned char bytes[2 * sizeof(bc_loop_stats)];
  } room;
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    size_t whole = calls[i].size;
    const size_t sizes[] = {0, 1, sizeof(size_t), sizeof(size_t) + 4, whole - 8, whole, whole + 24};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
      size_t known = sizes[k] < whole ? sizes[k] : whole;
      size_t expected = known > sizeof(size_t) ? known - sizeof(size_t) : 0;
      size_t found = cleared(room.bytes, sizeof room.bytes, sizes[k], calls[i].call);
      CHECK(found == expected, "call %zu clears %zu bytes behind a size of %zu, not %zu", i, found, sizes[k], expected);
    }
  }
}

static void configuration(void) {
  unsigned char bytes[sizeof(bc_config) + 8];
  memset(bytes, 0xff, sizeof bytes);
  bc_config_init((bc_config *)(void *)bytes, sizeof(bc_config));
  bc_config expected;
  memset(&expected, 0, sizeof expected);
  expected.struct_size = sizeof expected;
  CHECK(memcmp(bytes, &expected, sizeof expected) == 0, "not cleared");
  CHECK(bytes[sizeof expected] == 0xff, "cleared beyond its end");
  memset(bytes, 0xff, sizeof bytes);
  bc_config_init((bc_config *)(void *)bytes, 4);
  CHECK(bytes[0] == 0xff, "no room for the size");
}

static void handles(void) {
  int some;
  bc_loop *loop = (bc_loop *)(void *)&some;
  CHECK_OK(bc_loop_watch("loop", &loop));
  CHECK(loop == NULL, "a loop");
  loop = (bc_loop *)(void *)&some;
  CHECK_OK(bc_looper_probe((ALooper *)(void *)&some, "loop", &loop));
  CHECK(loop == NULL, "a loop");
  loop = (bc_loop *)(void *)&some;
  CHECK_OK(bc_frames_watch("loop", &loop));
  CHECK(loop == NULL, "a loop");
  loop = (bc_loop *)(void *)&some;
  CHECK_OK(bc_java_watch(&some, "main", &loop));
  CHECK(loop == NULL, "a loop");
}

static void texts(void) {
  bc_block block;
  memset(&block, 0, sizeof block);
  block.struct_size = sizeof block;
  char text[2] = "ab";
  CHECK(bc_block_format_text(&block, text, 0) == 0 && text[0] == 'a', "no room");
  CHECK(bc_block_format_text(&block, text, 2) == 0 && text[0] == '\0' && text[1] == 'b', "text");
  text[0] = 'a';
  CHECK(bc_block_format_json(&block, text, 2) == 0 && text[0] == '\0' && text[1] == 'b', "json");
}

static bool never(const char *path, void *user_data) {
  (void)user_data;
  CHECK(false, "called with %s", path);
  return true;
}

static void whole_life(void) {
  bc_config config;
  bc_config_init(&config, sizeof config);
  config.report_dir = "/nowhere/at/all";
  CHECK_OK(bc_install(&config));
  CHECK_OK(bc_install(&config));
  CHECK_OK(bc_start());
  CHECK(!bc_is_running(), "running");
  CHECK_OK(bc_set_uploader(never, NULL));
  CHECK_OK(bc_reports_each(never, NULL));
  CHECK_OK(bc_reports_upload());
  CHECK_OK(bc_flush(0));
  CHECK_OK(bc_uninstall());
}

CASES({"everything", everything}, {"structures", structures}, {"configuration", configuration}, {"handles", handles},
      {"texts", texts}, {"whole_life", whole_life})
