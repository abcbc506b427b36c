#include "crowd.h"

#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../check.h"
#include "blocks.h"
#include "procfs.h"

struct one crowd[CROWD_MAX];
unsigned crowd_count;
int32_t crowd_loop_tid;
atomic_uint crowd_waits, crowd_waits_cut;
atomic_bool crowd_over;

static atomic_uint ready;
static sem_t never;
static int never_pipe[2];
static unsigned long loop;

const char *const quiet_chain[3] = {"quiet_inner", "quiet_middle", "quiet_outer"};
const char *const loop_chain[2] = {"loop_inner", "loop_outer"};
const char *const spins_chain[1] = {"spins"};
void quiet_inner(void);
void quiet_middle(void);
void quiet_outer(void);
void loop_inner(void);
void loop_outer(void);
void spins(void);

STAYS void quiet_inner(void) {
  while (!atomic_load(&crowd_over)) {
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
  while (!atomic_load(&crowd_over)) {
    sem_wait(&never);
  }
}

STAYS void loop_outer(void) {
  loop_inner();
  __asm__ volatile("");
}

STAYS void spins(void) {
  while (!atomic_load_explicit(&crowd_over, memory_order_relaxed)) {
  }
}

int32_t tid_of_self(void) {
  return (int32_t)syscall(SYS_gettid);
}

static void in_read(void) {
  char byte;
  CHECK(read(never_pipe[0], &byte, 1) == 0, "something was written");
}

static void in_poll(void) {
  struct pollfd place = {.fd = never_pipe[0], .events = POLLIN};
  poll(&place, 1, -1);
}

static void in_timed_waits(void) {
  while (!atomic_load(&crowd_over)) {
    struct timespec time = {.tv_nsec = 20000000};
    uint64_t begin = now_ns();
    int result = nanosleep(&time, NULL);
    atomic_fetch_add(&crowd_waits, 1);
    atomic_fetch_add(&crowd_waits_cut, result != 0 || now_ns() - begin < 20000000);
  }
}

static void masked(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  spins();
}

static int hold(struct dl_phdr_info *info, size_t size, void *data) {
  (void)info;
  (void)size;
  (void)data;
  quiet_outer();
  return 1;
}

static void with_loaders_lock(void) {
  dl_iterate_phdr(hold, NULL);
}

static void *run(void *argument) {
  static void (*const does[DOINGS])(void) = {quiet_outer, in_read, in_poll, in_timed_waits, spins, masked,
                                             with_loaders_lock};
  struct one *self = argument;
  self->tid = tid_of_self();
  prctl(PR_SET_NAME, self->name);
  atomic_fetch_add(&ready, 1);
  does[self->doing]();
  return NULL;
}

static void start(enum doing doing, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    CHECK(crowd_count < CROWD_MAX, "too many");
    struct one *one = &crowd[crowd_count++];
    one->doing = doing;
    snprintf(one->name, sizeof one->name, "%s", i % 2 == 0 ? "plain" : "x) R 1\n#00 pc");
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    pthread_t thread;
    CHECK(pthread_create(&thread, &attributes, run, one) == 0, "thread %u", crowd_count);
    one->thread = thread;
  }
}

/* It blocks nothing, since its dispatch may take long. */
static void *loop_thread(void *argument) {
  prctl(PR_SET_NAME, "loop-thread");
  bc_loop *own = watched(argument);
  CHECK_OK(bc_loop_set_threshold(own, 60000));
  bc_dispatch_begin(own, "all along", 1);
  crowd_loop_tid = tid_of_self();
  atomic_fetch_add(&ready, 1);
  loop_outer();
  bc_dispatch_end(own);
  return NULL;
}

bool is_asleep(int32_t tid) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
  read_whole(path, text, sizeof text);
  const char *state = strrchr(text, ')');
  return state != NULL && state[2] == 'S';
}

static bool stays_asleep(enum doing doing) {
  return doing != IN_TIMED_WAITS && doing != SPINNING && doing != MASKED;
}

static void settle(void) {
  WAIT_FOR(atomic_load(&ready) == crowd_count + (loop != 0), 60000);
  for (unsigned i = 0; i < crowd_count; i++) {
    WAIT_FOR(!stays_asleep(crowd[i].doing) || is_asleep(crowd[i].tid), 60000);
  }
  WAIT_FOR(loop == 0 || is_asleep(crowd_loop_tid), 60000);
}

static void prepare(void) {
  if (never_pipe[1] == 0) {
    CHECK(sem_init(&never, 0, 0) == 0 && pipe(never_pipe) == 0, "nothing to wait for");
  }
}

void crowd_of(enum doing doing, unsigned count) {
  prepare();
  start(doing, count);
  settle();
}

void crowd_of_all(void) {
  static const unsigned counts[DOINGS] = {20, 10, 10, 6, 2, 1, 1};
  prepare();
  loop = start_thread(loop_thread, "the loop");
  for (unsigned doing = 0; doing < DOINGS; doing++) {
    start((enum doing)doing, counts[doing]);
  }
  settle();
}

void crowd_end(void) {
  atomic_store(&crowd_over, true);
  close(never_pipe[1]);
  for (unsigned i = 0; i < crowd_count + 2; i++) {
    sem_post(&never);
  }
  for (unsigned i = 0; i < crowd_count; i++) {
    join_thread(crowd[i].thread);
  }
  if (loop != 0) {
    join_thread(loop);
  }
  close(never_pipe[0]);
}
