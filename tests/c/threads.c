/* All threads with their stacks: when the program asks for them, and with a block. */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/dump.h"
#include "support/json.h"
#include "support/load.h"
#include "support/procfs.h"

static struct dump dump;
static atomic_bool over;
static atomic_uint ready;
static atomic_uint timed_waits, waits_cut;
static sem_t never;
static int never_pipe[2];

static int32_t tid_of_self(void) { return (int32_t)syscall(SYS_gettid); }

/* Chains that are not exported, of a thread that is watched and of one that is not. */
static const char *const quiet_chain[] = {"quiet_inner", "quiet_middle", "quiet_outer"};
static const char *const loop_chain[] = {"loop_inner", "loop_outer"};
void quiet_inner(void);
void quiet_middle(void);
void quiet_outer(void);
void loop_inner(void);
void loop_outer(void);
void spins_outer(void);
void asks_for_dump(uint64_t *took_ns);

STAYS void quiet_inner(void) {
  while (!atomic_load(&over)) {
    sem_wait(&never);
  }
}
STAYS void quiet_middle(void) {
  quiet_inner();
  __asm__ volatile("");
}
STAYS void quiet_outer(void) {
  quiet_middle();
  __asm__ volatile("");
}
STAYS void loop_inner(void) {
  while (!atomic_load(&over)) {
    sem_wait(&never);
  }
}
STAYS void loop_outer(void) {
  loop_inner();
  __asm__ volatile("");
}
STAYS void spins_outer(void) {
  for (volatile unsigned n = 0; !atomic_load_explicit(&over, memory_order_relaxed); n++) {
  }
}
STAYS void asks_for_dump(uint64_t *took_ns) {
  dump_now(&dump, took_ns);
  __asm__ volatile("");
}

/* What threads do, and what a dump must say of it. */
static void in_futex(void) { quiet_outer(); }

static void in_read(void) {
  char byte;
  CHECK(read(never_pipe[0], &byte, 1) == 0, "something was written");
}

static void in_poll(void) {
  struct pollfd place = {.fd = never_pipe[0], .events = POLLIN};
  poll(&place, 1, -1);
}

/* Waits with a time limit that a signal would cut short. */
static void in_timed_waits(void) {
  while (!atomic_load(&over)) {
    struct timespec time = {.tv_nsec = 20000000};
    uint64_t begin = now_ns();
    int result = nanosleep(&time, NULL);
    atomic_fetch_add(&timed_waits, 1);
    atomic_fetch_add(&waits_cut, result != 0 || now_ns() - begin < 20000000);
  }
}

static void spinning(void) { spins_outer(); }

static void masked(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  spins_outer();
}

static int hold(struct dl_phdr_info *info, size_t size, void *data) {
  (void)info;
  (void)size;
  (void)data;
  quiet_outer();
  return 1;
}

static void with_loaders_lock(void) { dl_iterate_phdr(hold, NULL); }

static const struct kind {
  void (*run)(void);
  const char *about; /* its line begins with one of these */
  const char *or_else;
  bool has_stack, runs;
  unsigned count;
} kinds[] = {
    {in_futex, "state: S (sleeping) in futex", "state: S (sleeping) in futex", true, false, 20},
    {in_read, "state: S (sleeping) in read", "state: S (sleeping) in read", true, false, 10},
    {in_poll, "state: S (sleeping) in p", "state: S (sleeping) in p", true, false, 10},
    {in_timed_waits, "state: S (sleeping) in ", "state: R (running)", false, false, 6},
    {spinning, "state: R (running)", "state: R (running)", false, true, 2},
    {masked, "state: R (running)", "state: R (running)", false, true, 1},
    {with_loaders_lock, "state: S (sleeping) in futex", "state: S (sleeping) in futex", true, false, 1},
};
#define KINDS (sizeof kinds / sizeof kinds[0])
#define MOST_THREADS 2000

static struct running {
  const struct kind *kind;
  char name[16];
  int32_t tid;
  unsigned long thread;
  bool was_caught;
} running[MOST_THREADS];
static unsigned running_count;

