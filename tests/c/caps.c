/* How much the report directory may hold, in bytes and in age. */
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

static const char *directory;

/* Bytes of all reports, and something that changes with their names and sizes. */
static uint64_t report_bytes(uint64_t *state) {
  uint64_t bytes = 0;
  *state = 0;
  DIR *open = opendir(directory);
  CHECK(open != NULL, "%s", directory);
  for (struct dirent *entry; (entry = readdir(open)) != NULL;) {
    struct stat status;
    if (strncmp(entry->d_name, "looper-", 7) == 0 && fstatat(dirfd(open), entry->d_name, &status, 0) == 0) {
      bytes += (uint64_t)status.st_size;
      *state += ((uint64_t)status.st_ino << 32) * 31 + (uint64_t)status.st_size;
    }
  }
  closedir(open);
  return bytes;
}

static atomic_int is_done;
static uint64_t most_seen, looks;

static void *look(void *argument) {
  (void)argument;
  uint64_t before = 0, now;
  while (!atomic_load(&is_done)) {
    /* A look takes its time: it counts if the next one finds the same. */
    uint64_t bytes = report_bytes(&now);
    bool is_still = now == before;
    before = now;
    if (!is_still) {
      continue;
    }
    most_seen = bytes > most_seen ? bytes : most_seen;
    looks++;
  }
  return NULL;
}

/* The cap holds at every moment, and the newest are there. */
static void bytes(void) {
  directory = fresh_directory("bytes");
  bc_config config = config_of(10);
  config.sample_interval_ms = 5;
  config.report_dir = directory;
  config.max_report_bytes = 64 * 1024;
  install_and_start(&config);
  bc_loop *loop = watched("caps");
  unsigned long looker = start_thread(look, NULL);
  uint64_t written = 0;
  for (unsigned i = 0; i < 60; i++) {
    blocking_dispatch(loop, "late", i, 40);
    flush();
    struct stat status;
    const char *path = blocks_get(BC_BLOCK_ENDED, i)->path;
    CHECK(stat(path, &status) == 0, "the newest report is not there: %s", path);
    written += (uint64_t)status.st_size;
    uint64_t state, now = report_bytes(&state);
    CHECK(now <= 64 * 1024, "%u bytes", (unsigned)now);
  }
  atomic_store(&is_done, 1);
  join_thread(looker);
  printf("%u bytes of text written, at most %u of all in %u looks, %d texts left, %d failed\n", (unsigned)written,
         (unsigned)most_seen, (unsigned)looks, files_in(directory, ".log"), (int)health().reports_failed);
  CHECK(most_seen <= 64 * 1024 && most_seen > 32 * 1024, "%u bytes", (unsigned)most_seen);
  CHECK(health().reports_failed == 0, "%d failed", (int)health().reports_failed);
  CHECK_OK(bc_uninstall());
}

/* A report by a process that is gone; its name tells one time and its file another. */
static void plant(char *path, size_t size, unsigned n, time_t named, time_t written) {
  struct tm local;
  char stamp[64];
  localtime_r(&named, &local);
  strftime(stamp, sizeof stamp, "%Y-%m-%d_%H-%M-%S", &local);
  snprintf(path, size, "%s/looper-%s.000-999999999-%u.log", directory, stamp, n);
  int fd = open(path, O_CREAT | O_WRONLY, 0600);
  const struct timespec times[2] = {{.tv_sec = written}, {.tv_sec = written}};
  CHECK(fd >= 0 && write(fd, "text", 4) == 4 && futimens(fd, times) == 0, "%s", path);
  close(fd);
}

static bool is_there(const char *path) {
  return access(path, F_OK) == 0;
}

/* What is too old goes when watching begins, and with each report. */
static void age(void) {
  directory = fresh_directory("age");
  time_t now = time(NULL);
  char old[300], old_name[300], old_file[300], young[300];
  plant(old, sizeof old, 1, now - 200000, now - 200000);
  plant(old_name, sizeof old_name, 2, now - 200000, now);
  plant(old_file, sizeof old_file, 3, now - 100, now - 200000);
  plant(young, sizeof young, 4, now - 100000, now - 100000);
  bc_config config = config_of(50);
  config.report_dir = directory;
  install_and_start(&config); /* two days, by default */
  WAIT_FOR(!is_there(old) && !is_there(old_name) && !is_there(old_file), 10000);
  CHECK(is_there(young), "a day-old report is gone");
  CHECK_OK(bc_uninstall());

  config.report_max_age_s = 1;
  install_and_start(&config);
  WAIT_FOR(!is_there(young), 10000);
  bc_loop *loop = watched("caps");
  blocking_dispatch(loop, "late", 1, 100);
  flush();
  const char *first = blocks_get(BC_BLOCK_ENDED, 1)->path;
  CHECK(is_there(first), "%s", first);
  uint64_t begin = now_ns();
  WAIT_FOR(now_ns() - begin > 1200000000, 10000);
  blocking_dispatch(loop, "late", 2, 100);
  flush();
  CHECK(!is_there(first), "%s is still there", first);
  CHECK(is_there(blocks_get(BC_BLOCK_ENDED, 2)->path), "%s", blocks_get(BC_BLOCK_ENDED, 2)->path);
  /* A block that goes on is not too old, however long that is. */
  bc_dispatch_begin(loop, "long", 3);
  WAIT_FOR(blocks_tagged(BC_BLOCK_ONGOING, 3) == 1, 10000);
  spin_ms(1500);
  CHECK(is_there(blocks_get(BC_BLOCK_ONGOING, 3)->path), "the report of an open block is gone");
  bc_dispatch_end(loop);
  flush();
  CHECK_OK(bc_uninstall());
}

CASES({"bytes", bytes}, {"age", age})
