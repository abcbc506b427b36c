/* A thread that changes between two stacks with the same addresses but other functions: no sample mixes them. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../check.h"
#include "../support/blocks.h"
#include "../support/stacks.h"

#define LEVELS 6

static void doze(unsigned us) {
  struct timespec time = {.tv_nsec = us * 1000};
  nanosleep(&time, NULL);
}

/* Where both stacks meet again: the same code at the same stack pointer. */
void twin_wait(unsigned us);
STAYS void twin_wait(unsigned us) {
  doze(us);
  __asm__ volatile("");
}

static uintptr_t depth_of[2];

#define LEVEL(twin, outer, inner)                                      \
  void twin##_##outer(unsigned us);                                    \
  STAYS void twin##_##outer(unsigned us) {         \
    twin##_##inner(us);                                                \
    __asm__ volatile("");                                              \
  }
#define LOWEST(twin, index)                                            \
  void twin##_1(unsigned us);                                          \
  STAYS void twin##_1(unsigned us) {               \
    depth_of[index] = (uintptr_t)__builtin_frame_address(0);           \
    twin_wait(us);                                                     \
    __asm__ volatile("");                                              \
  }
#define TWIN(twin, index)                                                                                  \
  LOWEST(twin, index)                                                                                      \
  LEVEL(twin, 2, 1) LEVEL(twin, 3, 2) LEVEL(twin, 4, 3) LEVEL(twin, 5, 4) LEVEL(twin, 6, 5)
TWIN(castor, 0)
TWIN(pollux, 1)

static atomic_uint attempts, accepted, by_kernel, torn, pure[2];

/* -1: holds none of both; 2: both, or one not whole. */
static int judge(const bc_block *block, const bc_sample *sample) {
  unsigned levels[2] = {0, 0};
  bool waits = stack_find(block, sample, "twin_wait", 0) >= 0;
  int last = -1;
  bool in_order = true;
  for (size_t i = 0; i < sample->frame_count; i++) {
    const char *symbol = frame_of(block, sample, i)->symbol;
    for (int twin = 0; symbol != NULL && twin < 2; twin++) {
      const char *prefix = twin == 0 ? "castor_" : "pollux_";
      if (strncmp(symbol, prefix, 7) == 0) {
        int level = symbol[7] - '0';
        in_order &= last < 0 || level == last + 1;
        last = level;
        levels[twin]++;
      }
    }
  }
  if (levels[0] + levels[1] == 0 && !waits) {
    return -1;
  }
  if ((levels[0] != 0) == (levels[1] != 0) || !in_order || last != LEVELS || (waits && levels[0] + levels[1] != LEVELS)) {
    return 2;
  }
  return levels[0] != 0 ? 0 : 1;
}

static void examine(const bc_block *block) {
  if (block->state != BC_BLOCK_ENDED) {
    return;
  }
  for (size_t i = 0; i < block->sample_count; i++) {
    const bc_sample *sample = sample_of(block, i);
    atomic_fetch_add(&attempts, 1);
    if (sample->frame_count == 0) {
      continue;
    }
    atomic_fetch_add(&accepted, 1);
    atomic_fetch_add(&by_kernel, sample->method == BC_SAMPLE_KERNEL_STATE);
    int found = judge(block, sample);
    if (found == 2 && atomic_fetch_add(&torn, 1) < 3) {
      stack_print(block, sample);
    }
    if (found == 0 || found == 1) {
      atomic_fetch_add(&pure[found], 1);
    }
  }
}

static bc_loop *begin(bc_sampling_method method) {
  bc_config config = config_of(10);
  config.sample_interval_ms = 1;
  config.sample_capacity = 1024;
  config.report_ongoing = BC_OFF;
  config.sampling_method = method;
  blocks_examine(examine);
  install_and_start(&config);
  return watched("twins");
}

/* Changes between the two stacks until enough samples are accepted. */
static void alternate(bc_sampling_method method, unsigned us, unsigned wanted) {
  bc_loop *loop = begin(method);
  unsigned dispatches = 0;
  uint64_t limit = now_ns() + 500000000000ull;
  while (atomic_load(&accepted) < wanted && now_ns() < limit) {
    uint64_t until = now_ns() + 400000000;
    bc_dispatch_begin(loop, "twins", ++dispatches);
    while (now_ns() < until) {
      castor_6(us);
      pollux_6(us);
    }
    bc_dispatch_end(loop);
  }
  flush();
  CHECK(depth_of[0] == depth_of[1], "the twins' stacks differ: %lx and %lx", (long)depth_of[0], (long)depth_of[1]);
  bc_health end = health();
  printf("waits of %u us: %u attempts, %u accepted (%.1f %%), %u without a signal, %u of one twin, %u of the other, %u "
         "torn; %llu signals, %llu samples lost\n",
         us, attempts, accepted, 100.0 * accepted / attempts, by_kernel, pure[0], pure[1], torn,
         (unsigned long long)end.signals_sent, (unsigned long long)end.samples_lost);
  CHECK(torn == 0, "%u torn", torn);
  CHECK(accepted >= wanted, "%u accepted", accepted);
  CHECK(accepted * 5 >= attempts, "%u of %u accepted", accepted, attempts);
  CHECK(pure[0] * 4 >= wanted && pure[1] * 4 >= wanted, "one twin is hardly seen");
  CHECK_OK(bc_uninstall());
}

static void some(void) {
  alternate(BC_SAMPLING_NO_SIGNAL, 100, 2000);
}

static void some_hybrid(void) {
  alternate(BC_SAMPLING_AUTO, 100, 2000);
}

static void ten_thousand(void) {
  alternate(BC_SAMPLING_NO_SIGNAL, 100, 10000);
}

static void ten_thousand_hybrid(void) {
  alternate(BC_SAMPLING_AUTO, 20, 10000);
}

/* Every look at a thread that stays where it is gives its stack. */
static void staying(void) {
  bc_loop *loop = begin(BC_SAMPLING_NO_SIGNAL);
  bc_dispatch_begin(loop, "staying", 1);
  castor_6(900000);
  bc_dispatch_end(loop);
  flush();
  printf("staying: %u attempts, %u accepted (%.1f %%), %u torn\n", attempts, accepted, 100.0 * accepted / attempts, torn);
  CHECK(attempts >= 500, "%u attempts", attempts);
  CHECK(torn == 0 && accepted * 10 >= attempts * 9, "%u of %u accepted, %u torn", accepted, attempts, torn);
  CHECK_OK(bc_uninstall());
}

CASES({"some", some}, {"some_hybrid", some_hybrid}, {"ten_thousand", ten_thousand},
      {"ten_thousand_hybrid", ten_thousand_hybrid}, {"staying", staying})
