/* Stored reports listed and removed by the program: which files, from where, and what must stay. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

static char directory[300];

static void begin(const char *name, uint32_t threshold_ms) {
  CHECK(getcwd(directory, 150) != NULL, "%s", strerror(errno));
  size_t length = strlen(directory);
  snprintf(directory + length, sizeof directory - length, "/%s", fresh_directory(name));
  bc_config config = config_of(threshold_ms);
  config.report_dir = directory;
  config.report_max_age_s = UINT32_MAX; /* what is planted is old */
  install_and_start(&config);
}

static void plant(const char *name) {
  char path[500];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  int fd = open(path, O_CREAT | O_WRONLY, 0600);
  CHECK(fd >= 0 && write(fd, "planted", 7) == 7 && close(fd) == 0, "%s: %s", path, strerror(errno));
}

static bool is_there(const char *name) {
  char path[500];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return access(path, F_OK) == 0;
}

static char visited[64][512];
static unsigned visits, most_visits;

static bool visit(const char *path, void *user_data) {
  CHECK(user_data == visited, "another user_data");
  CHECK(visits < 64, "%u visits", visits);
  snprintf(visited[visits++], sizeof visited[0], "%s", path);
  return visits < most_visits;
}

static unsigned visit_all(void) {
  visits = 0;
  most_visits = 1000;
  CHECK_OK(bc_reports_each(visit, visited));
  return visits;
}

static bool was_visited(const char *path) {
  for (unsigned i = 0; i < visits; i++) {
    if (strcmp(visited[i], path) == 0) {
      return true;
    }
  }
  return false;
}

static const char *const foreign[] = {"notes.log", "looper-2020-01-01.log", ".looper-2020-01-01_00-00-00.000-1-1.log.tmp",
                                      "looper-2020-01-01_00-00-00.000-1-1.log.bak", "looper-2020-01-01_00-00-00.000-01-1.log",
                                      "looper-2020-13-01_00-00-00.000-1-1.log", "xlooper-2020-01-01_00-00-00.000-1-1.log"};
#define FOREIGN (sizeof foreign / sizeof foreign[0])

/* A process that lives, and one that does not. */
static void plant_neighbours(char *living, char *dead, size_t size) {
  snprintf(living, size, "looper-2020-01-01_00-00-00.000-%d-1.log", (int)getppid());
  snprintf(dead, size, "looper-2020-01-01_00-00-00.000-999999999-1.log");
  plant(living);
  plant(dead);
  for (size_t i = 0; i < FOREIGN; i++) {
    plant(foreign[i]);
  }
  char link[500];
  snprintf(link, sizeof link, "%s/looper-2020-01-01_00-00-00.000-999999999-2.log", directory);
  CHECK(symlink("notes.log", link) == 0, "%s", strerror(errno));
}

static void each(void) {
  begin("each", 30);
  CHECK(visit_all() == 0, "%u reports in an empty directory", visits);
  bc_loop *loop = watched("each");
  for (unsigned i = 0; i < 3; i++) {
    blocking_dispatch(loop, "late", i, 60);
  }
  flush();
  char living[100], dead[100], path[512];
  plant_neighbours(living, dead, sizeof living);
  CHECK(visit_all() == 8, "%u visits", visits);
  for (unsigned i = 0; i < 3; i++) {
    const char *log = blocks_get(BC_BLOCK_ENDED, i)->path;
    snprintf(path, sizeof path, "%.*s.json", (int)(strlen(log) - 4), log);
    CHECK(was_visited(log) && was_visited(path), "%s was not visited", log);
  }
  snprintf(path, sizeof path, "%s/%s", directory, living);
  CHECK(was_visited(path), "%s was not visited", path);
  for (unsigned stop = 1; stop <= 8; stop++) {
    visits = 0;
    most_visits = stop;
    CHECK_OK(bc_reports_each(visit, visited));
    CHECK(visits == stop, "%u visits, told to stop after %u", visits, stop);
  }
  CHECK_STATUS(bc_reports_each(NULL, NULL), BC_ERROR_INVALID_ARGUMENT);
  CHECK_OK(bc_stop());
  CHECK(visit_all() == 8, "%u visits while stopped", visits);
  CHECK_OK(bc_uninstall());
  CHECK_STATUS(bc_reports_each(visit, visited), BC_ERROR_INVALID_STATE);
}

static bool remove_it(const char *path, void *user_data) {
  (void)user_data;
  visits++;
  return unlink(path) == 0;
}

