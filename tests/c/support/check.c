#include "../check.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void check_failed(const char *file, int line, const char *condition, const char *format, ...) {
  char figures[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(figures, sizeof figures, format, arguments);
  va_end(arguments);
  fflush(stdout);
  dprintf(STDERR_FILENO, "%s:%d: %s: %s\n", file, line, condition, figures);
  _exit(1);
}

static const char *program;

pid_t start_case(const char *name) {
  pid_t pid = fork();
  CHECK(pid >= 0, "%s", strerror(errno));
  if (pid == 0) {
    execl("/proc/self/exe", program, name, (char *)NULL);
    _exit(127);
  }
  return pid;
}

int run_case(const struct test_case *cases, uint64_t count, int argc, char **argv) {
  program = argv[0];
  for (uint64_t i = 0; i < count; i++) {
    if (argc == 2 && strcmp(argv[1], cases[i].name) == 0) {
      cases[i].run();
      return 0;
    }
  }
  fprintf(stderr, "usage: %s <case>, one of:\n", argv[0]);
  for (uint64_t i = 0; i < count; i++) {
    fprintf(stderr, "  %s\n", cases[i].name);
  }
  return 2;
}

uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void spin_ms(unsigned ms) {
  uint64_t until = now_ns() + ms * 1000000ull;
  while (now_ns() < until) {
  }
}

void sleep_ms(unsigned ms) {
  uint64_t until = now_ns() + ms * 1000000ull;
  struct timespec due = {.tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u)};
  while (now_ns() < until) {
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
  }
}

void pause_ms(unsigned ms) {
  struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
  nanosleep(&time, NULL);
}

unsigned long start_thread(void *(*run)(void *), void *argument) {
  pthread_t thread;
  int error = pthread_create(&thread, NULL, run, argument);
  CHECK(error == 0, "pthread_create: %s", strerror(error));
  return thread;
}

void join_thread(unsigned long thread) {
  int error = pthread_join(thread, NULL);
  CHECK(error == 0, "pthread_join: %s", strerror(error));
}
