/* Whatever a caller passes, the answer is a status and never a crash. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

static void before_install(void) {
  CHECK(strcmp(bc_version(), "0.1.0") == 0, "%s", bc_version());
  for (uint32_t status = 0; status < 20; status++) {
    const char *text = bc_status_str((bc_status)status);
    CHECK(text != NULL && text[0] != 0, "no text for %u", status);
  }
  CHECK(bc_status_str((bc_status)UINT32_MAX) != NULL, "no text for nonsense");
  CHECK(strcmp(bc_status_str(BC_OK), bc_status_str(BC_ERROR_IO)) != 0, "%s", bc_status_str(BC_OK));

  bc_loop *loop = (bc_loop *)1;
  bc_health health = {.struct_size = sizeof health};
  CHECK(!bc_is_running(), "running");
  CHECK_STATUS(bc_start(), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_stop(), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_uninstall(), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_pause(), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_resume(), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_flush(0), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_health_get(&health), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_loop_watch("early", &loop), BC_ERROR_INVALID_STATE);
  CHECK(loop == NULL, "a failed watch left %p", (void *)loop);
  CHECK_STATUS(bc_set_listener(blocks_listener, NULL), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_threads_dump(1), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_threads_dump(-1), BC_ERROR_INVALID_STATE);
  CHECK_OK(bc_set_log_handler(NULL, NULL));
  bc_dispatch_begin(NULL, NULL, 0);
  bc_dispatch_end(NULL);
  bc_dispatch_end((bc_loop *)0x1234);
}

static void nulls(void) {
  bc_config_init(NULL, sizeof(bc_config));
  CHECK_OK(bc_install(NULL));
  CHECK_STATUS(bc_install(NULL), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_health_get(NULL), BC_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(bc_loop_watch("name", NULL), BC_ERROR_INVALID_ARGUMENT);
  CHECK(bc_loop_unwatch(NULL) != BC_OK && bc_loop_set_threshold(NULL, 5) != BC_OK, "NULL is taken for a loop");
  CHECK_OK(bc_set_listener(NULL, NULL));
  CHECK_OK(bc_start());
  CHECK_OK(bc_start());
  bc_loop *loop = watched(NULL);
  bc_dispatch_begin(loop, NULL, 0);
  bc_dispatch_end(loop);
  CHECK_STATUS(bc_loop_set_threshold(loop, UINT32_MAX), BC_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(bc_loop_set_threshold(loop, 60001), BC_ERROR_INVALID_ARGUMENT);
  CHECK_OK(bc_loop_set_threshold(loop, 60000));
  CHECK_OK(bc_loop_set_threshold(loop, 0));
  CHECK_STATUS(bc_resume(), BC_ERROR_INVALID_STATE);
  CHECK_OK(bc_stop());
  CHECK_OK(bc_stop());
  CHECK_OK(bc_uninstall());
}

/* One configuration value; `least` and `most` are the ends of its range, others lie beyond. */
#define RANGE(field, least, most, ...)                                                           \
  do {                                                                                           \
    const uint64_t good[] = {least, most}, bad[] = {__VA_ARGS__};                                \
    for (size_t i = 0; i < 2; i++) {                                                             \
      bc_config config = config_of(0);                                                           \
      config.field = good[i];                                                                    \
      CHECK_OK(bc_install(&config));                                                             \
      CHECK_OK(bc_uninstall());                                                                  \
    }                                                                                            \
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {                                    \
      bc_config config = config_of(0);                                                           \
      config.field = bad[i];                                                                     \
      bc_status status = bc_install(&config);                                                    \
      CHECK(status == BC_ERROR_INVALID_ARGUMENT, #field " = %llu: %s", (unsigned long long)bad[i], \
            bc_status_str(status));                                                              \
    }                                                                                            \
  } while (0)

