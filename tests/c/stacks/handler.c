/* The signal handler, as the interrupted thread and other users of signals see it. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#include "../check.h"
#include "../support/blocks.h"
#include "../support/stacks.h"

static const char *wanted_name;
static atomic_uint by_signal, naming, in_second, foreign;

static void examine(const bc_block *block) {
  for (size_t i = 0; i < block->sample_count && block->state == BC_BLOCK_ENDED; i++) {
    const bc_sample *sample = sample_of(block, i);
    by_signal += sample->method == BC_SAMPLE_SIGNAL;
    bool named = wanted_name != NULL && stack_find(block, sample, wanted_name, 0) >= 0;
    naming += sample->method == BC_SAMPLE_SIGNAL && named;
    if (block->tag == 2) {
      in_second++;
      foreign += stack_find(block, sample, "first_work", 0) >= 0;
    }
  }
}

static void begin(bc_sampling_method method, int32_t number) {
  bc_config config = config_of(20);
  config.sample_interval_ms = 1;
  config.sample_capacity = 4096;
  config.sampling_method = method;
  config.signal_number = number;
  config.report_ongoing = BC_OFF;
  blocks_examine(examine);
  install_and_start(&config);
}

/* errno, and registers of all kinds, survive a thousand signals a second. */
static void keep_errno(void) {
  begin(BC_SAMPLING_SIGNAL, 0);
  bc_loop *loop = watched("errno");
  bc_dispatch_begin(loop, "errno", 1);
  uint64_t until = now_ns() + 2000000000, rounds = 0;
  errno = 77;
  double sum = 0;
  while (now_ns() < until) {
    for (int i = 0; i < 1000; i++) {
      sum += 0.5;
      rounds++;
      CHECK(errno == 77, "errno is %d", errno);
    }
  }
  bc_dispatch_end(loop);
  CHECK(sum == rounds * 0.5, "the sum is wrong");
  flush();
  bc_health end = health();
  printf("%llu rounds, %llu signals, %u answers\n", (unsigned long long)rounds, (unsigned long long)end.signals_sent,
         by_signal);
  CHECK(end.signals_sent >= 500 && by_signal >= 500, "%llu signals", (unsigned long long)end.signals_sent);
  CHECK_OK(bc_uninstall());
}

void other_stack_work(void);
STAYS void other_stack_work(void) {
  uint64_t until = now_ns() + 300000000;
  while (now_ns() < until) {
    for (volatile int i = 0; i < 5000; i++) {
    }
  }
}

static ucontext_t outer, inner;

static void in_context(void) {
  other_stack_work();
}

static void judge_named(void) {
  flush();
  bc_health end = health();
  printf("%llu signals, %u answers, %u name the function\n", (unsigned long long)end.signals_sent, by_signal, naming);
  CHECK(by_signal >= 50, "%u answers", by_signal);
  CHECK(naming * 10 >= by_signal * 9, "%u of %u name it", naming, by_signal);
  CHECK_OK(bc_uninstall());
}

/* A coroutine: a stack in the middle of the heap. The handler runs on it. */
static void made_context(void) {
  wanted_name = "other_stack_work";
  begin(BC_SAMPLING_AUTO, 0);
  bc_loop *loop = watched("coroutine");
  size_t size = 64 * 1024;
  char *stack = malloc(size);
  CHECK(stack != NULL && getcontext(&inner) == 0, "no context");
  inner.uc_stack.ss_sp = stack;
  inner.uc_stack.ss_size = size;
  inner.uc_link = &outer;
  makecontext(&inner, in_context, 0);
  bc_dispatch_begin(loop, "coroutine", 1);
  CHECK(swapcontext(&outer, &inner) == 0, "swapcontext");
  bc_dispatch_end(loop);
  judge_named();
  free(stack);
}

/* 8 KiB above a page that nobody may touch: what Android 10 and older give a thread for signals. */
static void small_alternate_stack(void) {
  wanted_name = "other_stack_work";
  begin(BC_SAMPLING_AUTO, 0);
  bc_loop *loop = watched("alternate");
  size_t page = 4096, size = 8192;
  char *area = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(area != MAP_FAILED && mprotect(area, page, PROT_NONE) == 0, "mmap");
  char *stack = area + page;
  memset(stack, 0x5a, size);
  stack_t alternate = {.ss_sp = stack, .ss_size = size};
  CHECK(sigaltstack(&alternate, NULL) == 0, "sigaltstack: %s", strerror(errno));
  bc_dispatch_begin(loop, "alternate", 1);
  other_stack_work();
  bc_dispatch_end(loop);
  size_t untouched = 0;
  while (untouched < size && stack[untouched] == 0x5a) {
    untouched++;
  }
  size_t used = size - untouched;
  size_t kernels = getauxval(AT_MINSIGSTKSZ);
  printf("%zu bytes of the alternate stack were used, of which the kernel's frame may be %zu\n", used, kernels);
  CHECK(used > 0, "the alternate stack is not used");
  CHECK(kernels > 0 && used <= kernels + 2048, "more than 2 KiB of our own");
  judge_named();
}

