/* bc_reports_zip: other programs can read it, nobody sees half of one, and nothing but it is changed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

static char directory[300];

static void install(const char *name) {
  snprintf(directory, sizeof directory, "%s", fresh_directory(name));
  bc_config config = config_of(20);
  config.sample_interval_ms = 5;
  config.report_dir = directory;
  install_and_start(&config);
}

static void store_blocks(unsigned count) {
  bc_loop *loop = watched("zipped");
  for (unsigned i = 0; i < count; i++) {
    blocking_dispatch(loop, "late", i, 40);
  }
  flush();
}

/* What a shell command prints to its standard output. */
static const char *printed(const char *command) {
  static char text[4096];
  FILE *pipe = popen(command, "r");
  CHECK(pipe != NULL, "%s: %s", command, strerror(errno));
  size_t length = fread(text, 1, sizeof text - 1, pipe);
  text[length] = 0;
  int status = pclose(pipe);
  CHECK(status == 0, "%s: status %x: %s", command, (unsigned)status, text);
  return text;
}

static void check_readable(const char *zip) {
  char command[600];
  snprintf(command, sizeof command, "unzip -tqq %s 2>&1", zip);
  CHECK(printed(command)[0] == 0, "%s", printed(command));
  snprintf(command, sizeof command, "python3 -m zipfile -t %s 2>&1", zip);
  CHECK(strcmp(printed(command), "Done testing\n") == 0, "%s", printed(command));
}

static unsigned entries(const char *zip) {
  char command[600];
  snprintf(command, sizeof command, "unzip -Z1 %s | wc -l", zip);
  return (unsigned)atoi(printed(command));
}

static bool is_same(const char *path, void *zip) {
  char command[1600];
  const char *name = strrchr(path, '/') + 1;
  snprintf(command, sizeof command, "unzip -p %s %s | cmp - %s", (const char *)zip, name, path);
  printed(command);
  return true;
}

/* Every report is in it, byte for byte, with its own time. */
static void whole(void) {
  install("whole");
  store_blocks(5);
  char foreign[400];
  snprintf(foreign, sizeof foreign, "%s/notes.log", directory);
  fclose(fopen(foreign, "w"));
  const char *zip = "whole.zip";
  umask(0);
  CHECK_OK(bc_reports_zip(zip));
  check_readable(zip);
  CHECK(entries(zip) == 10, "%u entries", entries(zip));
  CHECK_OK(bc_reports_each(is_same, (void *)(uintptr_t)zip));
  struct stat status;
  CHECK(stat(zip, &status) == 0 && (status.st_mode & 07777) == 0600, "mode %o", status.st_mode & 07777);
  CHECK(files_but(directory, ".bcr") == 11, "%d files", files_but(directory, ".bcr"));
  int year, month, day, hour, minute, told[5];
  const char *name = strrchr(blocks_get(BC_BLOCK_ENDED, 0)->path, '/') + 1;
  CHECK(sscanf(name, "looper-%d-%d-%d_%d-%d", &year, &month, &day, &hour, &minute) == 5, "%s", name);
  char command[600];
  snprintf(command, sizeof command, "unzip -Z -T %s %s | tr -s ' ' | cut -d' ' -f7", zip, name);
  CHECK(sscanf(printed(command), "%4d%2d%2d.%2d%2d", told, told + 1, told + 2, told + 3, told + 4) == 5, "%s",
        printed(command));
  CHECK(told[0] == year && told[1] == month && told[2] == day && told[3] == hour && told[4] == minute, "%s is from %s",
        name, printed(command));
  printf("%lld bytes, %u entries: unzip and python agree\n", (long long)status.st_size, entries(zip));
  /* In its place, and nothing in it. */
  CHECK_OK(bc_reports_delete_all());
  CHECK_OK(bc_reports_zip(zip));
  CHECK(stat(zip, &status) == 0 && status.st_size == 22, "%lld bytes without a report", (long long)status.st_size);
  CHECK(strcmp(printed("python3 -c \"import zipfile; print(len(zipfile.ZipFile('whole.zip').namelist()))\""), "0\n") == 0,
        "python finds entries");
  CHECK(unlink(zip) == 0, "%s", strerror(errno));
  CHECK_OK(bc_uninstall());
}

