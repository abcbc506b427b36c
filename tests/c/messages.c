/* What the log says: enough for a human to act upon. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

static char lines[64][512];
static bc_log_level levels[64];
static atomic_uint count;
static atomic_flag busy = ATOMIC_FLAG_INIT;

static void keep(bc_log_level level, const char *message, void *user_data) {
  (void)user_data;
  (void)bc_is_running();
  bc_health inside = {.struct_size = sizeof inside};
  (void)bc_health_get(&inside); /* nothing that this needs may be held now */
  while (atomic_flag_test_and_set(&busy)) {
  }
  unsigned n = atomic_load(&count);
  if (n < 64) {
    levels[n] = level;
    snprintf(lines[n], sizeof lines[n], "%s", message);
    atomic_store(&count, n + 1);
  }
  atomic_flag_clear(&busy);
}

/* The first message since `from` with this text in it, or NULL. */
static const char *said(unsigned from, bc_log_level level, const char *text) {
  for (unsigned i = from; i < atomic_load(&count); i++) {
    if (levels[i] == level && strstr(lines[i], text) != NULL) {
      return lines[i];
    }
  }
  return NULL;
}

static void check_said(unsigned from, bc_log_level level, const char *text) {
  CHECK(said(from, level, text) != NULL, "nobody said \"%s\", but %u others: %s", text, atomic_load(&count) - from,
        from < atomic_load(&count) ? lines[from] : "nothing");
}

#define REFUSED(field, value, status, text)         \
  do {                                              \
    bc_config config = config_of(0);                \
    unsigned from = atomic_load(&count);            \
    config.field = value;                           \
    CHECK_STATUS(bc_install(&config), status);      \
    check_said(from, BC_LOG_ERROR, text);           \
    CHECK(atomic_load(&count) == from + 1, "%u messages", atomic_load(&count) - from); \
  } while (0)

/* A configuration that is refused: which field, and why. */
static void refusals(void) {
  CHECK_OK(bc_set_log_handler(keep, NULL));
  REFUSED(max_loops, 1000, BC_ERROR_INVALID_ARGUMENT, "bc_config.max_loops: 1000 is not in 1 to 256");
  REFUSED(max_stack_depth, 7, BC_ERROR_INVALID_ARGUMENT, "bc_config.max_stack_depth: 7 is not in 8 to 1024");
  REFUSED(redact_paths, (bc_toggle)7, BC_ERROR_INVALID_ARGUMENT, "bc_config.redact_paths: 7 ");
  REFUSED(signal_number, 1, BC_ERROR_INVALID_ARGUMENT, "bc_config.signal_number: 1 ");
  REFUSED(max_report_bytes, 5, BC_ERROR_INVALID_ARGUMENT, "bc_config.max_report_bytes: 5 ");
  REFUSED(struct_size, 8, BC_ERROR_INVALID_ARGUMENT, "bc_config.struct_size: 8 ");
  REFUSED(report_dir, "/proc/nowhere", BC_ERROR_IO, "bc_config.report_dir: /proc/nowhere: there is no such file");
  REFUSED(report_dir, "/proc/self/status", BC_ERROR_IO, "/proc/self/status: a file or a link stands where");
}

/* A block: which loop, what it did, how long, and where to read on. */
static void blocks(void) {
  CHECK_OK(bc_set_log_handler(keep, NULL));
  const char *directory = fresh_directory("messages");
  bc_config config = config_of(50);
  config.report_dir = directory;
  config.hang_threshold_ms = 120;
  install_and_start(&config);
  bc_loop *loop = watched("ga\nme");
  unsigned from = atomic_load(&count);
  blocking_dispatch(loop, "fra\tme", 1, 80);
  flush();
  char line[600];
  const struct told *block = blocks_get(BC_BLOCK_ENDED, 1);
  snprintf(line, sizeof line, "loop \"ga?me\": \"fra?me\" blocked for %u ms", (unsigned)(block->wall_ns / 1000000));
  check_said(from, BC_LOG_WARN, line);
  const char *ended = said(from, BC_LOG_WARN, line);
  const char *arrow = strstr(ended, " → ");
  CHECK(arrow != NULL && strcmp(arrow + strlen(" → "), block->path) == 0, "%s", ended);
  check_said(from, BC_LOG_INFO, "has been blocked for ");
  blocking_dispatch(loop, NULL, 2, 200);
  flush();
  check_said(from, BC_LOG_WARN, "loop \"ga?me\": hangs: it has been blocked for ");
  CHECK_OK(bc_uninstall());

  /* Without its directory, which is told too. */
  config.report_dir = "messages.gone";
  install_and_start(&config);
  CHECK(rmdir("messages.gone") == 0, "rmdir");
  FILE *in_its_place = fopen("messages.gone", "w");
  CHECK(in_its_place != NULL && fclose(in_its_place) == 0, "fopen");
  from = atomic_load(&count);
  blocking_dispatch(watched("game"), "frame", 3, 80);
  flush();
  check_said(from, BC_LOG_WARN, "could not be written: a file or a link stands where a directory should");
  CHECK(strstr(said(from, BC_LOG_WARN, "could not be written"), "messages.gone/looper-") != NULL, "%s",
        said(from, BC_LOG_WARN, "could not be written"));
  CHECK(unlink("messages.gone") == 0, "unlink");
  CHECK_OK(bc_uninstall());
}

static void *on_another_thread(void *loop) {
  bc_dispatch_begin(loop, "elsewhere", 1);
  bc_dispatch_end(loop);
  return NULL;
}

/* Marks that do nothing, because they are left where the loop is not: said once, also to a program that is idle else. */
static void misuse(void) {
  CHECK_OK(bc_set_log_handler(keep, NULL));
  bc_config config = config_of(50);
  install_and_start(&config);
  bc_loop *loop = watched("game");
  pause_ms(1500); /* the monitor parks */
  unsigned from = atomic_load(&count);
  for (unsigned i = 0; i < 3; i++) {
    join_thread(start_thread(on_another_thread, loop));
    WAIT_FOR(said(from, BC_LOG_WARN, "marks do not fit") != NULL, 20000);
  }
  flush();
  unsigned times = 0;
  for (unsigned i = from; i < atomic_load(&count); i++) {
    times += strstr(lines[i], "marks do not fit") != NULL;
  }
  CHECK(times == 1 && health().calls_misused == 6, "said %u times of %llu calls", times,
        (unsigned long long)health().calls_misused);
  CHECK_OK(bc_uninstall());
}

CASES({"refusals", refusals}, {"blocks", blocks}, {"misuse", misuse})
