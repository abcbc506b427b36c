/* Ten functions, each with a frame of its own, above a call that blocks or spins. The innermost is chain_1.
 * With PART set to a number only that function is compiled, so that each can be compiled in its own way. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct job {
  int kind;
  int fd;
  atomic_int *stop;
  pthread_mutex_t *mutex;
  pthread_cond_t *cond;
};

/* VARIABLE: arrays whose length only running tells. No kind is as large as that. */
#ifdef VARIABLE
#define LENGTH(outer) (outer + (job->kind & 1024))
#else
#define LENGTH(outer) outer
#endif

/* POINTER: called by what a variable says. */
#ifdef POINTER
#define CALL(inner) next(job)
#define CALL_LEAF leaf
#else
#define CALL(inner) chain_##inner(job)
#define CALL_LEAF chain_leaf
#endif

#if !defined PART || PART == 1

enum {
  NANOSLEEP,
  READ,
  MUTEX,
  POLL,
  CLOCK,
  SPIN,
  HANDLER,
  USLEEP,
  CLOCK_NANOSLEEP,
  EPOLL,
  SELECT,
  SEMAPHORE,
  RECEIVE,
  CONDITION,
  STUB,
  LEAF,
  CALLS
};

static int handler_fd;

void chain_handler(int signal) {
  char byte;
  (void)signal;
  /* Not the last thing here, so that this frame stays. */
  while (read(handler_fd, &byte, 1) < 0) {
  }
  __asm__ volatile("" ::: "memory");
}

/* A system call as Android's C library makes it: no frame, and nothing saved. */
long chain_stub(int fd, void *bytes, unsigned long size);
#if defined __x86_64__
#define STUB_CODE "mov $0, %eax\n syscall\n ret\n"
#elif defined __i386__
#define STUB_CODE                                                                                          \
  "push %ebx\n .cfi_adjust_cfa_offset 4\n .cfi_rel_offset ebx, 0\n mov 8(%esp), %ebx\n mov 12(%esp), %ecx\n" \
  "mov 16(%esp), %edx\n mov $3, %eax\n int $0x80\n pop %ebx\n .cfi_adjust_cfa_offset -4\n ret\n"
#elif defined __arm__
#define STUB_CODE "mov ip, r7\n mov r7, #3\n svc #0\n mov r7, ip\n bx lr\n"
#elif defined __aarch64__
#define STUB_CODE "mov x8, #63\n svc #0\n ret\n"
#elif defined __riscv
#define STUB_CODE "li a7, 63\n ecall\n ret\n"
#endif
__asm__(".text\n .globl chain_stub\n .type chain_stub, %function\n chain_stub:\n .cfi_startproc\n" STUB_CODE
        ".cfi_endproc\n .size chain_stub, . - chain_stub\n");

/* Counts down until it is to stop. It makes no frame, and no table says so. */
int chain_leaf(atomic_int *stop, unsigned rounds);
#if defined __x86_64__
#define LEAF_CODE "1: mov (%rdi), %eax\n test %eax, %eax\n jne 2f\n dec %esi\n jne 1b\n 2: ret\n"
#elif defined __i386__
#define LEAF_CODE                                                                                       \
  "mov 4(%esp), %edx\n mov 8(%esp), %ecx\n 1: mov (%edx), %eax\n test %eax, %eax\n jne 2f\n dec %ecx\n" \
  "jne 1b\n 2: ret\n"
#elif defined __arm__
#define LEAF_CODE "1: ldr r2, [r0]\n cmp r2, #0\n bne 2f\n subs r1, r1, #1\n bne 1b\n 2: mov r0, r2\n bx lr\n"
#elif defined __aarch64__
#define LEAF_CODE "1: ldr w2, [x0]\n cbnz w2, 2f\n subs w1, w1, #1\n b.ne 1b\n 2: mov w0, w2\n ret\n"
#elif defined __riscv
#define LEAF_CODE "1: lw a2, (a0)\n bnez a2, 2f\n addiw a1, a1, -1\n bnez a1, 1b\n 2: mv a0, a2\n ret\n"
#endif
__asm__(".text\n .globl chain_leaf\n .type chain_leaf, %function\n chain_leaf:\n" LEAF_CODE
        ".size chain_leaf, . - chain_leaf\n");

/* Apart, so that chain_1 has an ordinary frame. */
__attribute__((noinline)) static void prepare(struct job *job, int *fd, sem_t *semaphore, struct timespec *until) {
  clock_gettime(CLOCK_REALTIME, until);
  until->tv_sec += 100;
  sem_init(semaphore, 0, 0);
  if (job->kind == EPOLL) {
    *fd = epoll_create1(0);
  } else if (job->kind == RECEIVE) {
    struct timeval timeout = {100, 0};
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    *fd = pair[0];
  } else if (job->kind == HANDLER) {
    struct sigaction action = {0};
    action.sa_handler = chain_handler;
    handler_fd = job->fd;
    sigaction(SIGUSR2, &action, 0);
  }
}

