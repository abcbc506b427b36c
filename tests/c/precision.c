/* A thousand stretches at random phases, of durations around the limit: every late one is told, no other, and with the
   duration that the program's own clock gives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/load.h"
#include "support/procfs.h"

#define STRETCHES 1000
#define LIMIT_MS 40
#define LIMIT_NS (LIMIT_MS * 1000000ull)
#define AROUND_MS 15
#define DEAD_BAND_NS 2000000ull

/* When a stretch began and ended at the latest and at the earliest: the marks' own reads of the clock lie between. */
static struct timed {
  uint64_t begin_from, begin_to, end_from, end_to;
  /* When the loop had said that it is idle. */
  uint64_t idle_to;
  int32_t tid;
} timed[STRETCHES];

struct part {
  void (*block)(unsigned ms);
  void (*begin)(bc_loop *loop), (*end)(bc_loop *loop);
  unsigned first, count;
};

static void begins(bc_loop *loop) { bc_dispatch_begin(loop, "timed", 1); }
static void ends(bc_loop *loop) { bc_dispatch_end(loop); }
static void beats(bc_loop *loop) { bc_loop_beat(loop); }

static void *stretches(void *argument) {
  const struct part *part = argument;
  bc_loop *loop = watched("precise");
  unsigned seed = part->first + 1;
  for (unsigned i = part->first; i < part->first + part->count; i++) {
    sleep_ms(1 + (unsigned)rand_r(&seed) % 25); /* any phase of whatever the monitor does */
    struct timed *mine = &timed[i];
    mine->tid = (int32_t)syscall(SYS_gettid);
    mine->begin_from = now_ns();
    part->begin(loop);
    mine->begin_to = now_ns();
    part->block(LIMIT_MS - AROUND_MS + (unsigned)rand_r(&seed) % (2 * AROUND_MS + 1));
    mine->end_from = now_ns();
    part->end(loop);
    mine->end_to = now_ns();
    bc_loop_idle(loop);
    mine->idle_to = now_ns();
  }
  return NULL;
}

/* The beat that ends one begins another stretch, until the loop says that it is idle: a thread that has no processor in
 * between is late there, too. */
static bool is_after(const struct told *block, const struct timed *stretch) {
  return stretch->tid == block->tid && block->start_ns >= stretch->end_from && block->start_ns <= stretch->end_to &&
         stretch->idle_to - stretch->end_from > LIMIT_NS;
}

/* Tells of each block that belongs to no stretch, and where it lies beside the one that began last before it. */
static void tell_strangers(void) {
  for (unsigned n = 0; n < blocks_told(); n++) {
    const struct told *block = blocks_at(n);
    const struct timed *before = NULL;
    bool belongs = block->state != BC_BLOCK_ENDED;
    for (unsigned i = 0; i < STRETCHES; i++) {
      const struct timed *each = &timed[i];
      if (each->tid == block->tid && each->begin_from <= block->start_ns) {
        belongs |= block->start_ns <= each->begin_to || is_after(block, each);
        before = before == NULL || each->begin_from > before->begin_from ? each : before;
      }
    }
    if (!belongs && before != NULL) {
      printf("  a stranger: %.3f ms, begins %.3f ms after the begin of a stretch of %.3f ms: cause %u, %s\n",
             (double)block->wall_ns / 1e6, (double)(block->start_ns - before->begin_from) / 1e6,
             (double)(before->end_to - before->begin_from) / 1e6, block->cause, block->detail);
    }
  }
}

