/* Disks that fill up, fail or go away: blocks are told of all the same, what could not be written is counted and its cause
   told, and reports flow again when they can. Nobody ever sees half a report. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/json.h"
#include "support/procfs.h"

static char directory[300];

/* What writes of bc-writer fail with, and how many have. */
static atomic_int injected, failures;

/* In the place of the C library's: a device that fails. */
ssize_t write(int fd, const void *bytes, size_t count) {
  char name[16];
  if (atomic_load(&injected) != 0 && prctl(PR_GET_NAME, name) == 0 && strcmp(name, "bc-writer") == 0) {
    atomic_fetch_add(&failures, 1);
    errno = atomic_load(&injected);
    return -1;
  }
  return syscall(SYS_write, fd, bytes, count);
}

static char last_warning[512];
static atomic_uint warnings;

static void keep_warning(bc_log_level level, const char *message, void *user_data) {
  (void)user_data;
  if (level <= BC_LOG_WARN && strstr(message, "could not be written") != NULL) {
    snprintf(last_warning, sizeof last_warning, "%s", message);
    atomic_fetch_add(&warnings, 1);
  }
}

static void install(void) {
  bc_config config = config_of(30);
  config.report_dir = directory;
  config.report_ongoing = BC_OFF;
  CHECK_OK(bc_set_log_handler(keep_warning, NULL));
  install_and_start(&config);
}

static bool is_stored(uint64_t tag) {
  const char *path = blocks_get(BC_BLOCK_ENDED, tag)->path;
  return path[0] != 0 && access(path, F_OK) == 0;
}

/* One block, and whether its report is there. */
static bool stores(bc_loop *loop, uint64_t tag) {
  blocking_dispatch(loop, "disk", tag, 60);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, tag) == 1, "block %u was told %u times", (unsigned)tag,
        blocks_tagged(BC_BLOCK_ENDED, tag));
  return is_stored(tag);
}

static int unfinished(void) {
  return files_in(directory, ".tmp");
}

/* Errors as a device and a quota give them. */
static void failing(void) {
  const struct {
    int error;
    const char *words;
  } causes[] = {{EIO, "the device has failed"}, {EDQUOT, "the quota is used up"}, {ENOSPC, "no room"},
                {EROFS, "the file system is read-only"}};
  snprintf(directory, sizeof directory, "%s", fresh_directory("failing"));
  install();
  bc_loop *loop = watched("failing");
  uint64_t tag = 1;
  CHECK(stores(loop, tag++), "nothing is stored on a good disk");
  for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
    int files = files_but(directory, ".bcr");
    uint64_t failed = health().reports_failed;
    atomic_store(&injected, causes[i].error);
    CHECK(!stores(loop, tag++), "stored all the same");
    atomic_store(&injected, 0);
    CHECK(health().reports_failed == failed + 2, "%d failed", (int)health().reports_failed);
    CHECK(strstr(last_warning, causes[i].words) != NULL, "no \"%s\": %s", causes[i].words, last_warning);
    CHECK(files_but(directory, ".bcr") == files, "%d files, not %d", files_but(directory, ".bcr"), files);
    CHECK(stores(loop, tag++), "no report after error %d", causes[i].error);
  }
  printf("%d writes failed for 4 causes, %d reports failed, %d written\n", atomic_load(&failures),
         (int)health().reports_failed, (int)health().reports_written);
  CHECK_OK(bc_uninstall());
}

/* A file system of this size as the directory for reports. */
static void mount_small(const char *name, const char *size) {
  snprintf(directory, sizeof directory, "%s", fresh_directory(name));
  CHECK(unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
            mount("none", directory, "tmpfs", 0, size) == 0,
        "no file system of %s can be had: %s", size, strerror(errno));
}

static char filler[400];

