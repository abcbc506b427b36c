#include "blocking.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Calls must not be inlined or end in a jump: the function would not be on the stack. */
#define ON_THE_STACK __attribute__((noinline))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t holder, feeder;
static sem_t hold, held, feed;
static volatile unsigned hold_ms, feed_ms;
static volatile int ending;
static int pipe_ends[2];

static struct timespec time_in(unsigned ms) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  time.tv_nsec += (long)(ms % 1000) * 1000000;
  time.tv_sec += ms / 1000 + time.tv_nsec / 1000000000;
  time.tv_nsec %= 1000000000;
  return time;
}

static void sleep_until(const struct timespec *due) {
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, due, NULL) == EINTR) {
  }
}

static void wait_for(sem_t *semaphore) {
  while (sem_wait(semaphore) != 0 && errno == EINTR) {
  }
}

/* Takes the lock when asked and keeps it. */
static void *hold_lock(void *unused) {
  for (wait_for(&hold); !ending; wait_for(&hold)) {
    pthread_mutex_lock(&lock);
    struct timespec due = time_in(hold_ms);
    sem_post(&held);
    sleep_until(&due);
    pthread_mutex_unlock(&lock);
  }
  return unused;
}

/* Writes to the pipe when asked, but late. */
static void *feed_pipe(void *unused) {
  for (wait_for(&feed); !ending; wait_for(&feed)) {
    struct timespec due = time_in(feed_ms);
    sleep_until(&due);
    if (write(pipe_ends[1], "x", 1) != 1) {
      perror("write");
    }
  }
  return unused;
}

void blocking_init(void) {
  sem_init(&hold, 0, 0);
  sem_init(&held, 0, 0);
  sem_init(&feed, 0, 0);
  if (pipe(pipe_ends) != 0 || pthread_create(&holder, NULL, hold_lock, NULL) != 0 ||
      pthread_create(&feeder, NULL, feed_pipe, NULL) != 0) {
    perror("blocking_init");
    exit(1);
  }
}

void blocking_end(void) {
  ending = 1;
  sem_post(&hold);
  sem_post(&feed);
  pthread_join(holder, NULL);
  pthread_join(feeder, NULL);
}

/* Computes. */
ON_THE_STACK void engine_spin(unsigned ms) {
  struct timespec due = time_in(ms), now;
  do {
    for (volatile unsigned n = 0; n < 20000; n++) {
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec < due.tv_sec || (now.tv_sec == due.tv_sec && now.tv_nsec < due.tv_nsec));
}

/* Sleeps its full time, however often a signal wakes it. */
ON_THE_STACK void engine_sleep(unsigned ms) {
  struct timespec due = time_in(ms);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR) {
  }
}

/* Waits for a lock that another thread holds. */
ON_THE_STACK void engine_wait_for_lock(unsigned ms) {
  hold_ms = ms;
  sem_post(&hold);
  wait_for(&held);
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
}

/* Reads what comes late. */
ON_THE_STACK void engine_slow_read(unsigned ms) {
  feed_ms = ms;
  sem_post(&feed);
  char byte;
  while (read(pipe_ends[0], &byte, 1) < 0 && errno == EINTR) {
  }
}