static void *run(void *argument) {
  struct running *self = argument;
  self->tid = tid_of_self();
  prctl(PR_SET_NAME, self->name);
  atomic_fetch_add(&ready, 1);
  self->kind->run();
  return NULL;
}

static unsigned caught_at_all(void) {
  unsigned caught = 0;
  for (unsigned i = 0; i < running_count; i++) {
    caught += running[i].was_caught;
  }
  return caught;
}

static void start_one(const struct kind *kind, const char *name) {
  CHECK(running_count < MOST_THREADS, "too many");
  struct running *one = &running[running_count++];
  one->kind = kind;
  snprintf(one->name, sizeof one->name, "%s", name);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 * 1024);
  pthread_t thread;
  CHECK(pthread_create(&thread, &attributes, run, one) == 0, "thread %u", running_count);
  one->thread = thread;
}

static void start_many(unsigned count, const struct kind *kind) {
  for (unsigned i = 0; i < count; i++) {
    start_one(kind, "one of many");
  }
}

/* The watched one; it blocks nothing, since its dispatch is allowed to take long. */
static int32_t loop_tid;
static void *loop_thread(void *argument) {
  prctl(PR_SET_NAME, "loop-thread");
  bc_loop *loop = watched(argument);
  CHECK_OK(bc_loop_set_threshold(loop, 60000));
  bc_dispatch_begin(loop, "all along", 1);
  loop_tid = tid_of_self();
  atomic_fetch_add(&ready, 1);
  loop_outer();
  bc_dispatch_end(loop);
  return NULL;
}
static unsigned long loop_of_test;

static bool is_asleep(int32_t tid) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
  read_whole(path, text, sizeof text);
  const char *state = strrchr(text, ')');
  return state != NULL && state[2] == 'S';
}

static void prepare(void) {
  CHECK(sem_init(&never, 0, 0) == 0 && pipe(never_pipe) == 0, "nothing to wait for");
}

/* All threads are where they will stay. */
static void settle(void) {
  WAIT_FOR(atomic_load(&ready) == running_count + (loop_of_test != 0), 60000);
  for (unsigned i = 0; i < running_count; i++) {
    WAIT_FOR(running[i].kind->runs || running[i].kind->run == in_timed_waits || is_asleep(running[i].tid), 60000);
  }
  WAIT_FOR(loop_of_test == 0 || is_asleep(loop_tid), 60000);
}

static void start_all(void) {
  prepare();
  loop_of_test = start_thread(loop_thread, "the loop");
  for (unsigned k = 0; k < KINDS; k++) {
    for (unsigned i = 0; i < kinds[k].count; i++) {
      start_one(&kinds[k], i % 2 == 0 ? "plain" : "x) R 1\n#00 pc");
    }
  }
  settle();
}

static void end_all(void) {
  atomic_store(&over, true);
  close(never_pipe[1]);
  for (unsigned i = 0; i < running_count + 2; i++) {
    sem_post(&never);
  }
  for (unsigned i = 0; i < running_count; i++) {
    join_thread(running[i].thread);
  }
  if (loop_of_test != 0) {
    join_thread(loop_of_test);
  }
}