static void fill_up(void) {
  static const char bytes[4096];
  snprintf(filler, sizeof filler, "%s/filler", directory);
  int fd = open(filler, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  CHECK(fd >= 0, "%s", strerror(errno));
  while (write(fd, bytes, sizeof bytes) > 0) {
  }
  CHECK(errno == ENOSPC && close(fd) == 0, "%s", strerror(errno));
}

static void make_room(void) {
  CHECK(unlink(filler) == 0, "%s", strerror(errno));
}

/* A file system of 64 KiB that somebody fills up. */
static void full(void) {
  mount_small("full", "size=64k");
  install();
  bc_loop *loop = watched("full");
  CHECK(stores(loop, 1), "nothing is stored while there is room");
  fill_up();
  for (uint64_t tag = 2; tag < 7; tag++) {
    CHECK(!stores(loop, tag), "stored without room");
    CHECK(unfinished() == 0, "%d unfinished files", unfinished());
  }
  CHECK(health().reports_failed == 10, "%d failed", (int)health().reports_failed);
  CHECK(strstr(last_warning, "no room") != NULL, "%s", last_warning);
  CHECK(is_stored(1), "the older report is gone");
  make_room();
  CHECK(stores(loop, 7), "no report although there is room again");
  printf("5 blocks without room: %d reports failed, %d written in all\n", (int)health().reports_failed,
         (int)health().reports_written);
  CHECK_OK(bc_uninstall());
}

/* What is executed for `killed_when_full`: dies in a block that its listener has been told of. */
static void victim(void) {
  const char *place = getenv("DISKS_DIRECTORY");
  if (place == NULL) {
    return;
  }
  bc_config config = config_of(30);
  config.report_dir = place;
  install_and_start(&config);
  bc_dispatch_begin(watched("killed"), "killed", 1);
  WAIT_FOR(blocks_tagged(BC_BLOCK_ONGOING, 1) == 1, 60000);
  raise(SIGKILL);
}

static void expect_killed(const char *when, int reports, int recorders) {
  flush();
  CHECK(blocks_in(BC_BLOCK_KILLED) == 1, "told %u times %s", blocks_in(BC_BLOCK_KILLED), when);
  CHECK(files_in(directory, ".json") == reports && unfinished() == 0, "%d reports %s", files_in(directory, ".json"), when);
  CHECK(files_in(directory, ".bcr") == recorders, "%d recorders %s", files_in(directory, ".bcr"), when);
}

static char text[1024 * 1024];

/* A kill leaves a block on a disk that is full when it is found: told once, and its report comes when there is room. */
static void killed_when_full(void) {
  mount_small("killed_when_full", "size=256k");
  setenv("DISKS_DIRECTORY", directory, 1);
  int status;
  CHECK(waitpid(start_case("victim"), &status, 0) > 0 && WIFSIGNALED(status), "status %x", status);
  DIR *entries = opendir(directory);
  for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    if (strncmp(entry->d_name, "looper-", 7) == 0) {
      CHECK(unlinkat(dirfd(entries), entry->d_name, 0) == 0, "%s", strerror(errno));
    }
  }
  closedir(entries);
  fill_up();
  install();
  expect_killed("without room", 0, 1);
  CHECK(blocks_get(BC_BLOCK_KILLED, 1)->path[0] == 0, "%s", blocks_get(BC_BLOCK_KILLED, 1)->path);
  CHECK(health().reports_failed == 2 && strstr(last_warning, "no room") != NULL, "%d failed: %s",
        (int)health().reports_failed, last_warning);
  CHECK_OK(bc_stop());
  CHECK_OK(bc_start());
  expect_killed("by another start", 0, 1);
  CHECK_OK(bc_uninstall());
  install();
  expect_killed("by another installation", 0, 1);
  CHECK(health().blocks_seen == 0, "counted again");
  make_room();
  CHECK_OK(bc_stop());
  CHECK_OK(bc_start());
  expect_killed("when there is room", 1, 0);
  entries = opendir(directory);
  for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
    if (strstr(entry->d_name, ".json") != NULL) {
      read_whole(path, text, sizeof text);
      CHECK(json_valid(text) && json_is(text, "state", "\"killed\""), "%.300s", text);
    }
  }
  closedir(entries);
  CHECK_OK(bc_uninstall());
}

