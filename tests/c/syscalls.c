/* A dispatching thread makes no system call of the library's: strace counts them between two that mark the place. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

#define PAIRS 100000
#define MARKER "getppid("

/* The traced program. Between the first two markers it dispatches; between the last two it makes one call itself. */
static void traced(void) {
  bc_config config = config_of(0);
  config.report_dir = fresh_directory("syscalls");
  install_and_start(&config);
  bc_loop *loop = watched("traced");
  for (unsigned i = 0; i < 1000; i++) { /* the first mark may wake the monitor */
    bc_dispatch_begin(loop, "warm", i);
    bc_dispatch_end(loop);
  }
  syscall(SYS_getppid);
  for (unsigned i = 0; i < PAIRS; i++) {
    bc_dispatch_begin(loop, "outer", i);
    bc_dispatch_begin(loop, "inner", i);
    bc_dispatch_end(loop);
    bc_dispatch_end(loop);
  }
  syscall(SYS_getppid);
  syscall(SYS_getuid);
  syscall(SYS_getppid);
  CHECK_OK(bc_uninstall());
}

/* Lines of the thread that makes the markers, between them. */
static void counted(void) {
  char trace[64], self[512], line[4096];
  snprintf(trace, sizeof trace, "syscalls.%d.trace", (int)getpid());
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  CHECK(length > 0, "%s", strerror(errno));
  self[length] = 0;
  pid_t child = fork();
  CHECK(child >= 0, "%s", strerror(errno));
  if (child == 0) {
    execlp("strace", "strace", "-f", "-qq", "-o", trace, self, "traced", (char *)NULL);
    CHECK(false, "strace cannot be run: %s; install the package strace", strerror(errno));
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);

  FILE *file = fopen(trace, "r");
  CHECK(file != NULL, "%s: %s", trace, strerror(errno));
  long thread = 0;
  unsigned markers = 0, between[4] = {0};
  while (fgets(line, sizeof line, file) != NULL) {
    long tid = strtol(line, NULL, 10);
    if (strstr(line, MARKER) != NULL && (thread == 0 || tid == thread)) {
      thread = tid;
      markers++;
      CHECK(markers <= 3, "%u markers", markers);
    } else if (tid == thread && strstr(line, " resumed>") == NULL) {
      between[markers]++;
      if (markers == 1) {
        fprintf(stderr, "while dispatching: %s", line);
      }
    }
  }
  fclose(file);
  unlink(trace);
  CHECK(markers == 3, "%u markers in %s", markers, trace);
  CHECK(between[2] == 1, "%u calls counted where one was made: the counting is wrong", between[2]);
  printf("%u system calls in %d pairs of dispatches\n", between[1], PAIRS);
  CHECK(between[1] == 0, "%u system calls in %d pairs of dispatches", between[1], PAIRS);
}

CASES({"counted", counted}, {"traced", traced})
