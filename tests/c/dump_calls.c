/* Calls of bc_threads_dump: in every state, on every kind of descriptor, from every callback. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/crowd.h"
#include "support/dump.h"
#include "support/procfs.h"

static struct dump dump;

static bool any_handler(void) {
  for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL) {
      return true;
    }
  }
  return false;
}

static bool spinner_is_caught(void) {
  return dump_has(dump_until_caught(&dump, crowd[0].tid), spins_chain, 1);
}

/* It is asked for: whatever the state, it works, and the signal is given back at once. */
static void when_not_watching(void) {
  CHECK_STATUS(bc_threads_dump(1), BC_ERROR_INVALID_STATE);
  bc_config config = config_of(60000);
  CHECK_OK(bc_install(&config));
  crowd_of(SPINNING, 1);
  CHECK(spinner_is_caught(), "not before the start");
  WAIT_FOR(!any_handler(), 10000);
  CHECK_OK(bc_start());
  CHECK_OK(bc_pause());
  CHECK(spinner_is_caught(), "not while paused");
  CHECK(any_handler(), "the pause has given the signal back");
  CHECK_OK(bc_stop());
  WAIT_FOR(!any_handler(), 10000);
  CHECK(spinner_is_caught(), "not while stopped");
  WAIT_FOR(!any_handler(), 10000);
  CHECK_OK(bc_start());
  CHECK(spinner_is_caught(), "not after another start");
  CHECK(any_handler(), "the dump has given the signal back while watching is on");
  crowd_end();
  CHECK_OK(bc_uninstall());
  CHECK_STATUS(bc_threads_dump(1), BC_ERROR_INVALID_STATE);
}

static unsigned with_stack(enum doing doing) {
  unsigned count = 0;
  for (unsigned i = 0; i < crowd_count; i++) {
    const struct dumped *found = dump_find(&dump, crowd[i].tid);
    CHECK(found != NULL, "thread %u is missing", i);
    count += crowd[i].doing == doing && found->frames > 0;
  }
  return count;
}

/* What the configuration says of signals and stacks holds for dumps; a wait is never cut, whatever it says. */
static void methods(void) {
  crowd_of(IN_FUTEX, 5);
  crowd_of(SPINNING, 1);
  crowd_of(IN_TIMED_WAITS, 5);
  const bc_sampling_method all[] = {BC_SAMPLING_NO_SIGNAL, BC_SAMPLING_SIGNAL, BC_SAMPLING_OFF};
  for (unsigned i = 0; i < 3; i++) {
    bc_config config = config_of(60000);
    config.sampling_method = all[i];
    install_and_start(&config);
    unsigned waiting = 0, running = 0;
    uint64_t until = now_ns() + 60000000000ull;
    for (unsigned k = 0; k < 20 || (all[i] == BC_SAMPLING_SIGNAL && running == 0 && now_ns() < until); k++) {
      dump_now(&dump, NULL);
      waiting += with_stack(IN_FUTEX);
      running += with_stack(SPINNING);
      CHECK(waiting == (all[i] == BC_SAMPLING_OFF ? 0 : 5 * (k + 1)), "%u stacks of waiting ones", waiting);
      CHECK(strstr(dump_find(&dump, crowd[0].tid)->about, "S (sleeping) in futex") != NULL, "%s",
            dump_find(&dump, crowd[0].tid)->about);
    }
    bc_health end = health();
    printf("method %d: %u stacks of running ones, %d signals, %u timed waits, %u cut\n", (int)all[i], running,
           (int)end.signals_sent, atomic_load(&crowd_waits), atomic_load(&crowd_waits_cut));
    CHECK((running > 0) == (all[i] == BC_SAMPLING_SIGNAL), "%u stacks of running ones", running);
    CHECK(all[i] == BC_SAMPLING_SIGNAL || end.signals_sent == 0, "%d signals", (int)end.signals_sent);
    CHECK(atomic_load(&crowd_waits_cut) == 0 && end.waits_cut == 0, "waits were cut short");
    CHECK_OK(bc_uninstall());
  }
  crowd_end();
}

