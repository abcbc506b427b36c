/* After bc_install has returned, neither the library's threads nor any of its functions call the allocator. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "check.h"
#include "malloc_counter.h"
#include "support/blocks.h"
#include "support/procfs.h"

static void *planted_thread(void *argument) {
  (void)argument;
  prctl(PR_SET_NAME, "bc-planted");
  void *volatile memory = malloc(100);
  free(memory);
  return NULL;
}

/* The counter counts what it is there for, and nothing else. */
static void planted(void) {
  malloc_counter_on();
  free(malloc(10));
  CHECK(malloc_counter_show() == 0, "a call of the program's own was counted");
  char *copy = BC(strdup("inside"));
  CHECK(malloc_counter_show() == 1, "%d, not 1, inside a call", (int)malloc_counter_show());
  free(copy);
  join_thread(start_thread(planted_thread, NULL));
  CHECK(malloc_counter_show() == 3, "%d, not 3, after a thread named bc-planted", (int)malloc_counter_show());
}

static void *work(void *argument) {
  unsigned long number = (unsigned long)argument;
  bc_loop *loop = NULL;
  char name[16];
  snprintf(name, sizeof name, "worker %lu", number);
  CHECK_OK(BC(bc_loop_watch(name, &loop)));
  CHECK_OK(BC(bc_loop_set_threshold(loop, 40)));
  for (unsigned i = 0; i < 6; i++) {
    BC_VOID(bc_dispatch_begin(loop, "outer", i));
    BC_VOID(bc_dispatch_begin(loop, "inner", i));
    if (i % 2 == 0) {
      spin_ms(90);
    } else {
      sleep_ms(90);
    }
    BC_VOID(bc_dispatch_end(loop));
    BC_VOID(bc_dispatch_end(loop));
  }
  if (number % 2 == 0) {
    CHECK_OK(BC(bc_loop_unwatch(loop))); /* the others leave by their thread's end */
  }
  return NULL;
}

static void log_handler(bc_log_level level, const char *message, void *user_data) {
  (void)level;
  (void)message;
  (void)user_data;
}

static char text[256 * 1024];
static atomic_uint formatted, visits, uploads;

/* Runs on bc-reporter, whose every call of the allocator counts. */
static void format(const bc_block *block) {
  unsigned whole = bc_block_format_text(block, text, sizeof text) > 0 && bc_block_format_json(block, text, sizeof text) > 0;
  atomic_fetch_add(&formatted, whole);
}

static bool visit(const char *path, void *user_data) {
  (void)path, (void)user_data;
  atomic_fetch_add(&visits, 1);
  return true;
}

static bool uploader(const char *zip_path, void *user_data) {
  (void)zip_path, (void)user_data;
  atomic_fetch_add(&uploads, 1);
  return true;
}

/* Blocks of every state, on three loops at once, with both formats and more reports than are kept; then stop. */
static void life(void) {
  const char *directory = fresh_directory("alloc_zero");
  bc_config config = config_of(50);
  config.hang_threshold_ms = 60;
  config.sample_interval_ms = 10;
  config.max_reports = 5;
  config.report_dir = directory;
  config.all_threads_on_block = BC_ON;
  CHECK_OK(bc_set_log_handler(log_handler, NULL));
  CHECK_OK(bc_install(&config));

  blocks_examine(format);
  malloc_counter_on();
  CHECK_OK(BC(bc_set_listener(blocks_listener, NULL)));
  CHECK_OK(BC(bc_start()));
  unsigned long workers[3];
  for (unsigned long i = 0; i < 3; i++) {
    workers[i] = start_thread(work, (void *)i);
  }
  int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  CHECK_OK(BC(bc_threads_dump(null)));
  for (unsigned long i = 0; i < 3; i++) {
    join_thread(workers[i]);
  }
  CHECK_OK(BC(bc_pause()));
  CHECK_OK(BC(bc_resume()));
  CHECK_OK(BC(bc_flush(20000)));
  bc_health health = {.struct_size = sizeof health};
  CHECK_OK(BC(bc_health_get(&health)));
  int logs = files_in(directory, ".log"), objects = files_in(directory, ".json");
  CHECK_OK(BC(bc_reports_each(visit, NULL)));
  CHECK_OK(BC(bc_reports_zip("alloc_zero.zip")));
  CHECK_OK(BC(bc_set_uploader(uploader, NULL)));
  CHECK_OK(BC(bc_reports_upload()));
  WAIT_FOR(atomic_load(&uploads) == 1 && files_in(directory, "") == 0, 20000);
  CHECK_OK(BC(bc_reports_delete_all()));
  CHECK_OK(BC(bc_stop()));
  CHECK_OK(BC(bc_threads_dump(null)));
  CHECK_OK(BC(bc_start()));
  CHECK_OK(BC(bc_stop()));
  malloc_counter_off();

  CHECK(blocks_in(BC_BLOCK_ENDED) == 18, "%u ended", blocks_in(BC_BLOCK_ENDED));
  CHECK(blocks_in(BC_BLOCK_ONGOING) > 0 && blocks_in(BC_BLOCK_HANG) > 0, "%u ongoing, %u hang",
        blocks_in(BC_BLOCK_ONGOING), blocks_in(BC_BLOCK_HANG));
  CHECK(health.samples_taken > 0, "no sample");
  CHECK(logs == 5 && objects == 5, "%d .log, %d .json", logs, objects);
  CHECK(atomic_load(&visits) == 10, "%u visits", atomic_load(&visits));
  CHECK(atomic_load(&formatted) == blocks_told(), "%u of %u blocks formatted", atomic_load(&formatted), blocks_told());
  CHECK(unlink("alloc_zero.zip") == 0, "no archive");
  CHECK_OK(bc_uninstall());
  printf("%d calls of the allocator from bc_start on: 18 blocks, %llu samples, %llu report files; listed, formatted, zipped, "
         "uploaded, deleted\n",
         (int)malloc_counter_show(), (unsigned long long)health.samples_taken,
         (unsigned long long)health.reports_written);
  CHECK(malloc_counter_show() == 0, "%d calls of the allocator", (int)malloc_counter_show());
}

CASES({"planted", planted}, {"life", life})
