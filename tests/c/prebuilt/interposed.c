/* Interposing libraries that come and go, while others do, and while somebody holds the loader. */
#include <android/looper.h>
#include <blockcanary.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "../support/blocks.h"
#include "../support/procfs.h"
#include "words.h"

#define PATIENCE_MS 30000
#define POLLS "libpolls.so"
#define POLLS_WRITABLE "libpolls_writable.so"
#define POLLS_WAITING "libpolls_waiting.so"

static char log_text[1 << 16];
static atomic_size_t log_length;

static void keep_message(bc_log_level level, const char *message, void *user_data) {
  (void)level, (void)user_data;
  static atomic_flag is_busy = ATOMIC_FLAG_INIT;
  while (atomic_flag_test_and_set(&is_busy)) {
  }
  size_t length = strlen(message), at = atomic_load(&log_length);
  if (at + length + 2 < sizeof log_text) {
    memcpy(log_text + at, message, length);
    log_text[at + length] = '\n';
    atomic_store(&log_length, at + length + 1);
  }
  atomic_flag_clear(&is_busy);
}

static bool is_said(const char *what) {
  return atomic_load(&log_length) > 0 && strstr(log_text, what) != NULL;
}

static void *load(const char *name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", LIBRARIES, name);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(library != NULL, "%s", dlerror());
  return library;
}

static void unload(void *library, const char *name) {
  CHECK(dlclose(library) == 0, "%s", dlerror());
  struct words words;
  CHECK(!words_read(name, &words), "%s is still there", name);
}

/* What the loader writes into the words of these libraries, which import one function. Asked for once: it may be held. */
static uintptr_t system_poll(void) {
  static uintptr_t address;
  if (address == 0) {
    address = (uintptr_t)dlsym(RTLD_DEFAULT, "ALooper_pollOnce");
  }
  return address;
}

/* All of the library's words hold what the loader writes there. */
static bool is_free(const char *name) {
  struct words words;
  CHECK(words_read(name, &words) && words.count > 0, "%s is not there", name);
  for (unsigned i = 0; i < words.count; i++) {
    if (words.word[i].value != system_poll()) {
      return false;
    }
  }
  return true;
}

static bool is_interposed(const char *name) {
  struct words words;
  CHECK(words_read(name, &words) && words.count > 0, "%s is not there", name);
  for (unsigned i = 0; i < words.count; i++) {
    if (words.word[i].value == system_poll()) {
      return false;
    }
  }
  return true;
}

/* Polls of a loop that is watched, as seen. */
static uint64_t polls_seen(void *library, unsigned polls) {
  int (*polls_once)(int);
  *(void **)&polls_once = dlsym(library, "polls_once");
  CHECK(polls_once != NULL, "%s", dlerror());
  bc_loop *loop = watched("polls");
  bc_loop_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
  bc_loop_idle(loop);
  CHECK_OK(bc_loop_stats_get(loop, &before));
  for (unsigned i = 0; i < polls; i++) {
    int result = polls_once(0);
    CHECK(result == ALOOPER_POLL_TIMEOUT, "a poll gives %d", result);
  }
  bc_loop_idle(loop);
  CHECK_OK(bc_loop_stats_get(loop, &after));
  return after.dispatches - before.dispatches;
}

static void begin(void) {
  CHECK_OK(bc_set_log_handler(keep_message, NULL));
  CHECK(system_poll() != 0, "no looper");
  ALooper_prepare(0);
  bc_config config = config_of(10000);
  install_and_start(&config);
}

static void end(void) {
  CHECK_OK(bc_uninstall());
  CHECK(threads_named("bc-") == 0, "%u threads are left", threads_named("bc-"));
}

