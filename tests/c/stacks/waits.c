/* Waits in a late dispatch: each gives what it gives without the library, as late, and its whole stack is reported. */
#include <android/looper.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../check.h"
#include "../support/blocks.h"
#include "../support/stacks.h"
#include "chain.h"

#define WAIT_MS 300

/* What the waits work on; a helper thread ends those that have no limit of time. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t never, taken, begun;
static int epoll_fd, pipe_fds[2], sockets[2];
static const struct timespec span = {.tv_nsec = WAIT_MS * 1000000};

static struct timespec due(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  time.tv_nsec += span.tv_nsec;
  time.tv_sec += time.tv_nsec / 1000000000;
  time.tv_nsec %= 1000000000;
  return time;
}

/* The call sits between two statements: it is no jump, and its error is the one that is kept. */
#define WAIT(name, call)                                                         \
  struct outcome wait_##name(void);                                              \
  __attribute__((noinline)) struct outcome wait_##name(void) {                   \
    errno = 0;                                                                   \
    long value = (call);                                                         \
    return (struct outcome){value, errno};                                       \
  }

WAIT(usleep, usleep(WAIT_MS * 1000))
WAIT(nanosleep, nanosleep(&span, NULL))
WAIT(clock_nanosleep, clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL))
WAIT(poll, poll(&(struct pollfd){.fd = pipe_fds[0], .events = POLLIN}, 1, WAIT_MS))
WAIT(epoll_wait, epoll_wait(epoll_fd, &(struct epoll_event){0}, 1, WAIT_MS))
WAIT(select, select(0, NULL, NULL, NULL, &(struct timeval){.tv_usec = WAIT_MS * 1000}))
WAIT(sem_timedwait, sem_timedwait(&never, &(struct timespec){due().tv_sec, due().tv_nsec}))
WAIT(recv, recv(sockets[0], &(char){0}, 1, 0))
WAIT(read, read(pipe_fds[0], &(char){0}, 1))
WAIT(pthread_mutex_lock, pthread_mutex_lock(&mutex))
WAIT(looper, ALooper_pollOnce(WAIT_MS, NULL, NULL, NULL))

struct outcome wait_pthread_cond_timedwait(void);
__attribute__((noinline)) struct outcome wait_pthread_cond_timedwait(void) {
  struct timespec until = due();
  pthread_mutex_lock(&cond_mutex);
  errno = 0;
  long value = pthread_cond_timedwait(&cond, &cond_mutex, &until);
  int error = errno;
  pthread_mutex_unlock(&cond_mutex);
  return (struct outcome){value, error};
}

static void *hold_mutex(void *unused) {
  pthread_mutex_lock(&mutex);
  sem_post(&taken);
  sem_wait(&begun);
  sleep_ms(WAIT_MS + 20);
  pthread_mutex_unlock(&mutex);
  return unused;
}

static void *write_late(void *unused) {
  sem_post(&taken);
  sem_wait(&begun);
  sleep_ms(WAIT_MS + 20);
  CHECK(write(pipe_fds[1], "x", 1) == 1, "write");
  return unused;
}

struct run {
  struct outcome outcome;
  uint64_t took_ns;
};

static struct run run_once(wait_function wait, void *(*helper)(void *)) {
  unsigned long thread = 0;
  if (helper != NULL) {
    thread = start_thread(helper, NULL);
    sem_wait(&taken);
    sem_post(&begun);
  }
  struct run run;
  uint64_t begin = now_ns();
  run.outcome = chain_10(wait);
  run.took_ns = now_ns() - begin;
  if (helper != NULL) {
    join_thread(thread);
  }
  if (helper == hold_mutex) {
    pthread_mutex_unlock(&mutex);
  }
  return run;
}

static const char *names[11] = {NULL, CHAIN_NAMES};
static unsigned samples, with_stack, whole, by_kernel;

static void examine(const bc_block *block) {
  if (block->state != BC_BLOCK_ENDED) {
    return;
  }
  bool printed = false;
  for (size_t i = 0; i < block->sample_count; i++) {
    const bc_sample *sample = sample_of(block, i);
    bool has = stack_has(block, sample, names, 11);
    samples++;
    with_stack += sample->frame_count > 0;
    by_kernel += sample->method == BC_SAMPLE_KERNEL_STATE;
    whole += has;
    if (!has && sample->frame_count > 0 && !printed) {
      stack_print(block, sample);
      printed = true;
    }
  }
}