static void ranges(void) {
  RANGE(block_threshold_ms, 1, 60000, 60001, UINT32_MAX);
  RANGE(sample_interval_ms, 1, 60000, 60001, UINT32_MAX);
  RANGE(hang_threshold_ms, 1, 600000, 600001, UINT32_MAX);
  RANGE(max_loops, 1, 256, 257, UINT32_MAX);
  RANGE(max_stack_depth, 8, 1024, 1, 7, 1025, UINT32_MAX);
  RANGE(sample_capacity, 16, 65536, 1, 15, 65537, UINT32_MAX);
  RANGE(report_formats, 1, 3, 4, 5, UINT32_MAX);
  RANGE(max_reports, 1, 100000, 100001, UINT32_MAX);
  RANGE(max_report_bytes, 65536, UINT64_MAX, 1, 65535);
  RANGE(signal_number, (uint64_t)SIGRTMIN, (uint64_t)SIGRTMAX, 1, SIGSEGV, (uint64_t)SIGRTMIN - 1,
        (uint64_t)SIGRTMAX + 1, INT_MAX, (uint64_t)-1);
}

/* These have no wrong values. */
static void whole_ranges(void) {
  const uint32_t values[] = {1, 59, 60, 61, 172799, 172800, 0x7fffffff, UINT32_MAX - 1, UINT32_MAX};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    bc_config config = config_of(0);
    config.monitor_duration_s = config.report_max_age_s = config.merge_window_s = values[i];
    config.max_report_bytes = 65536ull + values[i];
    config.concern_modules = i % 2 == 0 ? "" : " liba.so, libb.so ,,";
    config.ignore_modules = i % 3 == 0 ? ",,, " : "libc.so";
    CHECK_OK(bc_install(&config));
    CHECK_OK(bc_start());
    CHECK(bc_is_running(), "ended at once, after %u s", values[i]);
    CHECK_OK(bc_uninstall());
  }
}

/* Enumerations hold any 32 bits when C callers fill them. */
static void nonsense(void) {
  const uint32_t values[] = {3, 4, 255, 256, 0x80000000u, UINT32_MAX};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    bc_config config = config_of(0);
    bc_toggle *toggles[] = {&config.stack_sampling,  &config.cpu_sampling,    &config.all_threads_on_block,
                            &config.report_ongoing, &config.while_debugging, &config.dumpable_window,
                            &config.redact_paths};
    for (size_t k = 0; k < sizeof toggles / sizeof toggles[0]; k++) {
      *toggles[k] = (bc_toggle)values[i];
      CHECK_STATUS(bc_install(&config), BC_ERROR_INVALID_ARGUMENT);
      *toggles[k] = BC_DEFAULT;
    }
    if (values[i] != 3) {
      config.sampling_method = (bc_sampling_method)values[i];
      CHECK_STATUS(bc_install(&config), BC_ERROR_INVALID_ARGUMENT);
      config.sampling_method = BC_SAMPLING_AUTO;
    }
    CHECK_OK(bc_install(&config));
    CHECK_OK(bc_uninstall());
  }
}

