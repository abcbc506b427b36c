/* Ten functions, each with a frame of its own, above a call that blocks or spins. The innermost is chain_1. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

struct job {
  int kind;
  int fd;
  atomic_int *stop;
  pthread_mutex_t *mutex;
};

enum { NANOSLEEP, READ, MUTEX, POLL, CLOCK, SPIN, HANDLER };

static int handler_fd;

void chain_handler(int signal) {
  char byte;
  (void)signal;
  /* Not the last thing here, so that this frame stays. */
  while (read(handler_fd, &byte, 1) < 0) {
  }
  __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) int chain_1(struct job *job) {
  volatile int depth = 1;
  char byte;
  struct timespec time = {100, 0};
  struct pollfd wanted = {job->fd, POLLIN, 0};
  switch (job->kind) {
  case NANOSLEEP:
    while (!atomic_load(job->stop))
      nanosleep(&time, 0);
    break;
  case READ:
    while (read(job->fd, &byte, 1) < 0) {
    }
    break;
  case MUTEX:
    pthread_mutex_lock(job->mutex);
    pthread_mutex_unlock(job->mutex);
    break;
  case POLL:
    while (poll(&wanted, 1, -1) < 0) {
    }
    break;
  case CLOCK:
    while (!atomic_load(job->stop))
      clock_gettime(CLOCK_MONOTONIC, &time);
    break;
  case SPIN:
    while (!atomic_load(job->stop))
      depth++;
    break;
  case HANDLER: {
    struct sigaction action = {0};
    action.sa_handler = chain_handler;
    handler_fd = job->fd;
    sigaction(SIGUSR2, &action, 0);
    raise(SIGUSR2);
    break;
  }
  }
  return depth;
}

#define CHAIN(outer, inner)                                                                                            \
  __attribute__((noinline)) int chain_##outer(struct job *job) {                                                       \
    volatile int depth[outer];                                                                                         \
    depth[0] = chain_##inner(job);                                                                                     \
    return depth[0] + 1;                                                                                               \
  }

CHAIN(2, 1)
CHAIN(3, 2)
CHAIN(4, 3)
CHAIN(5, 4)
CHAIN(6, 5)
CHAIN(7, 6)
CHAIN(8, 7)
CHAIN(9, 8)
CHAIN(10, 9)