/* All are there, with what must be known of each. */
static void check_all(void) {
  for (unsigned i = 0; i < running_count; i++) {
    struct running *one = &running[i];
    const struct kind *kind = one->kind;
    const struct dumped *found = dump_find(&dump, one->tid);
    CHECK(found != NULL, "thread %u (%s) is missing", i, kind->about);
    CHECK(strcmp(found->name, strchr(one->name, '\n') == NULL ? one->name : "x) R 1?#00 pc") == 0, "%s", found->name);
    CHECK(strncmp(found->about, kind->about, strlen(kind->about)) == 0 ||
              strncmp(found->about, kind->or_else, strlen(kind->or_else)) == 0,
          "%s, not %s", found->about, kind->about);
    CHECK(strstr(found->about, "watched") == NULL, "%s", found->about);
    CHECK(!kind->has_stack || found->frames >= 3, "%u frames of a thread with %s", found->frames, found->about);
    if (kind->run == in_futex || kind->run == with_loaders_lock) {
      CHECK(dump_has(found, quiet_chain, 3), "%.*s", (int)(found->end - found->begin), found->begin);
    }
    if (kind->run == spinning && found->frames > 0) {
      CHECK(dump_has(found, (const char *const[]){"spins_outer"}, 1), "%.*s", (int)(found->end - found->begin),
            found->begin);
    }
    CHECK(kind->run != masked || found->frames == 0, "it cannot answer");
    one->was_caught |= kind->run == spinning && found->frames > 0;
  }
  if (loop_of_test != 0) {
    CHECK(dump.thread[0].tid == loop_tid, "the watched one is not first");
    CHECK(strcmp(dump.thread[0].name, "loop-thread") == 0, "%s", dump.thread[0].name);
    CHECK(strcmp(dump.thread[0].about, "state: S (sleeping) in futex, watched as \"the loop\"") == 0, "%s",
          dump.thread[0].about);
    CHECK(dump_has(&dump.thread[0], loop_chain, 2), "%.*s", (int)(dump.thread[0].end - dump.thread[0].begin),
          dump.thread[0].begin);
  }
  const struct dumped *self = dump_find(&dump, tid_of_self());
  CHECK(self != NULL && dump_has(self, (const char *const[]){"bc_threads_dump", "dump_now", "asks_for_dump"}, 3),
        "the caller: %.*s", self == NULL ? 0 : (int)(self->end - self->begin), self == NULL ? "" : self->begin);
  for (unsigned i = 0; i < dump.threads; i++) {
    bool is_own = strstr(dump.thread[i].about, ", internal") != NULL;
    CHECK(is_own == (i + 3 >= dump.threads), "place %u of %u: %s, %s", i, dump.threads, dump.thread[i].name,
          dump.thread[i].about);
  }
}

/* Time that a thread has been ready to run and has had no processor. */
static uint64_t queued_ns(int32_t tid) {
  char path[64], text[128];
  unsigned long long ran = 0, queued = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", tid);
  read_whole(path, text, sizeof text);
  CHECK(sscanf(text, "%llu %llu", &ran, &queued) == 2, "%s: %s", path, text);
  return queued;
}

static int32_t monitor_tid(void) {
  for (unsigned i = 0; i < dump.threads; i++) {
    if (strcmp(dump.thread[i].name, "bc-monitor") == 0) {
      return dump.thread[i].tid;
    }
  }
  CHECK(false, "no monitor among %u threads", dump.threads);
}

/* Dumps at least five times, until so many of the running threads have been caught once. Each takes less than a second,
 * but for the time in which others have the processors. */
static void dump_until(unsigned wanted, const char *what) {
  asks_for_dump(NULL);
  int32_t monitor = monitor_tid();
  uint64_t best_ns = UINT64_MAX, worst_ns = 0, own_ns = 0, until = now_ns() + 100000000000ull;
  unsigned caught = 0, dumps = 0;
  do {
    uint64_t took_ns, before_ns = queued_ns(monitor) + queued_ns(tid_of_self());
    asks_for_dump(&took_ns);
    uint64_t lost_ns = queued_ns(monitor) + queued_ns(tid_of_self()) - before_ns;
    uint64_t rest_ns = took_ns > lost_ns ? took_ns - lost_ns : 0;
    best_ns = took_ns < best_ns ? took_ns : best_ns;
    worst_ns = took_ns > worst_ns ? took_ns : worst_ns;
    own_ns = rest_ns > own_ns ? rest_ns : own_ns;
    check_all();
    caught = caught_at_all();
    dumps++;
  } while ((caught < wanted || dumps < 5) && now_ns() < until);
  printf("%s: %u dumps of %u threads in %.1f to %.1f ms, at most %.1f ms of that with a processor at hand; %u running ones "
         "caught at least once\n",
         what, dumps, dump.threads, best_ns / 1e6, worst_ns / 1e6, own_ns / 1e6, caught);
  CHECK(caught >= wanted, "%u caught", caught);
  CHECK(own_ns < 1000000000, "%.1f ms", own_ns / 1e6);
}

