/* Reports on their way to whoever collects them: each arrives once, whole, and goes only then. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

static char directory[300];

static void install(void) {
  bc_config config = config_of(20);
  config.sample_interval_ms = 5;
  config.report_dir = directory;
  config.report_max_age_s = UINT32_MAX; /* what is planted is old */
  config.max_reports = 100000;
  install_and_start(&config);
}

static void install_in(const char *name) {
  snprintf(directory, sizeof directory, "%s", fresh_directory(name));
  install();
}

static void store_blocks(unsigned count) {
  bc_loop *loop = watched("uploaded");
  for (unsigned i = 0; i < count; i++) {
    blocking_dispatch(loop, "late", i, 40);
  }
  flush();
}

#define INBOX "uploads.inbox"

/* What the collector has got: names of entries, one a line, of archives that are whole. */
static unsigned received(void) {
  char text[65536];
  FILE *pipe = popen("cat " INBOX "/*.names 2>/dev/null | sort | wc -l; cat " INBOX
                     "/*.names 2>/dev/null | sort | uniq -d | wc -l", "r");
  CHECK(pipe != NULL, "%s", strerror(errno));
  text[fread(text, 1, sizeof text - 1, pipe)] = 0;
  pclose(pipe);
  unsigned all, twice;
  CHECK(sscanf(text, "%u %u", &all, &twice) == 2, "%s", text);
  CHECK(twice == 0, "%u of %u came twice", twice, all);
  return all;
}

static void empty_inbox(void) {
  CHECK(system("rm -rf " INBOX " && mkdir " INBOX) == 0, "%s", strerror(errno));
}

static atomic_int calls, answer;
/* Held while a success is being said, so that nobody is killed between saying and being heard. */
static pthread_mutex_t saying = PTHREAD_MUTEX_INITIALIZER;
static bool has_said;

/* Looks at the archive as a server would, and says what it is told to. What has arrived is in the inbox from one moment to
   the next, and the last thing before the answer. */
static bool collect(const char *zip, void *user_data) {
  CHECK(user_data == &answer, "another user_data");
  CHECK(threads_named("bc-reporter") == 1, "no bc-reporter");
  struct stat status;
  CHECK(stat(zip, &status) == 0 && (status.st_mode & 0777) == 0600, "%s: mode %o", zip, status.st_mode & 0777);
  bool is_wanted = atomic_load(&answer);
  if (is_wanted) {
    char arriving[100], arrived[110], command[1200];
    snprintf(arriving, sizeof arriving, INBOX "/%d-%d", (int)getpid(), atomic_load(&calls));
    snprintf(arrived, sizeof arrived, "%s.names", arriving);
    snprintf(command, sizeof command, "{ unzip -tqq %s && unzip -Z1 %s > %s; } 2>/dev/null", zip, zip, arriving);
    CHECK(system(command) == 0, "%s cannot be read", zip);
    pthread_mutex_lock(&saying);
    CHECK(rename(arriving, arrived) == 0, "%s", strerror(errno));
    has_said = true;
    pthread_mutex_unlock(&saying);
  }
  atomic_fetch_add(&calls, 1);
  return is_wanted;
}

/* The uploader has returned, and what follows is done: the archive is gone. */
static void wait_for_call(int number) {
  WAIT_FOR(atomic_load(&calls) == number, 20000);
  WAIT_FOR(files_in(directory, "upload.zip") == 0 && files_in(directory, ".sent") == 0 &&
               files_in(directory, ".list") == 0,
           20000);
}

