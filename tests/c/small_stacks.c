/* Calls from a thread with little stack, as some C libraries and engines give theirs. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

/* As much as the documentation says that the hungriest call takes, with all that the C library takes of it. */
#define STACK (64 * 1024)

static char directory[300], archive[300];

static bool visits(const char *path, void *unused) {
  (void)path;
  (void)unused;
  return true;
}

static void *whole_life(void *unused) {
  bc_config config = config_of(20);
  config.report_dir = "/proc/no/such/directory";
  CHECK_STATUS(bc_install(&config), BC_ERROR_IO);
  config.report_dir = directory;
  install_and_start(&config);
  blocking_dispatch(watched("small"), "work", 1, 50);
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1 && files_in(directory, ".json") == 1, "%u blocks", blocks_in(BC_BLOCK_ENDED));
  int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  CHECK_OK(bc_threads_dump(fd));
  close(fd);
  CHECK_OK(bc_reports_each(visits, NULL));
  CHECK_OK(bc_reports_zip(archive));
  CHECK_OK(bc_reports_delete_all());
  CHECK_OK(bc_stop());
  CHECK_OK(bc_uninstall());
  return unused;
}

static void life(void) {
  const char *fresh = fresh_directory("small");
  snprintf(directory, sizeof directory, "%s/reports", fresh);
  snprintf(archive, sizeof archive, "%s/archive.zip", fresh);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK);
  pthread_t thread;
  CHECK(pthread_create(&thread, &attributes, whole_life, NULL) == 0, "no thread");
  pthread_join(thread, NULL);
}

CASES({"life", life})
