/* A thread that runs and sleeps in turn while it is sampled: hardly a sleep is cut short. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "../check.h"
#include "../support/blocks.h"

#define BUSY_MS 4
#define ASLEEP_MS 6

static void alternate(unsigned seconds) {
  bc_config config = config_of(50);
  config.sample_interval_ms = 10;
  config.report_ongoing = BC_OFF;
  install_and_start(&config);
  bc_loop *loop = watched("alternating");
  uint64_t until = now_ns() + seconds * 1000000000ull;
  unsigned sleeps = 0, cut = 0, interrupted = 0, dispatches = 0;
  while (now_ns() < until) {
    bc_dispatch_begin(loop, "alternating", ++dispatches);
    for (int i = 0; i < 100; i++, sleeps++) {
      /* Another pace than the sampler's, so that its looks fall everywhere. */
      spin_ms(BUSY_MS);
      struct timespec time = {.tv_nsec = ASLEEP_MS * 1000000};
      uint64_t begin = now_ns();
      int result = nanosleep(&time, NULL);
      interrupted += result != 0 && errno == EINTR;
      cut += now_ns() - begin < ASLEEP_MS * 1000000ull;
    }
    bc_dispatch_end(loop);
  }
  flush();
  bc_health end = health();
  unsigned taken = 0, with_stack = 0;
  for (unsigned i = 0; i < blocks_told(); i++) {
    taken += blocks_at(i)->samples;
    with_stack += blocks_at(i)->samples_with_stack;
  }
  printf("%u s: %u sleeps, %u of them cut short, %u interrupted; %llu signals, %llu waits cut by the library's own "
         "count; %u samples, %u with stack, %llu unanswered\n",
         seconds, sleeps, cut, interrupted, (unsigned long long)end.signals_sent, (unsigned long long)end.waits_cut,
         taken, with_stack, (unsigned long long)end.samples_unanswered);
  CHECK(blocks_in(BC_BLOCK_ENDED) == dispatches, "%u blocks of %u", blocks_in(BC_BLOCK_ENDED), dispatches);
  CHECK(end.signals_sent >= seconds * 10, "only %llu signals", (unsigned long long)end.signals_sent);
  /* At most one in 1,000; in a short run one may always happen. */
  uint64_t most = end.signals_sent / 1000 < 1 ? 1 : end.signals_sent / 1000;
  CHECK(cut <= most && interrupted <= most && end.waits_cut <= most, "of %llu signals",
        (unsigned long long)end.signals_sent);
  CHECK(with_stack * 10 >= taken * 8, "%u of %u samples have a stack", with_stack, taken);
  CHECK_OK(bc_uninstall());
}

static void quarter_of_a_minute(void) {
  alternate(15);
}

static void minute(void) {
  alternate(60);
}

CASES({"quarter_of_a_minute", quarter_of_a_minute}, {"minute", minute})
