/* What every test program uses: one failed check ends the program, with place and figures. */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* CHECK(condition, format, figures...) */
#define CHECK(condition, ...)                                      \
  do {                                                             \
    if (!(condition)) {                                            \
      check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__);   \
    }                                                              \
  } while (0)

/* The call must give this status. */
#define CHECK_STATUS(call, expected)                                                                  \
  do {                                                                                                \
    bc_status check_status = (call);                                                                  \
    CHECK(check_status == (expected), "%s gives %s, not %s", #call, bc_status_str(check_status),      \
          bc_status_str(expected));                                                                   \
  } while (0)
#define CHECK_OK(call) CHECK_STATUS(call, BC_OK)

/* Waits until the condition holds; fails after so many milliseconds, which are generous because it costs nothing. */
#define WAIT_FOR(condition, deadline_ms)                                                             \
  do {                                                                                               \
    uint64_t wait_until = now_ns() + (uint64_t)(deadline_ms)*1000000u;                               \
    while (!(condition)) {                                                                           \
      CHECK(now_ns() < wait_until, "still not so after %d ms: %s", (int)(deadline_ms), #condition);  \
      pause_ms(1);                                                                                   \
    }                                                                                                \
  } while (0)

void check_failed(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((noreturn, format(printf, 4, 5)));

/* A function that the compiler leaves as it is, so that stacks show it under its name. */
#ifdef __clang__
#define STAYS __attribute__((noinline, optnone))
#else
#define STAYS __attribute__((noinline, noipa))
#endif

/* One scenario; each runs in a process of its own. */
struct test_case {
  const char *name;
  void (*run)(void);
};

/* CASES({"name", function}, ...): the program's main. It runs the case that its first argument names. */
#define CASES(...)                                                            \
  int main(int argc, char **argv) {                                           \
    static const struct test_case cases[] = {__VA_ARGS__};                    \
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);       \
  }

int run_case(const struct test_case *cases, uint64_t count, int argc, char **argv);

/* Runs another case of the same program in a process of its own, executed anew, so that it has nothing of this one but the
 * environment. */
pid_t start_case(const char *name);

/* CLOCK_MONOTONIC. */
uint64_t now_ns(void);
/* Blocks the calling thread: on the processor, or asleep however often it is woken. */
void spin_ms(unsigned ms);
void sleep_ms(unsigned ms);
/* A short sleep between two looks at a condition. */
void pause_ms(unsigned ms);
/* A thread that must start. */
unsigned long start_thread(void *(*run)(void *), void *argument);
void join_thread(unsigned long thread);

#endif
