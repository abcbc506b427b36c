/* A program that closes whatever is open, and gets the numbers again for files of its own: these are left alone, and
 * reports go on. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

#define FILES 64

static int fds[FILES];
static char paths[FILES][400];

static void take_all(const char *directory) {
  for (int fd = 3; fd < FILES + 3; fd++) {
    close(fd);
  }
  for (int i = 0; i < FILES; i++) {
    snprintf(paths[i], sizeof paths[i], "%s/%d", directory, i);
    fds[i] = open(paths[i], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fds[i] >= 0 && write(fds[i], "mine", 4) == 4, "%s: %s", paths[i], strerror(errno));
  }
}

static void whatever_is_open(void) {
  char fresh[300], directory[320];
  snprintf(fresh, sizeof fresh, "%s", fresh_directory("closed"));
  snprintf(directory, sizeof directory, "%s/reports", fresh);
  bc_config config = config_of(20);
  config.report_dir = directory;
  install_and_start(&config);
  bc_loop *loop = watched("closes");
  bc_dispatch_begin(loop, "first", 1);
  /* Its recorder is open, and so are the files of its thread. */
  WAIT_FOR(blocks_tagged(BC_BLOCK_ONGOING, 1) == 1, 20000);
  take_all(fresh);
  sleep_ms(50);
  bc_dispatch_end(loop);
  flush();
  blocking_dispatch(loop, "second", 2, 50);
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 2, "%u blocks", blocks_in(BC_BLOCK_ENDED));
  CHECK(access(blocks_get(BC_BLOCK_ENDED, 2)->path, R_OK) == 0, "no report of the second block");
  CHECK_OK(bc_uninstall());
  for (int i = 0; i < FILES; i++) {
    struct stat by_number, by_path;
    CHECK(fstat(fds[i], &by_number) == 0, "the descriptor of %s was closed", paths[i]);
    CHECK(stat(paths[i], &by_path) == 0 && by_path.st_ino == by_number.st_ino, "%s is another file", paths[i]);
    CHECK(by_path.st_size == 4, "%s was written to: %ld bytes", paths[i], (long)by_path.st_size);
  }
}

CASES({"whatever_is_open", whatever_is_open})
