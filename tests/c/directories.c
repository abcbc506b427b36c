/* The report directory may be missing, of another kind, or closed to us. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

static void refused(const char *directory) {
  bc_config config = config_of(50);
  config.report_dir = directory;
  unsigned threads_before = threads(), descriptors_before = descriptors();
  CHECK_STATUS(bc_install(&config), BC_ERROR_IO);
  CHECK_STATUS(bc_start(), BC_ERROR_INVALID_STATE);
  CHECK(threads() == threads_before && descriptors() == descriptors_before, "something is left: %u threads, %u fds",
        threads(), descriptors());
}

static void missing(void) {
  const char *base = fresh_directory("missing");
  char path[300];
  snprintf(path, sizeof path, "%s/made", base);
  bc_config config = config_of(50);
  config.report_dir = path;
  install_and_start(&config);
  struct stat status;
  CHECK(stat(path, &status) == 0 && S_ISDIR(status.st_mode), "not made: %s", strerror(errno));
  CHECK((status.st_mode & 0777) == 0700, "mode %o", status.st_mode & 0777);
  blocking_dispatch(watched("here"), "late", 1, 80);
  flush();
  CHECK(files_in(path, ".log") == 1, "%d reports", files_in(path, ".log"));
  CHECK_OK(bc_uninstall());
}

static void file(void) {
  const char *base = fresh_directory("file");
  char path[300];
  snprintf(path, sizeof path, "%s/file", base);
  FILE *file = fopen(path, "w");
  CHECK(file != NULL && fputs("mine", file) >= 0 && fclose(file) == 0, "%s: %s", path, strerror(errno));
  refused(path);
  char text[16];
  CHECK(read_whole(path, text, sizeof text) == 4 && strcmp(text, "mine") == 0, "the file now holds %s", text);
  char below[320];
  snprintf(below, sizeof below, "%s/below", path);
  refused(below);
  refused("");
}

static void read_only_as_user(const char *directory) {
  refused(directory);
  char below[300];
  snprintf(below, sizeof below, "%s/below", directory);
  refused(below);
  _exit(0);
}

/* Root may write everywhere, so another user tries. */
static void read_only(void) {
  const char *directory = fresh_directory("read_only");
  CHECK(chmod(directory, 0555) == 0, "%s", strerror(errno));
  pid_t child = fork();
  CHECK(child >= 0, "%s", strerror(errno));
  if (child == 0) {
    if (getuid() == 0) {
      CHECK(setgid(65534) == 0 && setuid(65534) == 0, "%s", strerror(errno));
    }
    read_only_as_user(directory);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
}

/* A directory that is lost under way is tried again with each report, and nobody waits for it. */
static void lost(void) {
  const char *base = fresh_directory("lost");
  char path[300], away[300];
  snprintf(path, sizeof path, "%s/reports", base);
  snprintf(away, sizeof away, "%s/away", base);
  bc_config config = config_of(50);
  config.report_dir = path;
  install_and_start(&config);
  bc_loop *loop = watched("losing");
  CHECK(rename(path, away) == 0, "%s", strerror(errno));
  blocking_dispatch(loop, "late", 1, 80);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 1) == 1, "%u blocks", blocks_tagged(BC_BLOCK_ENDED, 1));
  bc_health then = health();
  int found = files_in(path, ".log") > 0 ? files_in(path, ".log") : files_in(away, ".log");
  CHECK(found == 1 || then.reports_failed > 0, "%d reports, %d failures", found, (int)then.reports_failed);
  CHECK_OK(bc_uninstall());
}

CASES({"missing", missing}, {"file", file}, {"read_only", read_only}, {"lost", lost})
