/* A library that contains blockcanary is unloaded: nothing of it runs afterwards, and nothing of it is left. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../check.h"
#include "../support/procfs.h"
#include "canary.h"

#define ROUNDS 100
#define THREADS 4

static const struct canary *_Atomic canary;
static struct mappings before, after;

static bc_health health_now(void) {
  bc_health health = {.struct_size = sizeof health};
  CHECK(canary->health_get(&health) == BC_OK, "health");
  return health;
}

static void *bring_in(bc_sampling_method method) {
  void *library = dlopen(INSIDE, RTLD_NOW | RTLD_LOCAL);
  CHECK(library != NULL, "%s", dlerror());
  canary = dlsym(library, "canary");
  CHECK(canary != NULL, "%s", dlerror());
  bc_config config;
  canary->config_init(&config, sizeof config);
  config.block_threshold_ms = 2;
  config.sample_interval_ms = 1;
  config.report_ongoing = BC_OFF;
  config.sampling_method = method;
  CHECK(canary->install(&config) == BC_OK && canary->start() == BC_OK, "install");
  return library;
}

static void take_out(void *library) {
  CHECK(canary->stop() == BC_OK, "stop");
  bc_status status = canary->uninstall();
  CHECK(status == BC_OK, "uninstall gives %u", status);
  canary = NULL;
  CHECK(dlclose(library) == 0, "dlclose");
  mappings_read(&after);
  CHECK(strstr(after.text, "libinside.so") == NULL, "the library is still there");
}

/* Blocks by turns of running and sleeping, in a dispatch that the host ends or leaves open. */
static void be_late(unsigned ms) {
  uint64_t until = now_ns() + ms * 1000000ull;
  while (now_ns() < until) {
    spin_ms(2);
    pause_ms(1);
  }
}

static void rounds(void) {
  uint64_t signals = 0, samples = 0;
  unsigned descriptors_before = 0, threads_before = 0;
  for (int round = 0; round < ROUNDS; round++) {
    void *library = bring_in(BC_SAMPLING_AUTO);
    bc_loop *loop = NULL;
    CHECK(canary->watch("main", &loop) == BC_OK, "watch");
    canary->begin(loop, "late", 1);
    be_late(20);
    uint64_t limit = now_ns() + 20000000000ull;
    while (health_now().signals_sent == 0 || health_now().samples_taken < 5) {
      CHECK(now_ns() < limit, "not sampled in round %d", round);
      spin_ms(10);
    }
    if (round % 2 == 0) {
      canary->end(loop);
    }
    signals += health_now().signals_sent;
    samples += health_now().samples_taken;
    take_out(library);
    if (round == 4) {
      mappings_read(&before);
      descriptors_before = descriptors();
      threads_before = threads();
    }
  }
  mappings_read(&after);
  printf("%d rounds: %llu samples, %llu signals; %u mappings, %u before; %u descriptors, %u before\n", ROUNDS,
         (unsigned long long)samples, (unsigned long long)signals, after.lines, before.lines, descriptors(),
         descriptors_before);
  CHECK(after.lines <= before.lines && descriptors() == descriptors_before && threads() == threads_before, "left over");
}

/* Who unloads it without a word: threads, signal and descriptors go with it all the same, and blocks that are open end. */
static void without_uninstall(void) {
  unsigned descriptors_before = 0, threads_before = 0;
  for (int round = 0; round < ROUNDS; round++) {
    void *library = bring_in(BC_SAMPLING_AUTO);
    bc_loop *loop = NULL;
    CHECK(canary->watch("main", &loop) == BC_OK, "watch");
    canary->begin(loop, "late", 1);
    be_late(10);
    canary = NULL;
    CHECK(dlclose(library) == 0, "dlclose");
    mappings_read(&after);
    CHECK(strstr(after.text, "libinside.so") == NULL, "the library is still there");
    if (round == 4) {
      mappings_read(&before);
      descriptors_before = descriptors();
      threads_before = threads();
    }
  }
  for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
    struct sigaction action;
    CHECK(sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_DFL, "signal %d has a handler", number);
  }
  CHECK(after.lines <= before.lines && descriptors() == descriptors_before && threads() == threads_before,
        "%u mappings, %u before; %u descriptors, %u before; %u threads, %u before", after.lines, before.lines,
        descriptors(), descriptors_before, threads(), threads_before);
}

