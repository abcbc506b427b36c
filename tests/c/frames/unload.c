/* A library that contains blockcanary is unloaded while a frame is still to come for a thread that goes on. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../android/display.h"
#include "../check.h"
#include "../support/procfs.h"
#include "../unload/canary.h"
#include "polling.h"

static const struct canary *_Atomic canary;
static void *library;
static bc_loop *loop;

static void watch(void) {
  bc_status status = canary->frames_watch("frames", &loop);
  CHECK(status == BC_OK, "frames_watch gives %u", status);
}

static uint64_t frames(void) {
  bc_loop_stats stats = {.struct_size = sizeof stats};
  CHECK(canary->stats_get(loop, &stats) == BC_OK, "stats");
  return stats.dispatches;
}

static void bring_in(void) {
  library = dlopen(INSIDE, RTLD_NOW | RTLD_LOCAL);
  CHECK(library != NULL, "%s", dlerror());
  canary = dlsym(library, "canary");
  CHECK(canary != NULL, "%s", dlerror());
  CHECK(canary->install(NULL) == BC_OK && canary->start() == BC_OK, "install");
  have_done(watch);
  uint64_t before = frames();
  WAIT_FOR(frames() >= before + 3, 20000);
}

static bool is_loaded(void) {
  static struct mappings mappings;
  mappings_read(&mappings);
  return strstr(mappings.text, "libinside.so") != NULL;
}

static void uninstall(void) {
  bc_status status = canary->uninstall();
  CHECK(status == BC_OK, "uninstall gives %u", status);
}

static void close_library(void) {
  CHECK(dlclose(library) == 0, "dlclose");
}

/* By another thread than that of the frames: their last one has come by then. */
static void by_another_thread(void) {
  unsigned long thread = polling_thread();
  for (int round = 0; round < 30; round++) {
    bring_in();
    uninstall();
    CHECK(display_owes() == 0 && display_tells() == 0, "%u are to come", display_owes());
    close_library();
    CHECK(!is_loaded(), "the library is still there in round %d", round);
  }
  end_polling(thread);
}

/* By the thread itself, which cannot be called meanwhile: the library stays until it is. */
static void by_its_own_thread(void) {
  unsigned long thread = polling_thread();
  bring_in();
  have_done(uninstall);
  have_done(close_library);
  CHECK(is_loaded(), "the library is gone, and a frame to come");
  WAIT_FOR(display_owes() == 0, 20000);
  /* Once it is back, it can be unloaded by who does it in a better moment. */
  bring_in();
  uninstall();
  close_library();
  CHECK(!is_loaded(), "the library is still there");
  end_polling(thread);
}

/* By nobody: then it stays, and goes on. */
static void without_uninstall(void) {
  unsigned long thread = polling_thread();
  bring_in();
  close_library();
  CHECK(is_loaded(), "the library is gone, and a frame to come");
  uint64_t before = frames();
  WAIT_FOR(frames() >= before + 3, 20000);
  end_polling(thread);
}

/* A thread that has ended with a frame to come will never be called. */
static void ended_thread(void) {
  unsigned long thread = polling_thread();
  bring_in();
  display_switch(false);
  end_polling(thread);
  uninstall();
  close_library();
  CHECK(!is_loaded(), "the library is still there");
}

CASES({"by_another_thread", by_another_thread}, {"by_its_own_thread", by_its_own_thread},
      {"without_uninstall", without_uninstall}, {"ended_thread", ended_thread})