/* Structures of an older and of a newer program: nothing is read or written beyond what they say. */
static void sizes(void) {
  unsigned char memory[sizeof(bc_config) + 64];
  bc_config *config = (bc_config *)(void *)memory;
  memset(memory, 0xa5, sizeof memory);
  bc_config_init(config, sizeof *config + 32);
  CHECK(config->struct_size == sizeof *config + 32, "struct_size %zu", config->struct_size);
  for (size_t i = sizeof config->struct_size; i < sizeof memory; i++) {
    unsigned char expected = i < sizeof *config + 32 ? 0 : 0xa5;
    CHECK(memory[i] == expected, "byte %zu is %u after bc_config_init", i, memory[i]);
  }
  memset(memory + sizeof *config, 0x5a, 64); /* the tail of a newer structure is ignored, whatever it holds */
  config->block_threshold_ms = 100;
  CHECK_OK(bc_install(config));
  for (size_t i = sizeof *config; i < sizeof memory; i++) {
    CHECK(memory[i] == 0x5a, "byte %zu is %u after bc_install", i, memory[i]);
  }
  unsigned char answer[sizeof(bc_health) + 32];
  memset(answer, 0x5a, sizeof answer);
  bc_health *got = (bc_health *)(void *)answer;
  got->struct_size = sizeof answer;
  CHECK_OK(bc_health_get(got));
  CHECK(got->struct_size == sizeof answer && got->loops_watched == 0 && got->memory_bytes > 0, "struct_size %zu",
        got->struct_size);
  for (size_t i = sizeof(bc_health); i < sizeof answer; i++) {
    CHECK(answer[i] == 0x5a, "byte %zu is %u after bc_health_get", i, answer[i]);
  }
  const size_t small[] = {0, 1, 7, 8, sizeof(bc_health) - 1};
  for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
    memset(answer, 0x5a, sizeof answer);
    got->struct_size = small[i];
    CHECK_STATUS(bc_health_get(got), BC_ERROR_INVALID_ARGUMENT);
    for (size_t k = sizeof(size_t); k < sizeof answer; k++) {
      CHECK(answer[k] == 0x5a, "a refused bc_health_get wrote byte %zu", k);
    }
  }
  CHECK_OK(bc_uninstall());

  for (size_t size = 0; size < sizeof(bc_config); size++) {
    memset(memory, 0xa5, sizeof memory);
    bc_config_init(config, size);
    for (size_t k = size; k < sizeof memory; k++) {
      CHECK(memory[k] == 0xa5, "bc_config_init of %zu bytes wrote byte %zu", size, k);
    }
    bc_config whole = config_of(0);
    whole.struct_size = size;
    CHECK_STATUS(bc_install(&whole), BC_ERROR_INVALID_ARGUMENT);
  }
}

static bc_loop *owned;

static void *foreign_thread(void *argument) {
  blocking_dispatch(owned, "foreign", 1, 50);
  return argument;
}

/* Marks of a thread that does not own the loop, and ends that no begin belongs to. */
static void misuse(void) {
  bc_config config = config_of(10);
  install_and_start(&config);
  owned = watched("owned");
  join_thread(start_thread(foreign_thread, NULL));
  CHECK(health().calls_misused == 2, "%d, not 2, of a foreign thread", (int)health().calls_misused);
  bc_dispatch_end(owned);
  bc_dispatch_end(owned);
  CHECK(health().calls_misused == 4, "%d, not 4, after two ends without a begin", (int)health().calls_misused);
  blocking_dispatch(owned, "own", 2, 50);
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1 && blocks_tagged(BC_BLOCK_ENDED, 2) == 1, "%u blocks",
        blocks_in(BC_BLOCK_ENDED));

  /* One loop more than the configuration allows. */
  CHECK_OK(bc_uninstall());
  config.max_loops = 1;
  install_and_start(&config);
  owned = watched("only");
  CHECK(watched("again") == owned, "a second watch of a thread gives another token");
  bc_loop *copy = NULL;
  CHECK_OK(bc_loop_watch(NULL, &copy));
  CHECK_OK(bc_loop_unwatch(owned));
  CHECK(bc_loop_unwatch(owned) != BC_OK, "unwatched twice");
  CHECK_OK(bc_uninstall());
}

static void *one_too_many(void *argument) {
  bc_loop *loop = (bc_loop *)1;
  CHECK_STATUS(bc_loop_watch("too many", &loop), BC_ERROR_LIMIT_REACHED);
  CHECK(loop == NULL, "%p", (void *)loop);
  return argument;
}

static void loops_full(void) {
  bc_config config = config_of(10);
  config.max_loops = 1;
  install_and_start(&config);
  bc_loop *loop = watched("only");
  join_thread(start_thread(one_too_many, NULL));
  CHECK(health().loops_refused == 1 && health().loops_watched == 1, "%d refused, %d watched",
        (int)health().loops_refused, (int)health().loops_watched);
  CHECK_OK(bc_loop_unwatch(loop));
  CHECK(health().loops_watched == 0, "%d watched", (int)health().loops_watched);
  CHECK_OK(bc_uninstall());
}

CASES({"before_install", before_install}, {"nulls", nulls}, {"ranges", ranges}, {"whole_ranges", whole_ranges}, {"nonsense", nonsense},
      {"sizes", sizes}, {"misuse", misuse}, {"loops_full", loops_full})