static atomic_bool stop;
static atomic_int round_now, joined_in;
static atomic_ullong work;

/* Joins in each round, and goes on working while the library is taken away. */
static void *go_on(void *argument) {
  int seen = 0;
  uintptr_t number = (uintptr_t)argument;
  while (!stop) {
    if (round_now != seen) {
      seen = round_now;
      bc_loop *loop = NULL;
      CHECK(canary->watch("goes on", &loop) == BC_OK, "watch");
      canary->begin(loop, "open for ever", number);
      joined_in++;
    }
    if (number % 2 == 0) {
      be_late(5);
    } else {
      spin_ms(1);
    }
    work++;
  }
  return NULL;
}

static void going_on(bc_sampling_method method) {
  unsigned long workers[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) {
    workers[i] = start_thread(go_on, (void *)i);
  }
  uint64_t signals = 0, unanswered = 0;
  for (int round = 1; round <= ROUNDS; round++) {
    void *library = bring_in(method);
    joined_in = 0;
    round_now = round;
    WAIT_FOR(joined_in == THREADS, 10000);
    WAIT_FOR(health_now().signals_sent >= 2, 20000);
    signals += health_now().signals_sent;
    unanswered += health_now().samples_unanswered;
    take_out(library);
    uint64_t now = work;
    WAIT_FOR(work > now, 10000);
  }
  stop = true;
  for (int i = 0; i < THREADS; i++) {
    join_thread(workers[i]);
  }
  printf("%d rounds while %d threads go on: %llu signals, %llu unanswered\n", ROUNDS, THREADS,
         (unsigned long long)signals, (unsigned long long)unanswered);
}

static void while_threads_go_on(void) {
  going_on(BC_SAMPLING_AUTO);
}

static void while_threads_are_signalled(void) {
  going_on(BC_SAMPLING_SIGNAL);
}

/* No signal is left pending for a thread that masks them, for whoever unmasks it later. */
static void pending_signal(void) {
  sigset_t all, mask;
  sigfillset(&all);
  for (int round = 0; round < 10; round++) {
    void *library = bring_in(BC_SAMPLING_SIGNAL);
    bc_loop *loop = NULL;
    CHECK(canary->watch("masked", &loop) == BC_OK, "watch");
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    canary->begin(loop, "masked", 1);
    spin_ms(60);
    sigset_t pending;
    sigpending(&pending);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
      CHECK(sigismember(&pending, number) == 0, "signal %d is pending", number);
    }
    take_out(library);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    spin_ms(2);
  }
}

static atomic_uint was_pending;

/* Masks all signals half of the time, so that some that are sent stay pending for a while. */
static void *mask_and_unmask(void *unused) {
  sigset_t all, mask, pending;
  sigfillset(&all);
  int seen = 0;
  while (!stop) {
    if (round_now != seen) {
      seen = round_now;
      bc_loop *loop = NULL;
      CHECK(canary->watch("masks", &loop) == BC_OK, "watch");
      canary->begin(loop, "open for ever", 1);
      joined_in++;
    }
    uint64_t until = now_ns() + 200000;
    while (now_ns() < until) {
    }
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    until = now_ns() + 200000;
    while (now_ns() < until) {
    }
    sigpending(&pending);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
      was_pending += sigismember(&pending, number) == 1;
    }
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
  }
  return unused;
}

/* A signal that is pending for a thread when the library goes does not end the process later. */
static void masked_now_and_then(void) {
  unsigned long worker = start_thread(mask_and_unmask, NULL);
  uint64_t signals = 0;
  for (int round = 1; round <= ROUNDS; round++) {
    void *library = bring_in(BC_SAMPLING_SIGNAL);
    joined_in = 0;
    round_now = round;
    WAIT_FOR(joined_in == 1, 10000);
    WAIT_FOR(health_now().signals_sent >= 1, 20000);
    signals += health_now().signals_sent;
    take_out(library);
  }
  stop = true;
  join_thread(worker);
  printf("%d rounds: %llu signals, %u times one was pending for a while\n", ROUNDS, (unsigned long long)signals,
         was_pending);
}

CASES({"rounds", rounds}, {"without_uninstall", without_uninstall}, {"while_threads_go_on", while_threads_go_on},
      {"while_threads_are_signalled", while_threads_are_signalled}, {"pending_signal", pending_signal},
      {"masked_now_and_then", masked_now_and_then})