/* Files may hold 4 KiB only: what is larger fails, and no signal ends the program. */
static void file_limit(void) {
  snprintf(directory, sizeof directory, "%s", fresh_directory("file_limit"));
  install();
  bc_loop *loop = watched("limit");
  CHECK(stores(loop, 1), "nothing is stored");
  struct rlimit before, limit;
  CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0, "%s", strerror(errno));
  limit = before;
  limit.rlim_cur = 4096;
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "%s", strerror(errno));
  blocking_dispatch(loop, "limit", 2, 300);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 2) == 1, "the block was not told");
  CHECK(health().reports_failed > 0 && strstr(last_warning, "larger than a file may be") != NULL, "%d failed: %s",
        (int)health().reports_failed, last_warning);
  CHECK(unfinished() == 0, "%d unfinished files", unfinished());
  CHECK(files_in(directory, ".bcr") == 0, "a flight recorder without room for a block is left");
  CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0, "%s", strerror(errno));
  CHECK(stores(loop, 3), "no report although files may be larger again");
  printf("%d reports failed with files of 4 KiB\n", (int)health().reports_failed);
  CHECK_OK(bc_uninstall());
}

static atomic_int is_done;
static unsigned removals;

static void *keep_removing(void *argument) {
  while (!atomic_load(&is_done)) {
    DIR *open = opendir(directory);
    for (struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;) {
      unlinkat(dirfd(open), entry->d_name, 0);
    }
    if (open != NULL) {
      closedir(open);
    }
    removals += rmdir(directory) == 0;
  }
  return argument;
}

/* A directory that is deleted again and again. */
static void deleted(void) {
  snprintf(directory, sizeof directory, "%s", fresh_directory("deleted"));
  install();
  bc_loop *loop = watched("deleted");
  unsigned long other = start_thread(keep_removing, NULL);
  for (uint64_t tag = 1; tag <= 40; tag++) {
    stores(loop, tag);
  }
  atomic_store(&is_done, 1);
  join_thread(other);
  CHECK(removals > 0, "nothing was deleted");
  CHECK(blocks_in(BC_BLOCK_ENDED) == 40, "%u of 40 blocks were told", blocks_in(BC_BLOCK_ENDED));
  CHECK(stores(loop, 41), "no report although nobody deletes any more");
  struct stat status;
  CHECK(stat(directory, &status) == 0 && (status.st_mode & 0777) == 0700, "mode %o", status.st_mode & 0777);
  printf("40 blocks while the directory was deleted %u times: %d reports failed, %d written\n", removals,
         (int)health().reports_failed, (int)health().reports_written);
  CHECK_OK(bc_uninstall());
}

static unsigned whole_files;

/* Every file with a report's name is whole, at whatever moment it is opened. */
static void *keep_reading(void *argument) {
  while (!atomic_load(&is_done)) {
    DIR *open = opendir(directory);
    CHECK(open != NULL, "%s", strerror(errno));
    for (struct dirent *entry; (entry = readdir(open)) != NULL;) {
      char path[700];
      snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
      if (strncmp(entry->d_name, "looper-", 7) == 0 && read_whole(path, text, sizeof text) > 0) {
        bool is_json = strstr(path, ".json") != NULL;
        size_t length = strlen(text);
        CHECK(is_json ? json_valid(text) : strncmp(text, "\r\n***", 5) == 0 && strcmp(text + length - 2, "\r\n") == 0,
              "%s is not whole", path);
        whole_files++;
      }
    }
    closedir(open);
  }
  return argument;
}

#define LOOPS 4
#define BLOCKS 50
static uint64_t took_ns[LOOPS];

static void *block_often(void *argument) {
  uintptr_t number = (uintptr_t)argument;
  bc_loop *loop = watched("often");
  uint64_t begin = now_ns();
  for (unsigned i = 0; i < BLOCKS; i++) {
    bc_dispatch_begin(loop, "often", number * 1000 + i);
    sleep_ms(12);
    bc_dispatch_end(loop);
  }
  took_ns[number] = now_ns() - begin;
  return NULL;
}

