/* Installing while another thread uninstalls: whoever comes first, the library works afterwards. */
#include <stdatomic.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

static atomic_bool ending;

static void *uninstall(void *argument) {
  while (!atomic_load(&ending)) {
    bc_uninstall();
  }
  return argument;
}

static void install_and_uninstall(void) {
  for (int round = 0; round < 5; round++) {
    atomic_store(&ending, false);
    unsigned long other = start_thread(uninstall, NULL);
    for (int i = 0; i < 2000; i++) {
      bc_install(NULL);
    }
    atomic_store(&ending, true);
    join_thread(other);
    bc_uninstall();
    CHECK(threads_named("bc-") == 0, "%u threads left", threads_named("bc-"));
    CHECK_OK(bc_install(NULL));
    CHECK_OK(bc_start());
    CHECK_OK(bc_uninstall());
  }
}

CASES({"install_and_uninstall", install_and_uninstall})