static atomic_uint errors_logged;
static char last_error[512];
static void log_errors(bc_log_level level, const char *message, void *user_data) {
  (void)user_data;
  if (level == BC_LOG_ERROR) {
    snprintf(last_error, sizeof last_error, "%s", message);
    atomic_fetch_add(&errors_logged, 1);
  }
}

static void refused(int fd, bc_status expected, const char *words) {
  unsigned before = atomic_load(&errors_logged);
  CHECK_STATUS(bc_threads_dump(fd), expected);
  CHECK(atomic_load(&errors_logged) == before + 1 && strstr(last_error, words) != NULL, "%s", last_error);
}

static void *read_slowly(void *argument) {
  int fd = *(int *)argument;
  static char text[1 << 20];
  size_t used = 0;
  ssize_t count;
  while ((count = read(fd, text + used, 100)) > 0) {
    used += (size_t)count;
  }
  text[used] = 0;
  dump_parse(&dump, text);
  return NULL;
}

/* Whatever the descriptor is, the program goes on. */
static void descriptors_of_all_kinds(void) {
  CHECK_OK(bc_set_log_handler(log_errors, NULL));
  bc_config config = config_of(60000);
  unsigned before = descriptors();
  install_and_start(&config);
  crowd_of(IN_FUTEX, 20);
  refused(-1, BC_ERROR_INVALID_ARGUMENT, "fd: -1");
  int closed = dup(1);
  close(closed);
  refused(closed, BC_ERROR_IO, "not open for writing");
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  refused(null, BC_ERROR_IO, "not open for writing");
  close(null);
  int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  refused(full, BC_ERROR_IO, "no room");
  close(full);

  /* SIGPIPE has its default action: it would end the program. */
  int ends[2];
  CHECK(pipe(ends) == 0, "pipe");
  close(ends[0]);
  refused(ends[1], BC_ERROR_IO, "nobody reads it");
  sigset_t pending;
  CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 0, "a signal is left behind");
  sigset_t mask;
  CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0 && sigismember(&mask, SIGPIPE) == 0, "the mask is changed");
  close(ends[1]);

  /* Read in small pieces, and the writing end does not block. */
  CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0 && fcntl(ends[1], F_SETPIPE_SZ, 4096) > 0, "pipe");
  unsigned long reader = start_thread(read_slowly, &ends[0]);
  CHECK_OK(bc_threads_dump(ends[1]));
  close(ends[1]);
  join_thread(reader);
  close(ends[0]);
  CHECK(dump.threads >= 24 && dump.threads == dump.announced, "%u threads", dump.threads);

  /* Nobody reads, and the pipe is full. */
  CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETPIPE_SZ, 4096) > 0, "pipe");
  refused(ends[1], BC_ERROR_TIMEOUT, "not done in time");
  close(ends[0]);
  close(ends[1]);
  dump_now(&dump, NULL);
  CHECK(dump.threads == threads(), "%u of %u threads", dump.threads, threads());
  crowd_end();
  CHECK_OK(bc_uninstall());
  CHECK(descriptors() == before, "%u descriptors, %u before", descriptors(), before);
}

#define SMALL_STACK (96 * 1024)
static unsigned char small_stack[SMALL_STACK] __attribute__((aligned(4096)));

static void *dump_on_small_stack(void *argument) {
  CHECK_OK(bc_threads_dump(*(int *)argument));
  return NULL;
}

