/* A program that uninstalls at its very end, when the library has done its part at exit: nobody is told any more, so nothing
 * is waited for. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"

/* An uninstall waits two seconds for what does not come. */
#define QUICK_MS 1000
#define ATTEMPTS 5

struct result {
  atomic_uint status, took_ms;
};
static struct result *result;
static pid_t ends;

/* Runs after the handlers of atexit, and after the library's own. */
__attribute__((destructor)) static void uninstall(void) {
  if (result != NULL && ends == getpid()) {
    uint64_t before = now_ns();
    atomic_store(&result->status, bc_uninstall());
    atomic_store(&result->took_ms, (unsigned)((now_ns() - before) / 1000000));
  }
}

static void quick(void) {
  result = mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(result != MAP_FAILED, "mmap");
  unsigned least_ms = UINT32_MAX;
  for (int i = 0; i < ATTEMPTS && least_ms > QUICK_MS; i++) {
    atomic_store(&result->status, BC_ERROR_INTERNAL);
    pid_t child = fork();
    if (child == 0) {
      ends = getpid();
      bc_config config = config_of(20);
      install_and_start(&config);
      bc_loop *loop = watched("ends");
      bc_dispatch_begin(loop, "open", 1);
      sleep_ms(60);
      exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with %x", (unsigned)status);
    CHECK_STATUS(atomic_load(&result->status), BC_OK);
    least_ms = atomic_load(&result->took_ms) < least_ms ? atomic_load(&result->took_ms) : least_ms;
  }
  CHECK(least_ms <= QUICK_MS, "at best it took %u ms", least_ms);
}

CASES({"quick", quick})