static void sent_once(void) {
  empty_inbox();
  install_in("sent_once");
  CHECK_OK(bc_set_uploader(collect, &answer));
  store_blocks(4);
  CHECK(files_but(directory, ".bcr") == 8, "%d files", files_but(directory, ".bcr"));
  /* Refused: all stays. */
  for (int i = 1; i <= 2; i++) {
    CHECK_OK(bc_reports_upload());
    wait_for_call(i);
    CHECK(files_but(directory, ".bcr") == 8, "%d files after a refusal", files_but(directory, ".bcr"));
  }
  atomic_store(&answer, 1);
  CHECK_OK(bc_reports_upload());
  wait_for_call(3);
  WAIT_FOR(files_but(directory, ".bcr") == 0, 20000);
  CHECK(received() == 8, "%u received", received());
  /* Nothing to send: nobody is called. */
  CHECK_OK(bc_reports_upload());
  store_blocks(1);
  CHECK_OK(bc_reports_upload());
  wait_for_call(4);
  CHECK(received() == 10, "%u received", received());
  CHECK(atomic_load(&calls) == 4, "%d calls", atomic_load(&calls));
  /* While stopped, too. */
  store_blocks(1);
  CHECK_OK(bc_stop());
  CHECK_OK(bc_reports_upload());
  wait_for_call(5);
  CHECK(received() == 12, "%u received", received());
  CHECK_OK(bc_uninstall());
  CHECK_STATUS(bc_reports_upload(), BC_ERROR_INVALID_STATE);
  CHECK_OK(bc_install(NULL));
  CHECK_STATUS(bc_reports_upload(), BC_ERROR_INVALID_STATE);
  CHECK_OK(bc_uninstall());
}

/* What goes on is sent when it has ended; what belongs to another process that lives is that one's. */
static void others_stay(void) {
  empty_inbox();
  install_in("others_stay");
  atomic_store(&answer, 1);
  CHECK_OK(bc_set_uploader(collect, &answer));
  char path[500];
  snprintf(path, sizeof path, "%s/looper-2020-01-01_00-00-00.000-%d-1.log", directory, (int)getppid());
  fclose(fopen(path, "w"));
  bc_loop *loop = watched("open");
  blocking_dispatch(loop, "ended", 1, 40);
  flush();
  bc_dispatch_begin(loop, "open", 2);
  WAIT_FOR(blocks_tagged(BC_BLOCK_ONGOING, 2) == 1, 20000);
  CHECK_OK(bc_reports_upload());
  wait_for_call(1);
  CHECK(received() == 2, "%u received", received());
  CHECK(access(blocks_get(BC_BLOCK_ONGOING, 2)->path, F_OK) == 0, "the report of an open block is gone");
  bc_dispatch_end(loop);
  flush();
  CHECK_OK(bc_reports_upload());
  wait_for_call(2);
  CHECK(received() == 4, "%u received", received());
  CHECK(files_but(directory, ".bcr") == 1 && access(path, F_OK) == 0, "%d files", files_but(directory, ".bcr"));
  CHECK_OK(bc_uninstall());
}

static bool take_away(const char *zip, void *user_data) {
  CHECK(rename(zip, user_data) == 0, "%s", strerror(errno));
  atomic_fetch_add(&calls, 1);
  return true;
}

/* An uploader may keep the archive: what was in it goes all the same. */
static void moved_away(void) {
  empty_inbox();
  install_in("moved_away");
  store_blocks(2);
  CHECK_OK(bc_set_uploader(take_away, INBOX "/kept.zip"));
  CHECK_OK(bc_reports_upload());
  wait_for_call(1);
  WAIT_FOR(files_but(directory, ".bcr") == 0, 20000);
  CHECK(system("unzip -tqq " INBOX "/kept.zip") == 0, "kept.zip cannot be read");
  CHECK_OK(bc_uninstall());
}

static atomic_int is_inside, is_released;

static bool wait_inside(const char *zip, void *user_data) {
  (void)zip, (void)user_data;
  atomic_store(&is_inside, 1);
  WAIT_FOR(atomic_load(&is_released), 60000);
  atomic_fetch_add(&calls, 1);
  atomic_store(&is_inside, 0);
  return true;
}

static void *release_soon(void *argument) {
  pause_ms(100);
  atomic_store(&is_released, 1);
  return argument;
}

/* Who replaces the uploader waits for it; an uninstall gives up, and the reports have arrived all the same. */
static void replaced(void) {
  install_in("replaced");
  store_blocks(1);
  CHECK_OK(bc_set_uploader(wait_inside, NULL));
  CHECK_OK(bc_reports_upload());
  WAIT_FOR(atomic_load(&is_inside), 20000);
  CHECK_STATUS(bc_uninstall(), BC_ERROR_TIMEOUT);
  unsigned long other = start_thread(release_soon, NULL);
  CHECK_OK(bc_set_uploader(NULL, NULL));
  CHECK(!atomic_load(&is_inside) && atomic_load(&calls) == 1, "the uploader still runs");
  join_thread(other);
  WAIT_FOR(files_but(directory, ".bcr") == 0, 20000);
  CHECK_STATUS(bc_reports_upload(), BC_ERROR_INVALID_STATE);
  CHECK_OK(bc_uninstall());
}