/* The calling thread needs no more stack than is said. */
static void on_small_stack(void) {
  bc_config config = config_of(60000);
  install_and_start(&config);
  crowd_of(IN_FUTEX, 10);
  int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  memset(small_stack, 0xa5, sizeof small_stack);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  CHECK(pthread_attr_setstack(&attributes, small_stack, sizeof small_stack) == 0, "no stack");
  pthread_t thread;
  CHECK(pthread_create(&thread, &attributes, dump_on_small_stack, &null) == 0, "no thread");
  join_thread(thread);
  unsigned unused = 0;
  while (unused < sizeof small_stack && small_stack[unused] == 0xa5) {
    unused++;
  }
  printf("at most %u KiB of stack\n", (SMALL_STACK - unused + 1023) / 1024);
  CHECK(SMALL_STACK - unused <= 32 * 1024, "%u bytes", SMALL_STACK - unused);
  close(null);
  crowd_end();
  CHECK_OK(bc_uninstall());
}

/* Longer than a file may be: a status, and not the signal that ends a program; nor is any left. */
static void beyond_file_limit(void) {
  install_and_start(&(bc_config){.struct_size = sizeof(bc_config)});
  crowd_of(IN_FUTEX, 50);
  struct rlimit before, limit;
  CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0, "%s", strerror(errno));
  limit = before;
  limit.rlim_cur = 4096;
  int file = open("limited.txt", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  CHECK(file >= 0 && setrlimit(RLIMIT_FSIZE, &limit) == 0, "%s", strerror(errno));
  CHECK_STATUS(bc_threads_dump(file), BC_ERROR_IO);
  sigset_t pending, blocked;
  CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 0, "SIGXFSZ waits");
  CHECK(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, SIGXFSZ) == 0 &&
            sigismember(&blocked, SIGPIPE) == 0,
        "a signal stays blocked");
  CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0 && ftruncate(file, 0) == 0, "%s", strerror(errno));
  CHECK_OK(bc_threads_dump(file));
  close(file);
  CHECK(unlink("limited.txt") == 0, "%s", strerror(errno));
  crowd_end();
  CHECK_OK(bc_uninstall());
}

static void *dump_into_full_pipe(void *argument) {
  bc_status status = bc_threads_dump(*(int *)argument);
  CHECK(status == BC_ERROR_INVALID_STATE, "%s", bc_status_str(status));
  return NULL;
}

/* An uninstall does not wait for a dump that nobody reads. */
static void uninstalled_meanwhile(void) {
  bc_config config = config_of(60000);
  install_and_start(&config);
  crowd_of(IN_FUTEX, 50);
  int ends[2];
  CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETPIPE_SZ, 4096) > 0, "pipe");
  unsigned long dumping = start_thread(dump_into_full_pipe, &ends[1]);
  struct pollfd place = {.fd = ends[0], .events = POLLIN};
  CHECK(poll(&place, 1, 60000) == 1, "nothing is written");
  CHECK_OK(bc_uninstall());
  join_thread(dumping);
  crowd_end();
}

/* An uninstall has begun: a message that comes on its way may find nothing installed any more. */
static atomic_bool is_leaving;
static atomic_uint dumped_in_listener, dumped_in_filter, dumped_in_log_handler;

static void dump_inside(atomic_uint *count) {
  int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  bool was_leaving = atomic_load(&is_leaving);
  bc_status status = bc_threads_dump(fd);
  was_leaving |= atomic_load(&is_leaving);
  CHECK(status == BC_OK || (was_leaving && status == BC_ERROR_INVALID_STATE), "%s", bc_status_str(status));
  close(fd);
  atomic_fetch_add(count, 1);
}

static void dumping_listener(const bc_block *block, void *user_data) {
  (void)block;
  (void)user_data;
  dump_inside(&dumped_in_listener);
}

static bool dumping_filter(const bc_block *block, void *user_data) {
  (void)block;
  (void)user_data;
  dump_inside(&dumped_in_filter);
  return true;
}

static atomic_bool end_is_told;
static void dumping_log_handler(bc_log_level level, const char *message, void *user_data) {
  (void)level;
  (void)user_data;
  dump_inside(&dumped_in_log_handler);
  if (strstr(message, "monitor_duration_s") != NULL) {
    atomic_store(&end_is_told, true);
  }
}