static bool uninstall_inside(const char *path, void *user_data) {
  (void)path, (void)user_data;
  CHECK_OK(bc_uninstall());
  visits++;
  return true;
}

/* The visitor may remove what it is given, and even uninstall: nobody waits for it. */
static void visitor_acts(void) {
  begin("visitor_acts", 30);
  for (unsigned i = 0; i < 300; i++) {
    char name[100];
    snprintf(name, sizeof name, "looper-2020-01-01_00-00-00.%03u-999999999-%u.log", i, i);
    plant(name);
  }
  visits = 0;
  CHECK_OK(bc_reports_each(remove_it, NULL));
  CHECK(visits == 300 && files_but(directory, ".bcr") == 0, "%u visits, %d files left", visits, files_but(directory, ".bcr"));
  plant("looper-2020-01-01_00-00-00.000-999999999-1.log");
  visits = 0;
  CHECK_OK(bc_reports_each(uninstall_inside, NULL));
  CHECK(visits == 1, "%u visits", visits);
}

/* Reports of open blocks, of other processes that live, and files of others stay. */
static void delete_all(void) {
  begin("delete_all", 30);
  bc_loop *loop = watched("deleted");
  for (unsigned i = 0; i < 3; i++) {
    blocking_dispatch(loop, "late", i, 60);
  }
  flush();
  char living[100], dead[100];
  plant_neighbours(living, dead, sizeof living);
  bc_dispatch_begin(loop, "open", 9);
  WAIT_FOR(blocks_tagged(BC_BLOCK_ONGOING, 9) == 1, 20000);
  int before = files_but(directory, ".bcr");
  CHECK_OK(bc_reports_delete_all());
  char open_log[512];
  snprintf(open_log, sizeof open_log, "%s", blocks_get(BC_BLOCK_ONGOING, 9)->path);
  CHECK(access(open_log, F_OK) == 0, "the report of an open block is gone");
  CHECK(is_there(living) && !is_there(dead), "living %d, dead %d", is_there(living), is_there(dead));
  for (size_t i = 0; i < FOREIGN; i++) {
    CHECK(is_there(foreign[i]), "%s is gone", foreign[i]);
  }
  /* Beside those: the open block's two, the living one's, and the link. */
  CHECK(files_but(directory, ".bcr") == (int)FOREIGN + 4, "%d files, %d before", files_but(directory, ".bcr"), before);
  bc_dispatch_end(loop);
  flush();
  CHECK(access(open_log, F_OK) == 0, "the report of an open block is gone");
  CHECK_OK(bc_reports_delete_all());
  CHECK(files_but(directory, ".bcr") == (int)FOREIGN + 2, "%d files", files_but(directory, ".bcr"));
  /* And goes on. */
  blocking_dispatch(loop, "late", 10, 60);
  flush();
  CHECK(access(blocks_get(BC_BLOCK_ENDED, 10)->path, F_OK) == 0, "no report afterwards");
  CHECK_OK(bc_uninstall());
}

/* What an open block shares is its report. */
static void delete_shared(void) {
  CHECK(getcwd(directory, 150) != NULL, "%s", strerror(errno));
  size_t length = strlen(directory);
  snprintf(directory + length, sizeof directory - length, "/%s", fresh_directory("delete_shared"));
  bc_config config = config_of(60);
  config.report_dir = directory;
  config.merge_window_s = 0;
  config.sample_interval_ms = 10;
  install_and_start(&config);
  bc_loop *loop = watched("shared");
  bc_dispatch_begin(loop, "first", 1);
  sleep_ms(200);
  bc_dispatch_end(loop);
  flush();
  const char *first = blocks_get(BC_BLOCK_ENDED, 1)->path;
  bc_dispatch_begin(loop, "again", 2);
  for (unsigned i = 0; i < 20; i++) {
    sleep_ms(10);
  }
  WAIT_FOR(blocks_tagged(BC_BLOCK_ONGOING, 2) == 1, 20000);
  CHECK_OK(bc_reports_delete_all());
  const char *shown = blocks_get(BC_BLOCK_ONGOING, 2)->path;
  printf("%s its report\n", strcmp(first, shown) == 0 ? "shares" : "has");
  CHECK(access(shown, F_OK) == 0, "the report of an open block is gone: %s", shown);
  bc_dispatch_end(loop);
  flush();
  CHECK_OK(bc_reports_delete_all());
  CHECK(files_but(directory, ".bcr") == 0, "%d files", files_but(directory, ".bcr"));
  CHECK_OK(bc_uninstall());
}