static bc_status inside[8];

static bool call_all(const char *zip, void *user_data) {
  (void)zip, (void)user_data;
  bc_loop *loop;
  bc_status found[] = {bc_flush(1000),         bc_uninstall(), bc_loop_watch("x", &loop), bc_reports_delete_all(),
                       bc_reports_zip("in_uploader.zip"), bc_reports_upload(), bc_stop()};
  memcpy(inside, found, sizeof found);
  CHECK_OK(bc_set_uploader(NULL, NULL));
  atomic_fetch_add(&calls, 1);
  return false;
}

/* What may be called from it, and that it may take itself away. */
static void calls_from_inside(void) {
  install_in("calls_from_inside");
  store_blocks(1);
  CHECK_OK(bc_set_uploader(call_all, NULL));
  CHECK_OK(bc_reports_upload());
  WAIT_FOR(atomic_load(&calls) == 1, 20000);
  const bc_status expected[] = {BC_ERROR_WRONG_THREAD, BC_ERROR_WRONG_THREAD, BC_ERROR_WRONG_THREAD, BC_OK, BC_OK,
                                BC_OK, BC_OK};
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
    CHECK(inside[i] == expected[i], "call %u gives %s", (unsigned)i, bc_status_str(inside[i]));
  }
  CHECK(unlink("in_uploader.zip") == 0, "%s", strerror(errno));
  CHECK_OK(bc_uninstall());
}

/* Ends this process without warning, but not between a success and the library's hearing of it: that it has heard shows in
   the name of its list, or in that it removes reports. */
static void die(void) {
  int before = files_in(directory, ".json");
  pthread_mutex_lock(&saying);
  while (has_said && files_in(directory, ".list") > 0 && files_in(directory, ".json") >= before) {
  }
  kill(getpid(), SIGKILL);
}