static void answers(void) {
  CHECK_STATUS(bc_module_interpose(POLLS), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_module_restore(POLLS), BC_ERROR_INVALID_STATE);
  begin();
  char name[258];
  memset(name, 'x', sizeof name);
  name[256] = '\0';
  CHECK_STATUS(bc_module_interpose(NULL), BC_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(bc_module_interpose(""), BC_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(bc_module_interpose(name), BC_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(bc_module_restore(NULL), BC_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(bc_module_restore(name), BC_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(bc_module_restore(POLLS), BC_ERROR_INVALID_STATE);
  name[255] = '\0';
  CHECK_STATUS(bc_module_interpose(name), BC_ERROR_INVALID_STATE);
  CHECK_OK(bc_module_restore(name));

  /* What imports nothing is refused, and not kept. */
  void *still = load("libstill.so");
  CHECK_STATUS(bc_module_interpose("libstill.so"), BC_ERROR_UNSUPPORTED);
  CHECK(is_said("libstill.so imports no function of ALooper's"), "not said:\n%s", log_text);
  CHECK_STATUS(bc_module_restore("libstill.so"), BC_ERROR_INVALID_STATE);
  unload(still, "libstill.so");

  /* What nobody has loaded is kept, as far as there is room. */
  for (char digit = '1'; digit <= '8'; digit++) {
    char missing[] = "libmissing0.so";
    missing[10] = digit;
    CHECK_STATUS(bc_module_interpose(missing), BC_ERROR_INVALID_STATE);
    CHECK_STATUS(bc_module_interpose(missing), BC_ERROR_INVALID_STATE);
  }
  CHECK(is_said("libmissing8.so is not loaded"), "not said:\n%s", log_text);
  CHECK_STATUS(bc_module_interpose("libmissing9.so"), BC_ERROR_LIMIT_REACHED);
  CHECK_OK(bc_module_restore("libmissing1.so"));
  CHECK_STATUS(bc_module_restore("libmissing1.so"), BC_ERROR_INVALID_STATE);

  /* By its path, by its file's name; and twice is once. */
  void *polls = load(POLLS);
  const char *const names[] = {LIBRARIES "/" POLLS, POLLS};
  for (unsigned i = 0; i < 2; i++) {
    CHECK(is_free(POLLS), "interposed too soon");
    CHECK_OK(bc_module_interpose(names[i]));
    CHECK(is_interposed(POLLS), "not interposed");
    uint64_t seen = polls_seen(polls, 10);
    CHECK(seen == 10, "%u of 10 polls", (unsigned)seen);
    CHECK_OK(bc_module_interpose(names[i]));
    CHECK_OK(bc_module_restore(names[i]));
    CHECK(is_free(POLLS), "not restored");
    seen = polls_seen(polls, 10);
    CHECK(seen == 0, "%u polls seen, without being interposed", (unsigned)seen);
  }
  /* By both at once, until both are given back, whichever was first. */
  CHECK_OK(bc_module_restore("libmissing3.so"));
  for (unsigned i = 0; i < 4; i++) {
    CHECK_OK(bc_module_interpose(names[i / 2]));
    CHECK_OK(bc_module_interpose(names[1 - i / 2]));
    CHECK_OK(bc_module_restore(names[i % 2]));
    CHECK(is_interposed(POLLS), "not interposed by %s", names[1 - i % 2]);
    CHECK_OK(bc_module_interpose(names[1 - i % 2]));
    CHECK_OK(bc_module_restore(names[1 - i % 2]));
    CHECK(is_free(POLLS), "not restored");
  }
  end();
  /* A child of fork, or a second installation, begins with nothing. */
  begin();
  CHECK_STATUS(bc_module_restore("libmissing2.so"), BC_ERROR_INVALID_STATE);
  end();
  CHECK(is_free(POLLS), "interposed by nobody");
  unload(polls, POLLS);
}

static void loaded_later(void) {
  begin();
  CHECK_STATUS(bc_module_interpose(POLLS), BC_ERROR_INVALID_STATE);
  for (unsigned round = 0; round < 3; round++) {
    void *polls = load(POLLS);
    WAIT_FOR(is_interposed(POLLS), PATIENCE_MS);
    uint64_t seen = polls_seen(polls, 10);
    CHECK(seen == 10, "%u of 10 polls", (unsigned)seen);
    WAIT_FOR(is_said("libpolls.so: its calls come through"), PATIENCE_MS);
    unload(polls, POLLS);
  }
  end();
}

static void stopped_and_started(void) {
  begin();
  void *polls = load(POLLS);
  CHECK_OK(bc_stop());
  CHECK_OK(bc_module_interpose(POLLS));
  CHECK(is_free(POLLS), "interposed while watching is off");
  for (unsigned round = 0; round < 5; round++) {
    CHECK_OK(bc_start());
    WAIT_FOR(is_interposed(POLLS), PATIENCE_MS);
    if (round > 0) {
      uint64_t seen = polls_seen(polls, 10);
      CHECK(seen == 10, "%u of 10 polls", (unsigned)seen);
    }
    CHECK_OK(bc_stop());
    WAIT_FOR(is_free(POLLS), PATIENCE_MS);
    WAIT_FOR(is_said("libpolls.so was interposed and has not called a looper"), PATIENCE_MS);
  }
  CHECK_OK(bc_start());
  WAIT_FOR(is_interposed(POLLS), PATIENCE_MS);
  end();
  CHECK(is_free(POLLS), "not restored");
  unload(polls, POLLS);
}

static int a_poll_of_mine(int timeout_ms, int *fd, int *events, void **data) {
  return ALooper_pollOnce(timeout_ms, fd, events, data);
}

/* Whoever writes to a word after us has it. */
static void overwritten(void) {
  begin();
  void *polls = load(POLLS_WRITABLE);
  CHECK_OK(bc_module_interpose(POLLS_WRITABLE));
  struct words words;
  CHECK(words_read(POLLS_WRITABLE, &words) && words.count == 1, "%u words", words.count);
  CHECK(words.word[0].access[1] == 'w', "its page is %s", words.word[0].access);
  uintptr_t *word = (uintptr_t *)(uintptr_t)words.word[0].at;
  *word = (uintptr_t)a_poll_of_mine;
  CHECK_OK(bc_stop());
  WAIT_FOR(is_said("libpolls_writable.so: 1 of its words are somebody else's by now"), PATIENCE_MS);
  CHECK(*word == (uintptr_t)a_poll_of_mine, "taken back");
  CHECK_OK(bc_start());
  uint64_t seen = polls_seen(polls, 10);
  CHECK(seen == 0 && *word == (uintptr_t)a_poll_of_mine, "%u polls seen", (unsigned)seen);
  /* Given back to the linker's, it is found again. */
  *word = system_poll();
  WAIT_FOR(is_interposed(POLLS_WRITABLE), PATIENCE_MS);
  seen = polls_seen(polls, 10);
  CHECK(seen == 10, "%u of 10 polls", (unsigned)seen);
  end();
  CHECK(is_free(POLLS_WRITABLE), "not restored");
  unload(polls, POLLS_WRITABLE);
}

static atomic_bool is_over;
static atomic_uint loads;

static void *load_others(void *name) {
  while (!atomic_load(&is_over)) {
    void *library = load(name);
    atomic_fetch_add(&loads, 1);
    CHECK(dlclose(library) == 0, "%s", dlerror());
  }
  return NULL;
}

static void *load_and_poll(void *name) {
  ALooper_prepare(0);
  while (!atomic_load(&is_over)) {
    void *library = load(name);
    int (*polls_once)(int);
    *(void **)&polls_once = dlsym(library, "polls_once");
    for (unsigned i = 0; i < 3; i++) {
      int result = polls_once(0);
      CHECK(result == ALOOPER_POLL_TIMEOUT, "a poll gives %d", result);
    }
    atomic_fetch_add(&loads, 1);
    CHECK(dlclose(library) == 0, "%s", dlerror());
  }
  return NULL;
}

/* Libraries come and go, that of the name too, while it is interposed and given back. */
static void racing(void) {
  begin();
  void *stays = load(POLLS_WRITABLE);
  unsigned long threads[] = {start_thread(load_others, (void *)(uintptr_t)"libstill.so"),
                             start_thread(load_and_poll, (void *)(uintptr_t)POLLS),
                             start_thread(load_and_poll, (void *)(uintptr_t)POLLS)};
  unsigned placed = 0;
  for (unsigned round = 0; round < 300 || placed < 20 || atomic_load(&loads) < 2000; round++) {
    bc_status status = bc_module_interpose(POLLS);
    CHECK(status == BC_OK || status == BC_ERROR_INVALID_STATE || status == BC_ERROR_TIMEOUT, "%s",
          bc_status_str(status));
    placed += status == BC_OK;
    /* This one has no page that tells of being loaded, and so needs a moment in which nothing else is. */
    do {
      status = bc_module_interpose(POLLS_WRITABLE);
    } while (status == BC_ERROR_TIMEOUT);
    CHECK_OK(status);
    CHECK(is_interposed(POLLS_WRITABLE), "not interposed");
    switch (round % 3) {
      case 0:
        CHECK_OK(bc_module_restore(POLLS));
        CHECK_OK(bc_module_restore(POLLS_WRITABLE));
        break;
      case 1:
        CHECK_OK(bc_stop());
        CHECK_OK(bc_start());
        break;
      default:
        bc_uninstall();
        begin();
    }
  }
  atomic_store(&is_over, true);
  for (unsigned i = 0; i < sizeof threads / sizeof threads[0]; i++) {
    join_thread(threads[i]);
  }
  end();
  CHECK(is_free(POLLS_WRITABLE), "not restored");
  unload(stays, POLLS_WRITABLE);
  printf("%u loads, interposed %u times\n", atomic_load(&loads), placed);
}

static atomic_bool may_go_on, holds_the_loader;

static int hold(struct dl_phdr_info *info, size_t size, void *data) {
  (void)info, (void)size, (void)data;
  atomic_store(&holds_the_loader, true);
  while (!atomic_load(&may_go_on)) {
    pause_ms(1);
  }
  return 1;
}

static void *hold_the_loader(void *unused) {
  dl_iterate_phdr(hold, NULL);
  return unused;
}

/* Somebody is in the loader and does not come out: a stop is in time all the same, and blocks are found and told. */
static void loader_held(void) {
  CHECK_OK(bc_set_log_handler(keep_message, NULL));
  ALooper_prepare(0);
  bc_config config = config_of(100);
  install_and_start(&config);
  void *polls = load(POLLS);
  CHECK_OK(bc_module_interpose(POLLS));
  bc_loop *loop = watched("polls");
  unsigned long holder = start_thread(hold_the_loader, NULL);
  WAIT_FOR(atomic_load(&holds_the_loader), PATIENCE_MS);
  blocking_dispatch(loop, "meanwhile", 7, 300);
  WAIT_FOR(blocks_tagged(BC_BLOCK_ENDED, 7) == 1, PATIENCE_MS);
  uint64_t from = now_ns();
  CHECK_OK(bc_stop());
  unsigned took_ms = (unsigned)((now_ns() - from) / 1000000);
  CHECK(took_ms < 200, "bc_stop took %u ms", took_ms);
  CHECK_STATUS(bc_uninstall(), BC_ERROR_TIMEOUT);
  CHECK_OK(bc_start());
  CHECK_OK(bc_stop());
  atomic_store(&may_go_on, true);
  join_thread(holder);
  WAIT_FOR(is_free(POLLS), PATIENCE_MS);
  /* What was wanted is wanted still. */
  CHECK_OK(bc_start());
  WAIT_FOR(is_interposed(POLLS), PATIENCE_MS);
  end();
  CHECK(is_free(POLLS), "not restored");
  unload(polls, POLLS);
}

/* Given back while somebody looks after it, again and again: nothing stays interposed. */
static void *start_and_stop(void *unused) {
  while (!atomic_load(&is_over)) {
    CHECK_OK(bc_start());
    CHECK_OK(bc_stop());
  }
  return unused;
}

static void given_back(void) {
  begin();
  void *polls = load(POLLS);
  unsigned long thread = start_thread(start_and_stop, NULL);
  for (unsigned round = 0; round < 2000; round++) {
    CHECK_OK(bc_module_interpose(POLLS));
    CHECK_OK(bc_module_restore(POLLS));
    CHECK(is_free(POLLS), "not restored in round %u", round);
  }
  atomic_store(&is_over, true);
  join_thread(thread);
  end();
  unload(polls, POLLS);
}

/* In a child of fork the words lead to us still, and calls pass through. */
static void forked(void) {
  begin();
  void *polls = load(POLLS);
  int (*polls_once)(int);
  *(void **)&polls_once = dlsym(polls, "polls_once");
  CHECK_OK(bc_module_interpose(POLLS));
  uint64_t seen = polls_seen(polls, 10);
  CHECK(seen == 10, "%u of 10 polls", (unsigned)seen);
  pid_t child = fork();
  CHECK(child >= 0, "no child");
  if (child == 0) {
    bool is_well = polls_once(0) == ALOOPER_POLL_TIMEOUT && bc_module_interpose(POLLS) == BC_ERROR_INVALID_STATE &&
                   bc_module_restore(POLLS) == BC_ERROR_INVALID_STATE && bc_stop() == BC_ERROR_INVALID_STATE &&
                   bc_uninstall() == BC_ERROR_INVALID_STATE && polls_once(0) == ALOOPER_POLL_TIMEOUT;
    _exit(is_well ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ends with %x", (unsigned)status);
  seen = polls_seen(polls, 10);
  CHECK(seen == 10, "%u of 10 polls", (unsigned)seen);
  end();
  CHECK(is_free(POLLS), "not restored");
  unload(polls, POLLS);
}

static void *load_waiting(void *unused) {
  (void)unused;
  return load(POLLS_WAITING);
}

/* A library whose constructor does not come to its end is interposed meanwhile, because it is linked by then. */
static void constructing(void) {
  char fifo[64];
  snprintf(fifo, sizeof fifo, "fifo-%d", (int)getpid());
  CHECK(mkfifo(fifo, 0600) == 0 && setenv("PREBUILT_FIFO", fifo, 1) == 0, "no fifo");
  begin();
  CHECK_STATUS(bc_module_interpose(POLLS_WAITING), BC_ERROR_INVALID_STATE);
  unsigned long loader = start_thread(load_waiting, NULL);
  /* There is a reader: the constructor, which runs when the linker has done its work. */
  int writer = -1;
  WAIT_FOR((writer = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0, PATIENCE_MS);
  WAIT_FOR(is_interposed(POLLS_WAITING), PATIENCE_MS);
  close(writer);
  join_thread(loader);
  CHECK(is_interposed(POLLS_WAITING), "the linker has undone it");
  CHECK_OK(bc_module_restore(POLLS_WAITING));
  CHECK(is_free(POLLS_WAITING), "not restored");
  end();
  unlink(fifo);
}

CASES({"answers", answers}, {"loaded_later", loaded_later}, {"stopped_and_started", stopped_and_started},
      {"overwritten", overwritten}, {"racing", racing}, {"given_back", given_back}, {"loader_held", loader_held},
      {"constructing", constructing}, {"forked", forked})