/* From every callback; one of the messages is about what the monitor has done, who takes the stacks. */
static void from_callbacks(void) {
  bc_config config = config_of(50);
  config.monitor_duration_s = 1;
  CHECK_OK(bc_install(&config));
  CHECK_OK(bc_set_listener(dumping_listener, NULL));
  CHECK_OK(bc_set_filter(dumping_filter, NULL));
  CHECK_OK(bc_set_log_handler(dumping_log_handler, NULL));
  CHECK_OK(bc_start());
  blocking_dispatch(watched("loop"), "block", 1, 100);
  flush();
  WAIT_FOR(atomic_load(&end_is_told), 60000);
  printf("in listeners %u, in filters %u, in log handlers %u\n", atomic_load(&dumped_in_listener),
         atomic_load(&dumped_in_filter), atomic_load(&dumped_in_log_handler));
  CHECK(atomic_load(&dumped_in_listener) >= 1 && atomic_load(&dumped_in_filter) == 1 &&
            atomic_load(&dumped_in_log_handler) >= 2,
        "not from all");
  atomic_store(&is_leaving, true);
  CHECK_OK(bc_uninstall());
}

static atomic_uint dumps;
static void *dump_again_and_again(void *argument) {
  int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  while (!atomic_load(&crowd_over)) {
    CHECK_OK(bc_threads_dump(fd));
    atomic_fetch_add(&dumps, 1);
  }
  close(fd);
  return argument;
}

/* Three threads dump all the time, others run without end: blocks are found and sampled all the same. */
static void blocks_meanwhile(void) {
  bc_config config = config_of(50);
  config.sample_interval_ms = 10;
  install_and_start(&config);
  crowd_of(IN_FUTEX, 10);
  crowd_of(SPINNING, 3);
  unsigned long dumping[3];
  for (unsigned i = 0; i < 3; i++) {
    dumping[i] = start_thread(dump_again_and_again, NULL);
  }
  bc_loop *loop = watched("loop");
  blocks_expect("blocks_meanwhile", 8);
  uint64_t worst_ns = 0;
  unsigned samples = 0, with_stack = 0, naming = 0;
  for (unsigned n = 1; n <= 10; n++) {
    bc_dispatch_begin(loop, "block", n);
    uint64_t begin = now_ns();
    sleep_ms(100);
    WAIT_FOR(blocks_tagged(BC_BLOCK_ONGOING, n) == 1, 60000);
    worst_ns = now_ns() - begin > worst_ns ? now_ns() - begin : worst_ns;
    sleep_ms(100);
    bc_dispatch_end(loop);
  }
  WAIT_FOR(atomic_load(&dumps) >= 6, 60000);
  atomic_store(&crowd_over, true);
  for (unsigned i = 0; i < 3; i++) {
    join_thread(dumping[i]);
  }
  flush();
  for (unsigned n = 1; n <= 10; n++) {
    CHECK(blocks_tagged(BC_BLOCK_ENDED, n) == 1, "block %u", n);
    const struct told *told = blocks_get(BC_BLOCK_ENDED, n);
    samples += told->samples;
    with_stack += told->samples_with_stack;
    naming += told->samples_naming;
  }
  printf("%u dumps meanwhile; blocks told after at most %.1f ms; %u samples, %u with stack, %u name the function\n",
         atomic_load(&dumps), worst_ns / 1e6, samples, with_stack, naming);
  CHECK(samples >= 10 * 5 && naming == with_stack && with_stack * 10 >= samples * 9, "%u samples", samples);
  crowd_end();
  CHECK_OK(bc_uninstall());
}

CASES({"when_not_watching", when_not_watching}, {"methods", methods}, {"descriptors", descriptors_of_all_kinds},
      {"beyond_file_limit", beyond_file_limit}, {"uninstalled_meanwhile", uninstalled_meanwhile}, {"on_small_stack", on_small_stack},
      {"from_callbacks", from_callbacks}, {"blocks_meanwhile", blocks_meanwhile})