/* Fifty threads of every kind. */
static void content(void) {
  bc_config config = config_of(60000);
  install_and_start(&config);
  start_all();
  dump_until(kinds[4].count, "all kinds");
  CHECK(dump.announced == threads() && dump.threads == dump.announced && dump.more == 0, "%u of %u, %u announced",
        dump.threads, threads(), dump.announced);
  bc_health end = health();
  printf("%u timed waits, %u cut short; %d signals, %d waits cut by its own count\n", atomic_load(&timed_waits),
         atomic_load(&waits_cut), (int)end.signals_sent, (int)end.waits_cut);
  CHECK(atomic_load(&waits_cut) == 0 && end.waits_cut == 0, "waits were cut short");
  CHECK(end.blocks_seen == 0, "a block");
  end_all();
  CHECK_OK(bc_uninstall());
}

static atomic_uint come_and_gone;
static void *short_life(void *argument) {
  atomic_fetch_add(&come_and_gone, 1);
  return argument;
}
static void *starter(void *argument) {
  while (!atomic_load(&over)) {
    join_thread(start_thread(short_life, NULL));
  }
  return argument;
}

/* Threads that end while they are listed and looked at, with the machine busy. */
static void under_load(void) {
  bc_config config = config_of(60000);
  install_and_start(&config);
  start_all();
  unsigned long starters[2] = {start_thread(starter, NULL), start_thread(starter, NULL)};
  load_every_core(2);
  dump_until(1, "under load");
  printf("%u threads have come and gone\n", atomic_load(&come_and_gone));
  CHECK(atomic_load(&come_and_gone) > 10, "too few");
  CHECK(atomic_load(&waits_cut) == 0 && health().waits_cut == 0, "waits were cut short");
  end_all();
  join_thread(starters[0]);
  join_thread(starters[1]);
  CHECK_OK(bc_uninstall());
}

/* Far more threads that run than processors: those that have none keep nobody waiting. */
static void fifty_running(void) {
  bc_config config = config_of(60000);
  install_and_start(&config);
  prepare();
  start_many(50, &kinds[4]);
  settle();
  dump_until(0, "all running");
  end_all();
  CHECK_OK(bc_uninstall());
}

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
  running[0].was_caught = false;
  uint64_t until = now_ns() + 60000000000ull;
  do {
    asks_for_dump(NULL);
    check_all();
  } while (!running[0].was_caught && now_ns() < until);
  return running[0].was_caught;
}

/* It is asked for: whatever the state, it works, and the signal is given back at once. */
static void when_not_watching(void) {
  CHECK_STATUS(bc_threads_dump(1), BC_ERROR_INVALID_STATE);
  bc_config config = config_of(60000);
  CHECK_OK(bc_install(&config));
  prepare();
  start_many(1, &kinds[4]);
  settle();
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
  end_all();
  CHECK_OK(bc_uninstall());
  CHECK_STATUS(bc_threads_dump(1), BC_ERROR_INVALID_STATE);
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
  install_and_start(&config);
  prepare();
  start_many(20, &kinds[0]);
  settle();
  unsigned before = descriptors();
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
  CHECK(descriptors() == before, "%u descriptors, not %u", descriptors(), before);
  asks_for_dump(NULL);
  check_all();
  end_all();
  CHECK_OK(bc_uninstall());
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
  prepare();
  start_many(10, &kinds[0]);
  settle();
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
  end_all();
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
  prepare();
  start_many(50, &kinds[0]);
  settle();
  int ends[2];
  CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETPIPE_SZ, 4096) > 0, "pipe");
  unsigned long dumping = start_thread(dump_into_full_pipe, &ends[1]);
  struct pollfd place = {.fd = ends[0], .events = POLLIN};
  CHECK(poll(&place, 1, 60000) == 1, "nothing is written");
  CHECK_OK(bc_uninstall());
  join_thread(dumping);
  end_all();
}

static atomic_uint dumped_in_listener, dumped_in_filter, dumped_in_log_handler;

static void dump_inside(atomic_uint *count) {
  int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  CHECK_OK(bc_threads_dump(fd));
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
  CHECK_OK(bc_uninstall());
}

