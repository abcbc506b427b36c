/* The Java face used wrongly; many lives of the library in one VM, and lives that end while somebody watches. */
#include <atomic>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern "C" {
#include "../c/check.h"
#include "../c/support/blocks.h"
#include "../c/support/procfs.h"
}
#include "main_looper.h"
#include "reports.h"
#include "vm.h"

namespace {

constexpr const char *MISUSE = "dev/blockcanary/test/Misuse";

std::atomic<bool> is_over;

/* Watches again and again, from a thread of its own. */
void *watch_always(void *) {
  while (!is_over.load()) {
    bc_loop *loop = nullptr;
    bc_status status = bc_java_watch(vm(), nullptr, &loop);
    CHECK((status == BC_OK) == (loop != nullptr), "%s, and a token or none", bc_status_str(status));
    CHECK(status == BC_OK || status == BC_ERROR_INVALID_STATE || status == BC_ERROR_TIMEOUT, "%s", bc_status_str(status));
  }
  return nullptr;
}

void *live_on(void *) {
  vm_attach();
  for (int life = 0; life < 300; life++) {
    bc_config config = config_of(200);
    CHECK_OK(bc_install(&config));
    CHECK_OK(bc_start());
    usleep(static_cast<useconds_t>(life % 8) * 300);
    WAIT_FOR(bc_uninstall() == BC_OK, 60000);
  }
  is_over = true;
  WAIT_FOR((app("post", "(III)V", 1, 0, 0), threads_named("bc-") == 0), 10000);
  app("quit", "()V");
  vm_detach();
  return nullptr;
}

}  // namespace

void face_misused(void) {
  vm_begin();
  name_folder();
  int refused = number_of(MISUSE, "refusals", static_cast<jint>(getpid()));
  CHECK(refused == 0, "refusal %d is not as it should be", refused);
  CHECK(number_of(MISUSE, "accepted", static_cast<jint>(getpid())) == 0, "not accepted");
  run_bare(10, 10, 500);
  WAIT_FOR(number_of(MISUSE, "told", 0) >= 1, 20000);
  number_of(MISUSE, "restart", 0);
  run_bare(10, 10, 500);
  WAIT_FOR(number_of(MISUSE, "told", 0) >= 3, 20000);
  number_of(MISUSE, "nobody", 0);
  run_bare(10, 10, 500);
  CHECK_OK(bc_flush(20000));
  end();
}

/* Nothing grows with the number of lives. */
void cycles(void) {
  vm_begin();
  app("precise", "(Z)V", true);
  others("replace", 1);
  constexpr int LIVES = 1000;
  unsigned threads_before = 0, files_before = 0;
  for (int life = 0; life < LIVES; life++) {
    bc_config config = config_of(200);
    CHECK_OK(bc_install(&config));
    CHECK_OK(bc_start());
    app("precise", "(Z)V", life % 2 == 0);
    bc_loop *loop = nullptr;
    CHECK_OK(bc_java_watch(vm(), nullptr, &loop));
    if (life % 10 == 0) {
      others("later", 1);
      app("loop", "()V");
    }
    CHECK_OK(bc_uninstall());
    if (life == LIVES / 4) {
      threads_before = static_cast<unsigned>(app_number("threads", 0));
      files_before = descriptors();
    }
  }
  /* Each goes when the queue is idle next. */
  WAIT_FOR((others("later", 20), app("loop", "()V"), others("handlers", 0) == 0), 20000);
  /* The VM has more of its own, for a while. */
  unsigned threads_after = static_cast<unsigned>(app_number("threads", 0));
  printf("%u threads of %u, %u files of %u\n", threads_after, threads_before, descriptors(), files_before);
  CHECK(threads_named("bc-") == 0 && threads_after <= threads_before, "threads are left of each life");
  CHECK(descriptors() <= files_before, "descriptors are left of each life");
  CHECK(app_number("printer", 0) == -1 && others("lines", 1) > 0, "the Printer of before is not told");
}

void racing(void) {
  vm_begin();
  app("precise", "(Z)V", true);
  unsigned long watcher = start_thread(watch_always, nullptr), living = start_thread(live_on, nullptr);
  app("loop", "()V");
  join_thread(watcher);
  join_thread(living);
}
