/* Children of fork, made at bad moments. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

static atomic_bool inside, released, ending;

static void child_succeeds(pid_t child) {
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child, "fork");
  CHECK(!WIFSIGNALED(status), "the child was ended by signal %d", WTERMSIG(status));
  CHECK(WEXITSTATUS(status) == 0, "the child says %d", WEXITSTATUS(status));
}

static void slow_log(bc_log_level level, const char *message, void *user_data) {
  (void)level, (void)message, (void)user_data;
  atomic_store(&inside, true);
  while (!atomic_load(&released)) {
    pause_ms(1);
  }
}

/* A thread of the parent's was inside the log handler: it does not exist in the child, which waits for nobody. */
static void log_handler_running(void) {
  CHECK_OK(bc_set_log_handler(slow_log, NULL));
  bc_config config = config_of(50);
  install_and_start(&config);
  blocking_dispatch(watched("parent"), "work", 1, 100);
  WAIT_FOR(atomic_load(&inside), 10000);
  pid_t child = fork();
  if (child == 0) {
    alarm(5);
    bc_set_log_handler(NULL, NULL);
    _exit(0);
  }
  child_succeeds(child);
  atomic_store(&released, true);
  CHECK_OK(bc_uninstall());
}

static void *install(void *argument) {
  while (!atomic_load(&ending)) {
    bc_install(NULL);
    bc_uninstall();
  }
  return argument;
}

/* A thread of the parent's was installing or uninstalling. */
static void parent_installing(void) {
  unsigned long other = start_thread(install, NULL);
  for (int i = 0; i < 100; i++) {
    pid_t child = fork();
    if (child == 0) {
      alarm(5);
      _exit((int)bc_install(NULL));
    }
    child_succeeds(child);
  }
  atomic_store(&ending, true);
  join_thread(other);
}

/* A child that installs for itself and uninstalls has nothing of its parent's installation left. */
static void child_leaves_nothing(void) {
  unsigned before = descriptors();
  bc_config config = config_of(50);
  install_and_start(&config);
  blocking_dispatch(watched("parent"), "work", 1, 100);
  flush();
  pid_t child = fork();
  if (child == 0) {
    CHECK_OK(bc_install(NULL));
    CHECK_OK(bc_start());
    CHECK_OK(bc_stop());
    CHECK_OK(bc_uninstall());
    struct sigaction action;
    sigaction(SIGRTMAX, NULL, &action);
    CHECK(action.sa_handler == SIG_DFL, "the parent's handler is left");
    CHECK(descriptors() == before, "%u descriptors, %u before", descriptors(), before);
    _exit(0);
  }
  child_succeeds(child);
  CHECK_OK(bc_uninstall());
}

/* What `executed_afterwards` executes; nothing by itself. */
static void unmasks(void) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A signal that a thread had blocked when it was sampled would be pending in the program that is executed, and end it. */
static void executed_afterwards(void) {
  pid_t child = fork();
  if (child == 0) {
    bc_config config = config_of(50);
    install_and_start(&config);
    bc_loop *loop = watched("masked");
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    blocking_dispatch(loop, "work", 1, 150);
    execl("/proc/self/exe", "test_forks", "unmasks", NULL);
    _exit(2);
  }
  child_succeeds(child);
}

CASES({"log_handler_running", log_handler_running}, {"parent_installing", parent_installing},
      {"child_leaves_nothing", child_leaves_nothing},
      {"executed_afterwards", executed_afterwards}, {"unmasks", unmasks})