static atomic_uint dumps;
static void *dump_again_and_again(void *argument) {
  int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  while (!atomic_load(&over)) {
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
  prepare();
  start_many(10, &kinds[0]);
  start_many(3, &kinds[4]);
  settle();
  unsigned long dumping[3];
  for (unsigned i = 0; i < 3; i++) {
    dumping[i] = start_thread(dump_again_and_again, NULL);
  }
  bc_loop *loop = watched("loop");
  blocks_expect("sleep_ms", 8);
  unsigned samples = 0, with_stack = 0, naming = 0;
  for (unsigned n = 1; n <= 10; n++) {
    bc_dispatch_begin(loop, "block", n);
    sleep_ms(200);
    bc_dispatch_end(loop);
  }
  WAIT_FOR(atomic_load(&dumps) >= 6, 60000);
  atomic_store(&over, true);
  for (unsigned i = 0; i < 3; i++) {
    join_thread(dumping[i]);
  }
  flush();
  for (unsigned n = 1; n <= 10; n++) {
    CHECK(blocks_tagged(BC_BLOCK_ENDED, n) == 1 && blocks_tagged(BC_BLOCK_ONGOING, n) == 1, "block %u", n);
    const struct told *told = blocks_get(BC_BLOCK_ENDED, n);
    samples += told->samples;
    with_stack += told->samples_with_stack;
    naming += told->samples_naming;
  }
  printf("%u dumps meanwhile; %u samples, %u with stack, %u name the function\n", atomic_load(&dumps), samples, with_stack,
         naming);
  CHECK(samples >= 10 * 5 && naming == with_stack && with_stack * 10 >= samples * 9, "%u samples", samples);
  end_all();
  CHECK_OK(bc_uninstall());
}

static char text[4 << 20];

static const char *report(uint64_t tag, bc_block_state state, const char *ending) {
  const struct told *told = blocks_get(state, tag);
  char path[600];
  snprintf(path, sizeof path, "%.*s%s", (int)(strlen(told->path) - 4), told->path, ending);
  size_t length = read_whole(path, text, sizeof text);
  CHECK(length > 0 && length < sizeof text - 1, "%zu bytes in %s", length, path);
  return text;
}

/* The objects of a report's list of threads, each on lines of its own. */
static unsigned threads_in(const char *json) {
  const char *at = json_member(json, "threads"), *end = strstr(json, "\"threads_left_out\":");
  CHECK(at != NULL && *at == '[' && end != NULL, "no threads");
  unsigned count = 0;
  while ((at = strstr(at, "{\"tid\":")) != NULL && at < end) {
    at++;
    count++;
  }
  return count;
}

static const char *thread_in(const char *json, int32_t tid) {
  char wanted[64];
  snprintf(wanted, sizeof wanted, "{\"tid\":%d,\"name\":", tid);
  const char *at = strstr(json_member(json, "threads"), wanted);
  CHECK(at != NULL && at < strstr(json, "\"threads_left_out\":"), "thread %d is missing", tid);
  CHECK(strstr(at + 1, wanted) == NULL, "thread %d is there twice", tid);
  return at;
}

static void names_chain(const char *thread, const char *const *names, unsigned count) {
  const char *end = strstr(thread + 1, "{\"tid\":");
  for (unsigned i = 0; i < count; i++) {
    char symbol[64];
    snprintf(symbol, sizeof symbol, "\"symbol\":\"%s\"", names[i]);
    thread = strstr(thread, symbol);
    CHECK(thread != NULL && (end == NULL || thread < end), "%s is not there", names[i]);
  }
}

/* The report of a block has every other thread. */
static void with_blocks(void) {
  bc_config config = config_of(80);
  config.report_dir = fresh_directory("threads");
  config.all_threads_on_block = BC_ON;
  install_and_start(&config);
  start_all();
  bc_loop *loop = watched("blocked");
  for (unsigned n = 1; n <= 3; n++) {
    bc_dispatch_begin(loop, "block", n);
    sleep_ms(300);
    bc_dispatch_end(loop);
    flush();
  }
  const char *json = report(3, BC_BLOCK_ENDED, ".json");
  CHECK(json_valid(json), "no JSON");
  CHECK(threads_in(json) + 1 == threads(), "%u of %u threads", threads_in(json), threads());
  CHECK(json_is(json, "threads_left_out", "0"), "some are left out");
  const char *first = thread_in(json, loop_tid);
  CHECK(first < strstr(json_member(json, "threads"), "\"frames\""), "the watched one is not first");
  CHECK(json_is(first, "watched", "true") && json_is(first, "state", "\"S\"") &&
            json_is(first, "name", "\"loop-thread\"") && json_is(first, "role", "null"),
        "%.200s", first);
  names_chain(first, loop_chain, 2);
  for (unsigned i = 0; i < running_count; i++) {
    const char *thread = thread_in(json, running[i].tid);
    CHECK(json_is(thread, "watched", "false"), "%.200s", thread);
    if (running[i].kind->run == in_futex || running[i].kind->run == with_loaders_lock) {
      CHECK(json_is(thread, "state", "\"S\""), "%.200s", thread);
      names_chain(thread, quiet_chain, 3);
    }
  }
  const char *log = report(3, BC_BLOCK_ENDED, ".log"), *stack = strstr(log, "\nstack = ");
  CHECK(stack != NULL && strstr(log, "more-threads") == NULL, "no stack");
  for (unsigned i = 0; i < running_count; i++) {
    char line[64];
    snprintf(line, sizeof line, ", tid: %d, name: ", running[i].tid);
    const char *section = strstr(log, line);
    CHECK(section != NULL && section < stack, "thread %u has no section before the stack", i);
  }
  CHECK(atomic_load(&waits_cut) == 0 && health().waits_cut == 0, "waits were cut short");
  printf("%u threads; the texts have %zu and", threads_in(json = report(2, BC_BLOCK_ENDED, ".json")), strlen(text));
  report(2, BC_BLOCK_ENDED, ".log");
  printf(" %zu bytes\n", strlen(text));
  end_all();
  CHECK_OK(bc_uninstall());
}

/* Each report of a block has them, the first one too, and that of a block which the monitor only heard of at its end. */
static void with_short_blocks(void) {
  bc_config config = config_of(30);
  config.report_dir = fresh_directory("short");
  config.all_threads_on_block = BC_ON;
  install_and_start(&config);
  prepare();
  start_many(5, &kinds[0]);
  settle();
  bc_loop *loop = watched("blocked");
  unsigned at_end = 0;
  for (unsigned n = 1; n <= 60; n++) {
    blocking_dispatch(loop, "short", n, 30);
    flush();
    if (blocks_tagged(BC_BLOCK_ENDED, n) == 0) {
      continue; /* not longer than the limit, by a hair */
    }
    at_end += blocks_tagged(BC_BLOCK_ONGOING, n) == 0;
    const char *json = report(n, BC_BLOCK_ENDED, ".json");
    CHECK(json_valid(json) && threads_in(json) + 1 == threads(), "%u threads with block %u", threads_in(json), n);
    names_chain(thread_in(json, running[4].tid), quiet_chain, 3);
  }
  printf("%u blocks, %u of them known at their end only\n", blocks_in(BC_BLOCK_ENDED), at_end);
  CHECK(at_end > 0, "all were seen while they went on");
  end_all();
  CHECK_OK(bc_uninstall());
}

static atomic_uint ongoing_with_threads, hangs_with_threads;
static void examine_files(const bc_block *block) {
  if (block->state == BC_BLOCK_ENDED) {
    return;
  }
  static char early[4 << 20];
  char path[600];
  snprintf(path, sizeof path, "%.*s.json", (int)(strlen(block->report_path) - 4), block->report_path);
  read_whole(path, early, sizeof early);
  bool is_there = json_valid(early) && threads_in(early) + 1 == threads() && json_is(early, "threads_left_out", "0");
  atomic_fetch_add(block->state == BC_BLOCK_HANG ? &hangs_with_threads : &ongoing_with_threads, is_there);
}

/* While the block goes on, and anew when it becomes a hang. */
static void with_hangs(void) {
  bc_config config = config_of(50);
  config.hang_threshold_ms = 400;
  config.report_dir = fresh_directory("hangs");
  config.all_threads_on_block = BC_ON;
  blocks_examine(examine_files);
  install_and_start(&config);
  prepare();
  start_many(20, &kinds[0]);
  settle();
  bc_loop *loop = watched("blocked");
  for (unsigned n = 1; n <= 5; n++) {
    bc_dispatch_begin(loop, "hang", n);
    WAIT_FOR(blocks_tagged(BC_BLOCK_HANG, n) == 1, 60000);
    bc_dispatch_end(loop);
    flush();
    const char *json = report(n, BC_BLOCK_ENDED, ".json");
    CHECK(threads_in(json) + 1 == threads(), "%u of %u", threads_in(json), threads());
  }
  printf("of 5 blocks, %u had all threads when they were told first, %u as hangs\n", atomic_load(&ongoing_with_threads),
         atomic_load(&hangs_with_threads));
  /* On a busy machine the first telling does not wait for ever. */
  CHECK(atomic_load(&ongoing_with_threads) >= 1 && atomic_load(&hangs_with_threads) >= 1, "too few");
  end_all();
  CHECK_OK(bc_uninstall());
}

/* What has no room is counted. */
static void too_many(void) {
  bc_config config = config_of(80);
  config.report_dir = fresh_directory("many");
  config.all_threads_on_block = BC_ON;
  install_and_start(&config);
  prepare();
  start_many(1100, &kinds[1]);
  settle();
  uint64_t took_ns;
  asks_for_dump(&took_ns);
  printf("%u of %u threads in %.1f ms, %u more\n", dump.threads, threads(), took_ns / 1e6, dump.more);
  CHECK(dump.threads == 1024 && dump.threads + dump.more == threads() && dump.announced == threads(), "%u and %u of %u",
        dump.threads, dump.more, threads());
  bc_loop *loop = watched("blocked");
  bc_dispatch_begin(loop, "block", 1);
  sleep_ms(300);
  bc_dispatch_end(loop);
  flush();
  const char *json = report(1, BC_BLOCK_ENDED, ".json");
  CHECK(json_valid(json), "no JSON");
  unsigned left_out = (unsigned)atoi(json_member(json, "threads_left_out")), told = threads_in(json);
  printf("%u with the block, %u left out\n", told, left_out);
  CHECK(told == 256 && told + left_out + 1 == threads(), "%u and %u of %u", told, left_out, threads());
  char line[64];
  snprintf(line, sizeof line, "\nmore-threads = %u\r\n", left_out);
  CHECK(strstr(report(1, BC_BLOCK_ENDED, ".log"), line) != NULL, "not in the text");
  end_all();
  CHECK_OK(bc_uninstall());
}

static void *ends_now(void *argument) {
  pthread_exit(argument);
}

/* The main thread has ended, and something of it is still there. */
static void *after_main(void *argument) {
  unsigned long main_thread = *(unsigned long *)argument;
  (void)main_thread;
  WAIT_FOR(!is_asleep((int32_t)getpid()), 10000);
  bc_config config = config_of(60000);
  install_and_start(&config);
  for (unsigned i = 0; i < 100; i++) {
    asks_for_dump(NULL);
    const struct dumped *main_one = dump_find(&dump, (int32_t)getpid());
    if (main_one != NULL && main_one->state == 'Z') {
      CHECK(main_one->frames == 0, "%u frames", main_one->frames);
      CHECK_OK(bc_uninstall());
      exit(0);
    }
    pause_ms(10);
  }
  CHECK(false, "the main thread never ended");
}

static void main_gone(void) {
  static unsigned long self;
  self = pthread_self();
  start_thread(after_main, &self);
  ends_now(NULL);
}

CASES({"content", content}, {"under_load", under_load}, {"fifty_running", fifty_running},
      {"when_not_watching", when_not_watching}, {"descriptors", descriptors_of_all_kinds},
      {"uninstalled_meanwhile", uninstalled_meanwhile}, {"on_small_stack", on_small_stack}, {"from_callbacks", from_callbacks},
      {"blocks_meanwhile", blocks_meanwhile}, {"with_blocks", with_blocks}, {"with_short_blocks", with_short_blocks},
      {"with_hangs", with_hangs}, {"too_many", too_many}, {"main_gone", main_gone})