/* 200 blocks a second have files of their own. */
static void two_hundred(void) {
  snprintf(directory, sizeof directory, "%s", fresh_directory("two_hundred"));
  bc_config config = config_of(5);
  config.report_dir = directory;
  config.report_ongoing = BC_OFF;
  install_and_start(&config);
  unsigned long reader = start_thread(keep_reading, NULL), loops[LOOPS];
  for (uintptr_t i = 0; i < LOOPS; i++) {
    loops[i] = start_thread(block_often, (void *)i);
  }
  uint64_t longest = 0;
  for (unsigned i = 0; i < LOOPS; i++) {
    join_thread(loops[i]);
    longest = took_ns[i] > longest ? took_ns[i] : longest;
  }
  flush();
  atomic_store(&is_done, 1);
  join_thread(reader);
  bc_health now = health();
  printf("%u blocks in %u ms: %d .log, %d .json, %u dropped, %u whole files read meanwhile\n", (unsigned)now.blocks_seen,
         (unsigned)(longest / 1000000), files_in(directory, ".log"), files_in(directory, ".json"),
         (unsigned)now.blocks_dropped, whole_files);
  CHECK(now.blocks_seen == LOOPS * BLOCKS && now.reports_failed == 0, "%d seen, %d failed", (int)now.blocks_seen,
        (int)now.reports_failed);
  int logs = files_in(directory, ".log"), objects = files_in(directory, ".json");
  CHECK(logs == objects && (uint64_t)(logs + objects) == now.reports_written, "%d and %d files for %d reports written: a "
        "name was used twice", logs, objects, (int)now.reports_written);
  /* The writer of a starved machine finds more than it has room for, and says so. */
  CHECK(logs + (int)now.blocks_dropped >= LOOPS * BLOCKS, "%d stored, %d dropped", logs, (int)now.blocks_dropped);
  CHECK(whole_files > 0, "nobody read");
  CHECK_OK(bc_uninstall());
}

/* Whatever the program calls things: strict JSON, and a log of the same lines. */
static void odd_names(void) {
  static char longest[10 * 1024 + 1], odd[256];
  memset(longest, 'n', sizeof longest - 1);
  for (unsigned i = 1; i < 256; i++) {
    odd[i - 1] = (char)i;
  }
  const char *const names[] = {longest, odd, "\"", "\\", "\\\"\\", "\xff\xfe\xc0\xaf", "a\r\n\r\nstack = b", "\xe2\x80\xa8 = ", "\x1b[31m", ""};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    snprintf(directory, sizeof directory, "%s", fresh_directory("odd_names"));
    bc_config config = config_of(30);
    config.report_dir = directory;
    config.qualifier = config.version_name = config.version_code = config.user_id = config.network_type = names[i];
    install_and_start(&config);
    bc_loop *loop = watched(names[i]);
    bc_dispatch_begin(loop, names[i], i);
    spin_ms(60);
    bc_dispatch_end(loop);
    flush();
    const char *log = blocks_get(BC_BLOCK_ENDED, i)->path;
    char path[600];
    snprintf(path, sizeof path, "%.*s.json", (int)(strlen(log) - 4), log);
    CHECK(read_whole(path, text, sizeof text) > 0 && json_valid(text), "not JSON with name %u", (unsigned)i);
    CHECK(read_whole(log, text, sizeof text) > 0, "no log with name %u", (unsigned)i);
    const char *at = strstr(text, "\r\nstack = ");
    for (const char *c = text; at != NULL && c < at; c++) {
      CHECK((unsigned char)*c >= 0x20 || *c == '\r' || *c == '\n', "control character %d with name %u", *c, (unsigned)i);
    }
    CHECK_OK(bc_uninstall());
  }
  printf("%u odd names\n", (unsigned)(sizeof names / sizeof names[0]));
}

CASES({"failing", failing}, {"full", full}, {"victim", victim}, {"killed_when_full", killed_when_full},
      {"file_limit", file_limit}, {"deleted", deleted},
      {"two_hundred", two_hundred}, {"odd_names", odd_names})