__attribute__((noinline)) int chain_1(struct job *job) {
  volatile int depth[LENGTH(1)];
  char byte;
  int fd = job->fd;
  struct timespec time = {100, 0}, until;
  struct timeval timeout = {100, 0};
  struct pollfd wanted = {job->fd, POLLIN, 0};
  struct epoll_event event;
  fd_set set;
  sem_t semaphore;
  int (*volatile leaf)(atomic_int *, unsigned) = chain_leaf;
  (void)leaf;
  depth[0] = 1;
  prepare(job, &fd, &semaphore, &until);
  switch (job->kind) {
  case NANOSLEEP:
    while (!atomic_load(job->stop))
      nanosleep(&time, 0);
    break;
  case READ:
    while (read(fd, &byte, 1) < 0) {
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
      depth[0]++;
    break;
  case HANDLER:
    raise(SIGUSR2);
    break;
  case USLEEP:
    while (!atomic_load(job->stop))
      usleep(100000000);
    break;
  case CLOCK_NANOSLEEP:
    while (!atomic_load(job->stop))
      clock_nanosleep(CLOCK_MONOTONIC, 0, &time, 0);
    break;
  case EPOLL:
    while (!atomic_load(job->stop))
      epoll_wait(fd, &event, 1, 100000);
    break;
  case SELECT:
    while (!atomic_load(job->stop)) {
      FD_ZERO(&set);
      select(0, &set, 0, 0, &timeout);
    }
    break;
  case SEMAPHORE:
    while (!atomic_load(job->stop))
      sem_timedwait(&semaphore, &until);
    break;
  case RECEIVE:
    while (!atomic_load(job->stop))
      recv(fd, &byte, 1, 0);
    break;
  case STUB:
    while (chain_stub(fd, &byte, 1) < 0) {
    }
    break;
  case LEAF:
    while (!CALL_LEAF(job->stop, 1000000)) {
    }
    break;
  case CALLS:
    while (!CALL_LEAF(job->stop, 1)) {
    }
    break;
  case CONDITION:
    pthread_mutex_lock(job->mutex);
    while (!atomic_load(job->stop))
      pthread_cond_timedwait(job->cond, job->mutex, &until);
    pthread_mutex_unlock(job->mutex);
    break;
  }
  if (fd != job->fd)
    close(fd);
  return depth[0];
}

#endif

#define CHAIN(outer, inner)                                                                                            \
  int chain_##inner(struct job *job);                                                                                  \
  __attribute__((noinline)) int chain_##outer(struct job *job) {                                                       \
    int (*volatile next)(struct job *) = chain_##inner;                                                                \
    volatile int depth[LENGTH(outer)];                                                                                 \
    (void)next;                                                                                                        \
    depth[0] = CALL(inner);                                                                                            \
    return depth[0] + 1;                                                                                               \
  }

#if !defined PART || PART == 2
CHAIN(2, 1)
#endif
#if !defined PART || PART == 3
CHAIN(3, 2)
#endif
#if !defined PART || PART == 4
CHAIN(4, 3)
#endif
#if !defined PART || PART == 5
CHAIN(5, 4)
#endif
#if !defined PART || PART == 6
CHAIN(6, 5)
#endif
#if !defined PART || PART == 7
CHAIN(7, 6)
#endif
#if !defined PART || PART == 8
CHAIN(8, 7)
#endif
#if !defined PART || PART == 9
CHAIN(9, 8)
#endif
#if !defined PART || PART == 10
CHAIN(10, 9)
#endif

#if !defined PART
/* A chain above the remains of itself: it has run deeper before, and nobody has overwritten its frames. */
__attribute__((noinline)) int stale_1(struct job *job) {
  char byte;
  /* Too little to do for it to save the frame pointer. */
  return job->kind < 0 ? 1 : (int)read(job->fd, &byte, 1);
}

__attribute__((noinline)) int stale_2(struct job *job) {
  volatile char hole[job->kind < 0 ? 64 : 8192];
  int depth = stale_1(job);
  return depth + (hole[0] & 0) + 1;
}

__attribute__((noinline)) int stale_3(struct job *job) {
  volatile int depth = stale_2(job);
  return depth + 1;
}

__attribute__((noinline)) static int deeper(struct job *job) {
  volatile char hole[2048];
  hole[0] = 0;
  return stale_3(job) + hole[0];
}

__attribute__((noinline)) int stale_4(struct job *job) {
  struct job nothing = *job;
  nothing.kind = -1;
  return deeper(&nothing) + stale_3(job) + 7;
}

/* So deep that nobody keeps it all. */
__attribute__((noinline)) static int deep(struct job *job, int left) {
  volatile int depth = left ? deep(job, left - 1) : chain_10(job);
  return depth + 1;
}

int chain_deep(struct job *job) {
  return deep(job, 5000) + 1;
}
#endif