static void make_objects(void) {
  CHECK(pipe(pipe_fds) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "pipes");
  struct timeval limit = {.tv_usec = WAIT_MS * 1000};
  CHECK(setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0, "SO_RCVTIMEO");
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN};
  CHECK(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, sockets[0], &event) == 0, "epoll_ctl");
  CHECK(sem_init(&never, 0, 0) == 0 && sem_init(&taken, 0, 0) == 0 && sem_init(&begun, 0, 0) == 0, "sem_init");
}

static void judge(const char *name, const struct run *bare, const struct run *watched_one) {
  flush();
  bc_health end = health();
  printf("%s: %ld (errno %d) after %.3f ms, without the library %ld (errno %d) after %.3f ms; %u samples, %u of the "
         "waiting thread, %u with stack, %u whole; %llu signals, %llu waits cut\n",
         name, watched_one->outcome.value, watched_one->outcome.error, watched_one->took_ns / 1e6, bare->outcome.value,
         bare->outcome.error, bare->took_ns / 1e6, samples, by_kernel, with_stack, whole,
         (unsigned long long)end.signals_sent, (unsigned long long)end.waits_cut);
  CHECK(watched_one->outcome.value == bare->outcome.value && watched_one->outcome.error == bare->outcome.error,
        "another result");
  CHECK(watched_one->took_ns >= WAIT_MS * 1000000ull, "after %llu ns", (unsigned long long)watched_one->took_ns);
  CHECK(end.waits_cut == 0, "%llu waits cut", (unsigned long long)end.waits_cut);
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1, "%u blocks", blocks_in(BC_BLOCK_ENDED));
  /* How many there are is the machine's: on a busy one the monitor comes late. A thread that is on its way into its wait or
   * out of it may give none. */
  CHECK(samples >= 3 && by_kernel + 2 >= samples, "%u of %u samples without a signal", by_kernel, samples);
  CHECK(whole == with_stack && with_stack + 2 >= samples, "%u of %u stacks are whole", whole, with_stack);
}

static bc_loop *begin(const char *symbol) {
  names[0] = symbol;
  bc_config config = config_of(50);
  config.sample_interval_ms = 10;
  config.report_ongoing = BC_OFF;
  blocks_examine(examine);
  install_and_start(&config);
  return watched("waiting");
}

static void compare(const char *symbol, wait_function wait, void *(*helper)(void *)) {
  make_objects();
  struct run bare = run_once(wait, helper);
  bc_loop *loop = begin(symbol);
  bc_dispatch_begin(loop, symbol, 1);
  struct run watched_one = run_once(wait, helper);
  bc_dispatch_end(loop);
  judge(symbol, &bare, &watched_one);
  CHECK_OK(bc_uninstall());
}

#define CASE(name, helper)                                  \
  static void case_##name(void) {                           \
    compare("wait_" #name, wait_##name, helper);            \
  }

CASE(usleep, NULL)
CASE(nanosleep, NULL)
CASE(clock_nanosleep, NULL)
CASE(poll, NULL)
CASE(epoll_wait, NULL)
CASE(select, NULL)
CASE(sem_timedwait, NULL)
CASE(recv, NULL)
CASE(pthread_cond_timedwait, NULL)
CASE(read, write_late)
CASE(pthread_mutex_lock, hold_mutex)

/* In a dispatch and not in a callback of the looper's own: the genuine Looper does not outlive a poll inside those. */
static void case_looper(void) {
  CHECK(ALooper_prepare(0) != NULL, "no looper");
  compare("wait_looper", wait_looper, NULL);
}

CASES({"usleep", case_usleep}, {"nanosleep", case_nanosleep}, {"clock_nanosleep", case_clock_nanosleep},
      {"poll", case_poll}, {"epoll_wait", case_epoll_wait}, {"select", case_select},
      {"sem_timedwait", case_sem_timedwait}, {"recv", case_recv},
      {"pthread_cond_timedwait", case_pthread_cond_timedwait}, {"read", case_read},
      {"pthread_mutex_lock", case_pthread_mutex_lock}, {"looper", case_looper})
