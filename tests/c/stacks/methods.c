/* What the ways of sampling promise: none by signal, all by signal. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../check.h"
#include "../support/blocks.h"
#include "../support/procfs.h"
#include "../support/stacks.h"

static unsigned by_kernel, by_signal, without;

static void examine(const bc_block *block) {
  for (size_t i = 0; i < block->sample_count && block->state == BC_BLOCK_ENDED; i++) {
    const bc_sample *sample = sample_of(block, i);
    by_kernel += sample->method == BC_SAMPLE_KERNEL_STATE;
    by_signal += sample->method == BC_SAMPLE_SIGNAL;
    without += sample->method == BC_SAMPLE_NO_STACK;
    CHECK((sample->method == BC_SAMPLE_NO_STACK) == (sample->frame_count == 0), "method %u with %zu frames",
          sample->method, sample->frame_count);
    CHECK(sample->thread_state != 0, "no state");
  }
}

/* The set of signals that this process catches, as the kernel has it, but for the two that the C library keeps for itself
 * and takes with the first thread. */
static uint64_t caught(void) {
  char text[8192];
  read_whole("/proc/self/status", text, sizeof text);
  const char *line = strstr(text, "\nSigCgt:\t");
  CHECK(line != NULL, "no SigCgt");
  return strtoull(line + 9, NULL, 16) & ~(3ull << 31);
}

/* Spins in one block and sleeps in another, again until there are so many samples of each kind: on a busy machine two blocks
 * may have few. */
static bc_health block_in_turns(bc_sampling_method method, unsigned kernel, unsigned signal, unsigned no_stack,
                                uint64_t *new_handlers) {
  uint64_t before = caught();
  bc_config config = config_of(50);
  config.sample_interval_ms = 5;
  config.sampling_method = method;
  config.report_ongoing = BC_OFF;
  blocks_examine(examine);
  install_and_start(&config);
  bc_loop *loop = watched("methods");
  uint64_t until = now_ns() + 40000000000ull;
  unsigned rounds = 0;
  do {
    bc_dispatch_begin(loop, "spinning", 1);
    spin_ms(300);
    bc_dispatch_end(loop);
    bc_dispatch_begin(loop, "sleeping", 2);
    sleep_ms(300);
    bc_dispatch_end(loop);
    flush();
    rounds++;
  } while ((by_kernel < kernel || by_signal < signal || without < no_stack) && now_ns() < until);
  bc_health end = health();
  *new_handlers = caught() & ~before;
  printf("%u samples without a signal, %u by signal, %u without stack; %llu signals, %llu waits cut\n", by_kernel,
         by_signal, without, (unsigned long long)end.signals_sent, (unsigned long long)end.waits_cut);
  CHECK(blocks_in(BC_BLOCK_ENDED) == 2 * rounds, "%u blocks in %u rounds", blocks_in(BC_BLOCK_ENDED), rounds);
  CHECK_OK(bc_uninstall());
  CHECK(caught() == before, "a handler is left");
  return end;
}

static void no_signal(void) {
  uint64_t handlers;
  bc_health end = block_in_turns(BC_SAMPLING_NO_SIGNAL, 40, 0, 40, &handlers);
  CHECK(end.signals_sent == 0 && handlers == 0, "%llu signals, handlers %llx", (unsigned long long)end.signals_sent,
        (unsigned long long)handlers);
  CHECK(by_signal == 0 && by_kernel >= 40 && without >= 40, "%u, %u, %u", by_kernel, by_signal, without);
  CHECK(!end.signal_available && end.signal_free_available, "capabilities");
}

static void by_signals(void) {
  uint64_t handlers;
  bc_health end = block_in_turns(BC_SAMPLING_SIGNAL, 0, 80, 0, &handlers);
  CHECK(by_kernel == 0 && by_signal >= 80 && end.signals_sent >= by_signal, "%u, %u, %u", by_kernel, by_signal, without);
  CHECK(handlers != 0 && end.signal_available, "capabilities");
  /* The sleep was interrupted again and again, and the library says so. */
  CHECK(end.waits_cut >= 30, "%llu waits cut", (unsigned long long)end.waits_cut);
}

static void hybrid(void) {
  uint64_t handlers;
  bc_health end = block_in_turns(BC_SAMPLING_AUTO, 40, 30, 0, &handlers);
  CHECK(by_kernel >= 40 && by_signal >= 30 && end.waits_cut == 0, "%u, %u, %u", by_kernel, by_signal, without);
  CHECK(end.signal_available && end.signal_free_available, "capabilities");
}

static void off(void) {
  uint64_t handlers;
  bc_health end = block_in_turns(BC_SAMPLING_OFF, 0, 0, 0, &handlers);
  CHECK(handlers == 0 && end.signals_sent == 0 && by_kernel + by_signal + without == 0, "samples were taken");
}

CASES({"no_signal", no_signal}, {"by_signals", by_signals}, {"hybrid", hybrid}, {"off", off})