/* Runs it in a child, which is to be killed. */
static void in_child(void (*run)(unsigned), unsigned argument) {
  pid_t child = fork();
  CHECK(child >= 0, "%s", strerror(errno));
  if (child == 0) {
    run(argument);
    _exit(1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x",
        (unsigned)status);
}

/* One process of many: stores, uploads, dies at any moment. */
static void live_and_die(unsigned ms) {
  install();
  atomic_store(&answer, 1);
  CHECK_OK(bc_set_uploader(collect, &answer));
  store_blocks(2);
  CHECK_OK(bc_reports_upload());
  uint64_t until = now_ns() + ms * 1000000ull;
  while (now_ns() < until) {
  }
  die();
}

static int leftovers(void) {
  return files_in(directory, "upload.zip") + files_in(directory, ".list") + files_in(directory, ".sent");
}

/* Installs as the next start of the program does, and sends what there is. */
static void send_rest(void) {
  install();
  atomic_store(&answer, 1);
  CHECK_OK(bc_set_uploader(collect, &answer));
  CHECK_OK(bc_reports_upload());
  WAIT_FOR(files_but(directory, ".bcr") == 0, 30000);
  CHECK_OK(bc_uninstall());
}

/* Killed at any moment of an upload: sent again, and never twice after the uploader said so. */
static void killed(void) {
  empty_inbox();
  snprintf(directory, sizeof directory, "%s", fresh_directory("killed"));
  unsigned amid = 0;
  for (unsigned i = 0; i < 30; i++) {
    in_child(live_and_die, i);
    amid += leftovers() > 0;
  }
  send_rest();
  unsigned all = received();
  printf("%u files of 30 killed processes arrived, each once; %u were killed amid an upload\n", all, amid);
  CHECK(all == 120, "%u of 120 files arrived", all);
  CHECK(amid > 0, "nobody was killed amid an upload");
}

#define MANY 3000

/* Dies after the success, while reports are being removed. */
static void die_removing(unsigned argument) {
  (void)argument;
  install();
  atomic_store(&answer, 1);
  CHECK_OK(bc_set_uploader(collect, &answer));
  CHECK_OK(bc_reports_upload());
  WAIT_FOR(files_in(directory, ".json") < MANY, 30000);
  kill(getpid(), SIGKILL);
}

static void killed_after_success(void) {
  empty_inbox();
  snprintf(directory, sizeof directory, "%s", fresh_directory("killed_after_success"));
  for (unsigned i = 0; i < MANY; i++) {
    char path[500];
    snprintf(path, sizeof path, "%s/looper-2020-01-01_00-00-00.000-999999999-%u.json", directory, i);
    fclose(fopen(path, "w"));
  }
  in_child(die_removing, 0);
  int left = files_in(directory, ".json");
  CHECK(left > 0, "killed too late");
  CHECK(received() == MANY, "%u received", received());
  /* The next start removes the rest, without being asked for an upload. */
  install();
  WAIT_FOR(files_but(directory, ".bcr") == 0, 20000);
  CHECK_OK(bc_uninstall());
  CHECK(received() == MANY, "%u received", received());
  printf("%d of %d files were left when the process was killed, and none was sent again\n", left, MANY);
}

/* A block that comes again while its like is on its way does not change that one: it has a report of its own. */
static void merged_meanwhile(void) {
  empty_inbox();
  snprintf(directory, sizeof directory, "%s", fresh_directory("merged_meanwhile"));
  bc_config config = config_of(50);
  config.merge_window_s = 0;
  config.report_dir = directory;
  install_and_start(&config);
  bc_loop *loop = watched("merged");
  for (unsigned i = 0; i < 3; i++) {
    bc_dispatch_begin(loop, "same", i);
    sleep_ms(150);
    bc_dispatch_end(loop);
  }
  CHECK_OK(bc_set_uploader(wait_inside, NULL));
  flush();
  int before = files_but(directory, ".bcr");
  CHECK_OK(bc_reports_upload());
  WAIT_FOR(atomic_load(&is_inside), 20000);
  bc_dispatch_begin(loop, "same", 9);
  sleep_ms(150);
  bc_dispatch_end(loop);
  WAIT_FOR(files_in(directory, ".json") > before / 2, 20000);
  atomic_store(&is_released, 1);
  WAIT_FOR(files_but(directory, ".bcr") == 2, 20000);
  flush();
  CHECK(access(blocks_get(BC_BLOCK_ENDED, 9)->path, F_OK) == 0, "%s is gone", blocks_get(BC_BLOCK_ENDED, 9)->path);
  CHECK(blocks_get(BC_BLOCK_ENDED, 9)->repeats == 0, "repeat %u", blocks_get(BC_BLOCK_ENDED, 9)->repeats);
  CHECK_OK(bc_uninstall());
}

#define TOO_MANY 65600

/* More files than one archive can hold go in several, at one order. */
static void more_than_one(void) {
  empty_inbox();
  snprintf(directory, sizeof directory, "%s", fresh_directory("more_than_one"));
  for (unsigned i = 0; i < TOO_MANY; i++) {
    char path[500];
    snprintf(path, sizeof path, "%s/looper-2020-01-01_00-00-00.000-999999999-%u.json", directory, i);
    int fd = creat(path, 0600);
    CHECK(fd >= 0 && close(fd) == 0, "%s", strerror(errno));
  }
  install();
  CHECK_STATUS(bc_reports_zip("more_than_one.zip"), BC_ERROR_LIMIT_REACHED);
  CHECK(access("more_than_one.zip", F_OK) != 0, "an archive of a part");
  atomic_store(&answer, 1);
  CHECK_OK(bc_set_uploader(collect, &answer));
  CHECK_OK(bc_reports_upload());
  WAIT_FOR(files_but(directory, ".bcr") == 0, 60000);
  CHECK_OK(bc_uninstall());
  printf("%u of %u files arrived in %d archives\n", received(), TOO_MANY, atomic_load(&calls));
  CHECK(received() == TOO_MANY && atomic_load(&calls) == 2, "%u in %d", received(), atomic_load(&calls));
}

CASES({"sent_once", sent_once}, {"others_stay", others_stay}, {"moved_away", moved_away}, {"replaced", replaced},
      {"calls_from_inside", calls_from_inside}, {"killed", killed}, {"killed_after_success", killed_after_success},
      {"merged_meanwhile", merged_meanwhile}, {"more_than_one", more_than_one})