/* Where it may and may not go. */
static void places(void) {
  install("places");
  store_blocks(1);
  FILE *precious = fopen("precious", "w");
  CHECK(precious != NULL && fputs("mine", precious) >= 0 && fclose(precious) == 0, "%s", strerror(errno));
  unlink("planted.zip");
  CHECK(symlink("precious", "planted.zip") == 0, "%s", strerror(errno));
  CHECK_OK(bc_reports_zip("planted.zip"));
  char text[16];
  CHECK(read_whole("precious", text, sizeof text) == 4 && strcmp(text, "mine") == 0, "a link was followed: %s", text);
  check_readable("planted.zip");
  CHECK(unlink("planted.zip") == 0 && unlink("precious") == 0, "%s", strerror(errno));
  /* A link on the way is the program's own way to name things. */
  char below[400], linked[400];
  snprintf(below, sizeof below, "%s/below", directory);
  snprintf(linked, sizeof linked, "%s/linked", directory);
  CHECK(mkdir(below, 0700) == 0 && symlink("below", linked) == 0, "%s", strerror(errno));
  char zip[450];
  snprintf(zip, sizeof zip, "%s/x.zip", linked);
  CHECK_OK(bc_reports_zip(zip));
  check_readable(zip);
  CHECK(files_in(below, "") == 1, "%d files", files_in(below, ""));
  CHECK(unlink(zip) == 0, "%s", strerror(errno));
  const char *const bad[] = {"", "/", ".", "..", "nowhere/x.zip", "/proc/x.zip", "reports/"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    CHECK_STATUS(bc_reports_zip(bad[i]), BC_ERROR_IO);
  }
  CHECK_STATUS(bc_reports_zip(below), BC_ERROR_IO);
  CHECK_STATUS(bc_reports_zip(NULL), BC_ERROR_INVALID_ARGUMENT);
  CHECK(files_in(directory, ".tmp") == 0, "something unfinished is left");
  CHECK(rmdir(below) == 0 && unlink(linked) == 0, "%s", strerror(errno));
  CHECK_OK(bc_uninstall());
}

static atomic_int is_done;

static void *keep_blocking(void *argument) {
  bc_loop *loop = watched("beside");
  for (unsigned i = 0; !atomic_load(&is_done); i++) {
    blocking_dispatch(loop, "beside", i, 22);
  }
  return argument;
}

/* While reports come and go. */
static void meanwhile(void) {
  snprintf(directory, sizeof directory, "%s", fresh_directory("meanwhile"));
  bc_config config = config_of(20);
  config.sample_interval_ms = 2;
  config.max_reports = 20;
  config.report_dir = directory;
  install_and_start(&config);
  unsigned long other = start_thread(keep_blocking, NULL);
  WAIT_FOR(blocks_in(BC_BLOCK_ENDED) > 20, 30000);
  unsigned first = blocks_in(BC_BLOCK_ENDED), least = 1000, most = 0;
  for (unsigned i = 0; i < 15; i++) {
    CHECK_OK(bc_reports_zip("meanwhile.zip"));
    check_readable("meanwhile.zip");
    unsigned count = entries("meanwhile.zip");
    least = count < least ? count : least;
    most = count > most ? count : most;
  }
  atomic_store(&is_done, 1);
  join_thread(other);
  printf("%u blocks during 15 archives of %u to %u entries\n", blocks_in(BC_BLOCK_ENDED) - first, least, most);
  CHECK(blocks_in(BC_BLOCK_ENDED) > first, "no block meanwhile");
  CHECK(unlink("meanwhile.zip") == 0, "%s", strerror(errno));
  CHECK_OK(bc_uninstall());
}

/* Larger than a file may be: a status, and not the signal that ends a program; a signal that waits stays. */
static void file_limit(void) {
  install("file_limit");
  store_blocks(3);
  struct rlimit before, limit;
  CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0, "%s", strerror(errno));
  limit = before;
  limit.rlim_cur = 4096;
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "%s", strerror(errno));
  CHECK_STATUS(bc_reports_zip("limited.zip"), BC_ERROR_IO);
  sigset_t pending;
  CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 0, "SIGXFSZ waits");
  CHECK(access("limited.zip", F_OK) != 0, "half an archive");
  CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0, "%s", strerror(errno));
  CHECK_OK(bc_reports_zip("limited.zip"));
  check_readable("limited.zip");
  CHECK(unlink("limited.zip") == 0, "%s", strerror(errno));
  CHECK_OK(bc_uninstall());
}

/* A full disk: a status, what was there before, and nothing half. */
static void full_disk(void) {
  char small[256];
  snprintf(small, sizeof small, "%s", fresh_directory("small"));
  CHECK(unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
            mount("none", small, "tmpfs", 0, "size=64k") == 0,
        "no file system of 64 KiB can be had: %s", strerror(errno));
  char zip[300];
  snprintf(zip, sizeof zip, "%s/x.zip", small);
  install("full_disk");
  store_blocks(1);
  CHECK_OK(bc_reports_zip(zip));
  check_readable(zip);
  struct stat earlier, status;
  CHECK(stat(zip, &earlier) == 0, "%s", strerror(errno));
  store_blocks(20);
  CHECK_STATUS(bc_reports_zip(zip), BC_ERROR_IO);
  CHECK(stat(zip, &status) == 0 && status.st_ino == earlier.st_ino, "what was there is gone");
  CHECK(files_in(small, "") == 1, "%d files", files_in(small, ""));
  check_readable(zip);
  CHECK_OK(bc_uninstall());
}

CASES({"whole", whole}, {"places", places}, {"meanwhile", meanwhile}, {"file_limit", file_limit},
      {"full_disk", full_disk})
