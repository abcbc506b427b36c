/* Two libraries with blockcanary inside interpose the same library: each sees all its polls once, whoever came first and
 * whoever leaves first, and nothing is called that is not there any more. */
#include <android/looper.h>
#include <dlfcn.h>
#include <stdio.h>

#include "../check.h"
#include "../unload/canary.h"
#include "words.h"

#define POLLS "libpolls.so"
#define PATIENCE_MS 30000

struct copy {
  const char *path;
  void *library;
  const struct canary *canary;
  bc_loop *loop;
};
static struct copy one = {.path = INSIDE}, other = {.path = INSIDE_TOO};
static struct copy *const copies[] = {&one, &other};

static void *polls;
static int (*polls_once)(int timeout_ms);
static uintptr_t before;

static uintptr_t word(void) {
  struct words words;
  CHECK(words_read(POLLS, &words) && words.count == 1, "%u words", words.count);
  return words.word[0].value;
}

static void begin(void) {
  ALooper_prepare(0);
  polls = dlopen(LIBRARIES "/" POLLS, RTLD_NOW | RTLD_LOCAL);
  CHECK(polls != NULL, "%s", dlerror());
  *(void **)&polls_once = dlsym(polls, "polls_once");
  before = word();
  for (unsigned i = 0; i < 2; i++) {
    struct copy *copy = copies[i];
    copy->library = dlopen(copy->path, RTLD_NOW | RTLD_LOCAL);
    CHECK(copy->library != NULL, "%s", dlerror());
    copy->canary = dlsym(copy->library, "canary");
    CHECK(copy->canary != NULL, "%s", dlerror());
    CHECK(copy->canary->install(NULL) == BC_OK && copy->canary->start() == BC_OK, "install");
    CHECK(copy->canary->watch("polls", &copy->loop) == BC_OK, "watch");
    CHECK(copy->canary->interpose(POLLS) == BC_OK, "interpose");
  }
}

static uint64_t dispatches(const struct copy *copy) {
  bc_loop_stats stats = {.struct_size = sizeof stats};
  copy->canary->idle(copy->loop);
  CHECK(copy->canary->stats_get(copy->loop, &stats) == BC_OK, "stats");
  return stats.dispatches;
}

/* Counts what comes through, watching or not. */
#define ANY UINT64_MAX

/* Ten polls are seen so often by the one and the other. */
static void poll_ten_times(uint64_t by_one, uint64_t by_other) {
  const uint64_t from[] = {dispatches(&one), dispatches(&other)}, expected[] = {by_one, by_other};
  for (unsigned i = 0; i < 10; i++) {
    int result = polls_once(0);
    CHECK(result == ALOOPER_POLL_TIMEOUT, "a poll gives %d", result);
  }
  for (unsigned i = 0; i < 2; i++) {
    uint64_t seen = dispatches(copies[i]) - from[i];
    CHECK(seen == expected[i] || expected[i] == ANY, "copy %u has seen %u of 10 polls, not %u", i, (unsigned)seen, (unsigned)expected[i]);
  }
}

static void stop(const struct copy *copy) {
  CHECK(copy->canary->stop() == BC_OK, "stop");
}

static void start(const struct copy *copy) {
  CHECK(copy->canary->start() == BC_OK, "start");
}

static void last_leaves_first(void) {
  begin();
  poll_ten_times(10, 10);
  uintptr_t both = word();
  stop(&other);
  WAIT_FOR(word() != both, PATIENCE_MS);
  CHECK(word() != before, "the first one's is gone, too");
  poll_ten_times(10, 0);
  stop(&one);
  WAIT_FOR(word() == before, PATIENCE_MS);
  poll_ten_times(0, 0);
  CHECK(one.canary->uninstall() == BC_OK && other.canary->uninstall() == BC_OK, "uninstall");
}

static void first_leaves_first(void) {
  begin();
  uintptr_t both = word();
  for (unsigned round = 0; round < 20; round++) {
    /* It is still on the way to the system's. */
    stop(&one);
    poll_ten_times(ANY, 10);
    start(&one);
    poll_ten_times(10, 10);
    CHECK(word() == both, "somebody has written over the other's word");
  }
  CHECK(one.canary->uninstall() == BC_OK, "uninstall");
  /* The other calls into it for ever, so it stays. */
  CHECK(dlclose(one.library) == 0, "%s", dlerror());
  for (unsigned i = 0; i < 10; i++) {
    CHECK(polls_once(0) == ALOOPER_POLL_TIMEOUT, "a poll");
  }
  CHECK(dispatches(&other) >= 20 * 20 + 10, "%u polls", (unsigned)dispatches(&other));
  CHECK(other.canary->uninstall() == BC_OK && dlclose(other.library) == 0, "uninstall");
  CHECK(polls_once(0) == ALOOPER_POLL_TIMEOUT, "a poll");
  /* Gone, it is forgotten. */
  CHECK(dlclose(polls) == 0 && dlopen(LIBRARIES "/" POLLS, RTLD_NOW | RTLD_NOLOAD) == NULL, "it stays");
}

CASES({"last_leaves_first", last_leaves_first}, {"first_leaves_first", first_leaves_first})