static void judge(const char *kind) {
  unsigned late = 0, on_time = 0, missed = 0, wrong = 0, off = 0, twice = 0, found = 0;
  int64_t worst = 0;
  for (unsigned i = 0; i < STRETCHES; i++) {
    const struct timed *mine = &timed[i];
    uint64_t least = mine->end_from - mine->begin_to, most = mine->end_to - mine->begin_from;
    unsigned reported = 0;
    const struct told *told = NULL;
    for (unsigned n = 0; n < blocks_told(); n++) {
      const struct told *each = blocks_at(n);
      if (each->state == BC_BLOCK_ENDED && each->start_ns >= mine->begin_from && each->start_ns <= mine->begin_to &&
          each->tid == mine->tid) {
        told = each;
        reported++;
      }
      found += each->state == BC_BLOCK_ENDED && is_after(each, mine);
    }
    found += reported;
    late += least > LIMIT_NS + DEAD_BAND_NS;
    on_time += most < LIMIT_NS - DEAD_BAND_NS;
    missed += least > LIMIT_NS + DEAD_BAND_NS && reported == 0;
    wrong += most < LIMIT_NS - DEAD_BAND_NS && reported > 0;
    twice += reported > 1;
    if (told != NULL) {
      int64_t wall = (int64_t)told->wall_ns;
      int64_t error = wall < (int64_t)least ? wall - (int64_t)least : wall > (int64_t)most ? wall - (int64_t)most : 0;
      off += llabs(error) > (int64_t)DEAD_BAND_NS;
      worst = llabs(error) > llabs(worst) ? error : worst;
    }
  }
  printf("%s: %u stretches, %u late, %u on time: %u missed, %u false, %u twice, %u durations off, the worst by %.3f ms\n", kind,
         STRETCHES, late, on_time, missed, wrong, twice, off, (double)worst / 1e6);
  tell_strangers();
  CHECK(late >= STRETCHES / 4, "only %u late", late);
  CHECK(missed == 0 && wrong == 0 && twice == 0 && off == 0, "%u missed, %u false, %u twice, %u off", missed, wrong,
        twice, off);
  CHECK(found == blocks_in(BC_BLOCK_ENDED), "%u told that belong to no stretch", blocks_in(BC_BLOCK_ENDED) - found);
}

/* `loops` threads share the stretches. */
static void measure(const char *kind, struct part part, unsigned loops) {
  bc_config config = config_of(LIMIT_MS);
  config.report_dir = fresh_directory("precision");
  install_and_start(&config);
  struct part parts[4];
  unsigned long workers[4];
  for (unsigned i = 0; i < loops; i++) {
    parts[i] = part;
    parts[i].first = i * STRETCHES / loops;
    parts[i].count = STRETCHES / loops;
    workers[i] = start_thread(stretches, &parts[i]);
  }
  for (unsigned i = 0; i < loops; i++) {
    join_thread(workers[i]);
  }
  flush();
  judge(kind);
  bc_health end = health();
  CHECK(end.blocks_seen == blocks_in(BC_BLOCK_ENDED) && end.blocks_dropped == 0, "%d seen, %u told, %d dropped",
        (int)end.blocks_seen, blocks_in(BC_BLOCK_ENDED), (int)end.blocks_dropped);
  CHECK_OK(bc_uninstall());
}

static const struct part spins = {.block = spin_ms, .begin = begins, .end = ends};
static const struct part sleeps = {.block = sleep_ms, .begin = begins, .end = ends};
static const struct part spinning_beats = {.block = spin_ms, .begin = beats, .end = beats};
static const struct part sleeping_beats = {.block = sleep_ms, .begin = beats, .end = beats};

static void spinning(void) { measure("dispatches that spin", spins, 2); }
static void sleeping(void) { measure("dispatches that sleep", sleeps, 4); }
static void beating(void) {
  measure("gaps between beats", sleeping_beats, 4);
}

static void spinning_under_load(void) {
  load_every_core(2);
  measure("dispatches that spin, under load", spins, 2);
}

static void sleeping_under_load(void) {
  load_every_core(2);
  measure("dispatches that sleep, under load", sleeps, 4);
}

static void beating_under_load(void) {
  load_every_core(2);
  measure("gaps between beats, under load", spinning_beats, 2);
}

CASES({"spinning", spinning}, {"sleeping", sleeping}, {"beating", beating}, {"spinning_under_load", spinning_under_load},
      {"sleeping_under_load", sleeping_under_load}, {"beating_under_load", beating_under_load})