static bc_status from_each, from_delete, from_zip;
static atomic_int calls;

static void from_inside(const bc_block *block, void *user_data) {
  (void)user_data;
  if (block->state == BC_BLOCK_ENDED) {
    visits = 0;
    most_visits = 1000;
    from_each = bc_reports_each(visit, visited);
    from_zip = bc_reports_zip("from_inside.zip");
    from_delete = bc_reports_delete_all();
    atomic_fetch_add(&calls, 1);
  }
}

static bool filter(const bc_block *block, void *user_data) {
  from_inside(block, user_data);
  atomic_fetch_add(&calls, 1);
  CHECK_OK(bc_reports_delete_all());
  return true;
}

/* From a listener and from the filter, which runs on the thread that writes reports. */
static void in_callbacks(void) {
  begin("in_callbacks", 30);
  CHECK_OK(bc_set_listener(from_inside, NULL));
  bc_loop *loop = watched("inside");
  blocking_dispatch(loop, "late", 1, 60);
  flush();
  WAIT_FOR(atomic_load(&calls) == 1, 20000);
  CHECK_STATUS(from_each, BC_OK);
  CHECK_STATUS(from_delete, BC_OK);
  CHECK_STATUS(from_zip, BC_OK);
  CHECK(visits == 2, "%u visits", visits);
  CHECK(unlink("from_inside.zip") == 0, "no archive");
  CHECK(files_but(directory, ".bcr") == 0, "%d files", files_but(directory, ".bcr"));
  CHECK_OK(bc_set_listener(NULL, NULL));
  CHECK_OK(bc_set_filter(filter, NULL));
  uint64_t from = now_ns();
  blocking_dispatch(loop, "late", 2, 60);
  flush();
  CHECK(atomic_load(&calls) >= 2, "the filter was not asked");
  printf("%u ms with the filter removing reports\n", (unsigned)((now_ns() - from) / 1000000));
  CHECK(files_but(directory, ".bcr") == 2, "%d files", files_but(directory, ".bcr"));
  CHECK_OK(bc_uninstall());
}

/* Without an installation, without a directory, without the directory that there was. */
static void states(void) {
  CHECK_STATUS(bc_reports_each(visit, visited), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_reports_delete_all(), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_reports_zip("none.zip"), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_set_uploader(NULL, NULL), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_reports_upload(), BC_ERROR_INVALID_STATE);
  CHECK_OK(bc_install(NULL));
  CHECK_STATUS(bc_reports_each(visit, visited), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_reports_delete_all(), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_reports_zip("none.zip"), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_reports_upload(), BC_ERROR_INVALID_STATE);
  CHECK_OK(bc_uninstall());
  begin("states", 30);
  CHECK_STATUS(bc_reports_upload(), BC_ERROR_INVALID_STATE);
  bc_loop *loop = watched("states");
  blocking_dispatch(loop, "late", 2, 60);
  flush(); /* from here on the writer has nothing to do there */
  CHECK_OK(bc_reports_delete_all());
  CHECK(rmdir(directory) == 0, "%s", strerror(errno));
  CHECK(visit_all() == 0, "%u visits", visits);
  CHECK_OK(bc_reports_delete_all());
  CHECK_OK(bc_reports_zip("none.zip"));
  CHECK(unlink("none.zip") == 0, "%s", strerror(errno));
  int fd = open(directory, O_CREAT | O_WRONLY, 0600);
  CHECK(fd >= 0 && close(fd) == 0, "%s", strerror(errno));
  CHECK_STATUS(bc_reports_each(visit, visited), BC_ERROR_IO);
  CHECK_STATUS(bc_reports_delete_all(), BC_ERROR_IO);
  CHECK_STATUS(bc_reports_zip("none.zip"), BC_ERROR_IO);
  CHECK(access("none.zip", F_OK) != 0, "an archive of nothing");
  CHECK(unlink(directory) == 0, "%s", strerror(errno));
  blocking_dispatch(loop, "late", 1, 60);
  flush();
  CHECK(visit_all() == 2, "%u visits", visits);
  CHECK_OK(bc_uninstall());
}

CASES({"each", each}, {"visitor_acts", visitor_acts}, {"delete_all", delete_all}, {"delete_shared", delete_shared},
      {"in_callbacks", in_callbacks}, {"states", states})