void first_work(unsigned ms);
STAYS void first_work(unsigned ms) {
  spin_ms(ms);
  __asm__ volatile("");
}

void second_work(unsigned ms);
STAYS void second_work(unsigned ms) {
  spin_ms(ms);
  __asm__ volatile("");
}

/* What a thread answers too late belongs to nobody: not to the block that it is in by then. */
static void late_answers(void) {
  begin(BC_SAMPLING_SIGNAL, 0);
  bc_loop *loop = watched("late answers");
  sigset_t all, before;
  sigfillset(&all);
  for (int round = 0; round < 8; round++) {
    bc_dispatch_begin(loop, "first", 1);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    first_work(300);
    bc_dispatch_end(loop);
    bc_dispatch_begin(loop, "second", 2);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    second_work(60);
    bc_dispatch_end(loop);
  }
  flush();
  bc_health end = health();
  printf("%llu signals, %llu unanswered, %u samples of the second blocks, %u of them of the first\n",
         (unsigned long long)end.signals_sent, (unsigned long long)end.samples_unanswered, in_second, foreign);
  CHECK(end.samples_unanswered >= 8, "%llu unanswered", (unsigned long long)end.samples_unanswered);
  CHECK(in_second >= 8 * 10 && foreign == 0, "%u of %u are the first's", foreign, in_second);
  CHECK_OK(bc_uninstall());
}

static atomic_uint theirs;

static void their_handler(int number, siginfo_t *info, void *context) {
  (void)number;
  (void)info;
  (void)context;
  theirs++;
}

static void handle(int number, struct sigaction *previous) {
  struct sigaction action = {.sa_sigaction = their_handler, .sa_flags = SA_SIGINFO | SA_RESTART};
  CHECK(sigaction(number, &action, previous) == 0, "sigaction");
}

static bool is_theirs(int number) {
  struct sigaction now;
  CHECK(sigaction(number, NULL, &now) == 0, "sigaction");
  return (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == their_handler;
}

/* Somebody else puts a handler of theirs where ours was: it stays, and no more signals are sent. */
static void taken_over(void) {
  int number = SIGRTMIN + 7;
  begin(BC_SAMPLING_AUTO, number);
  bc_loop *loop = watched("taken over");
  bc_dispatch_begin(loop, "before", 1);
  spin_ms(200);
  CHECK(health().signals_sent > 0 && !health().signal_taken_over, "%llu signals", (unsigned long long)health().signals_sent);
  struct sigaction ours;
  handle(number, &ours);
  /* The next sample of the running thread finds it. */
  spin_ms(300);
  CHECK(health().signal_taken_over, "not noticed");
  uint64_t sent = health().signals_sent;
  unsigned got = theirs;
  spin_ms(300);
  bc_dispatch_end(loop);
  flush();
  bc_health end = health();
  printf("%llu signals before, %llu at the end, their handler got %u\n", (unsigned long long)sent,
         (unsigned long long)end.signals_sent, theirs);
  CHECK(end.signals_sent == sent && theirs == got && got <= 1, "signals are sent on");
  CHECK(end.signal_taken_over && !end.signal_available, "health says nothing of it");
  CHECK(is_theirs(number), "their handler is gone");
  CHECK_OK(bc_uninstall());
  CHECK(is_theirs(number), "their handler is gone after uninstall");
}

/* A handler that was there before gets what is not ours, and is there again afterwards. */
static void handed_on(void) {
  int number = SIGRTMIN + 7;
  handle(number, NULL);
  begin(BC_SAMPLING_AUTO, number);
  WAIT_FOR(!is_theirs(number), 5000);
  bc_loop *loop = watched("handed on");
  bc_dispatch_begin(loop, "spinning", 1);
  spin_ms(200);
  bc_dispatch_end(loop);
  bc_health middle = health();
  CHECK(middle.signals_sent > 20 && theirs == 0, "%u of %llu signals were handed on", theirs,
        (unsigned long long)middle.signals_sent);
  for (unsigned i = 1; i <= 50; i++) {
    CHECK(raise(number) == 0 && theirs == i, "%u of %u raised", theirs, i);
    CHECK(kill(getpid(), number) == 0, "kill");
    WAIT_FOR(theirs == i + 1, 1000);
    theirs = i;
    CHECK(sigqueue(getpid(), number, (union sigval){.sival_int = 5}) == 0, "sigqueue");
    WAIT_FOR(theirs == i + 1, 1000);
    theirs = i;
  }
  theirs = 0;
  CHECK_OK(bc_stop());
  CHECK(is_theirs(number), "not put back at stop");
  CHECK(raise(number) == 0 && theirs == 1, "not called after stop");
  CHECK_OK(bc_start());
  WAIT_FOR(!is_theirs(number), 5000);
  CHECK_OK(bc_uninstall());
  CHECK(is_theirs(number), "not put back at uninstall");
}

CASES({"keep_errno", keep_errno}, {"made_context", made_context}, {"small_alternate_stack", small_alternate_stack},
      {"late_answers", late_answers}, {"taken_over", taken_over}, {"handed_on", handed_on})
