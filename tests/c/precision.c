/* 200 dispatches each of about 85 and 130 ms at a threshold of 100 ms: every late one is reported, no other, and with
   the duration that the program's own clock gives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "support/blocks.h"
#include "support/load.h"
#include "support/procfs.h"

#define DISPATCHES 400
#define DEAD_BAND_NS 2000000

/* When a dispatch began and ended at the latest and at the earliest: the marks' own reads of the clock lie between. */
static struct timed {
  uint64_t begin_from, begin_to, end_from, end_to;
} timed[DISPATCHES];

struct part {
  void (*block)(unsigned ms);
  unsigned first, count;
};

static void *dispatches(void *argument) {
  const struct part *part = argument;
  bc_loop *loop = watched("precise");
  unsigned seed = part->first + 1;
  for (unsigned i = part->first; i < part->first + part->count; i++) {
    sleep_ms(1 + (unsigned)rand_r(&seed) % 25); /* any phase of whatever the monitor does */
    struct timed *mine = &timed[i];
    mine->begin_from = now_ns();
    bc_dispatch_begin(loop, "timed", i);
    mine->begin_to = now_ns();
    part->block(i % 2 == 0 ? 85 : 130);
    mine->end_from = now_ns();
    bc_dispatch_end(loop);
    mine->end_to = now_ns();
  }
  return NULL;
}

static void judge(void) {
  unsigned late = 0, on_time = 0, missed = 0, wrong = 0, off = 0, twice = 0;
  int64_t worst = 0;
  for (unsigned i = 0; i < DISPATCHES; i++) {
    const struct timed *mine = &timed[i];
    uint64_t least = mine->end_from - mine->begin_to, most = mine->end_to - mine->begin_from;
    unsigned reported = blocks_tagged(BC_BLOCK_ENDED, i);
    late += least > 100000000 + DEAD_BAND_NS;
    on_time += most < 100000000 - DEAD_BAND_NS;
    missed += least > 100000000 + DEAD_BAND_NS && reported == 0;
    wrong += most < 100000000 - DEAD_BAND_NS && reported > 0;
    twice += reported > 1;
    if (reported > 0) {
      int64_t wall = (int64_t)blocks_get(BC_BLOCK_ENDED, i)->wall_ns;
      int64_t error = wall < (int64_t)least ? wall - (int64_t)least : wall > (int64_t)most ? wall - (int64_t)most : 0;
      off += llabs(error) > DEAD_BAND_NS;
      worst = llabs(error) > llabs(worst) ? error : worst;
    }
  }
  printf("%u late, %u on time: %u missed, %u false, %u twice, %u durations off, the worst by %.3f ms\n", late, on_time,
         missed, wrong, twice, off, (double)worst / 1e6);
  CHECK(late >= DISPATCHES / 2, "only %u late", late);
  CHECK(missed == 0 && wrong == 0 && twice == 0 && off == 0, "%u missed, %u false, %u twice, %u off", missed, wrong,
        twice, off);
}

/* `loops` threads share the dispatches. */
static void measure(void (*block)(unsigned), unsigned loops) {
  bc_config config = config_of(100);
  config.report_dir = fresh_directory("precision");
  install_and_start(&config);
  struct part parts[4];
  unsigned long workers[4];
  for (unsigned i = 0; i < loops; i++) {
    parts[i] = (struct part){.block = block, .first = i * DISPATCHES / loops, .count = DISPATCHES / loops};
    workers[i] = start_thread(dispatches, &parts[i]);
  }
  for (unsigned i = 0; i < loops; i++) {
    join_thread(workers[i]);
  }
  flush();
  judge();
  bc_health end = health();
  CHECK(end.blocks_seen == blocks_in(BC_BLOCK_ENDED) && end.blocks_dropped == 0, "%d seen, %u told, %d dropped",
        (int)end.blocks_seen, blocks_in(BC_BLOCK_ENDED), (int)end.blocks_dropped);
  CHECK_OK(bc_uninstall());
}

static void spinning(void) {
  measure(spin_ms, 1);
}

static void sleeping(void) {
  measure(sleep_ms, 4);
}

static void spinning_under_load(void) {
  load_every_core(2);
  measure(spin_ms, 1);
}

static void sleeping_under_load(void) {
  load_every_core(2);
  measure(sleep_ms, 4);
}

CASES({"spinning", spinning}, {"sleeping", sleeping}, {"spinning_under_load", spinning_under_load},
      {"sleeping_under_load", sleeping_under_load})
