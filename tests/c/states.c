/* What listeners are told of one block, and what closes it. */
#include <stdatomic.h>
#include <string.h>

#include "check.h"
#include "support/blocks.h"

static void order(void) {
  bc_config config = config_of(50);
  config.hang_threshold_ms = 1000; /* so long after the first limit that the monitor looks in between */
  install_and_start(&config);
  bc_loop *loop = watched("ordered");
  for (unsigned i = 1; i <= 3; i++) {
    bc_dispatch_begin(loop, "late", i);
    spin_ms(300);
    WAIT_FOR(blocks_told() == 3 * i - 1, 20000);
    bc_dispatch_end(loop);
    flush();
    CHECK(blocks_told() == 3 * i, "%u told after %u blocks", blocks_told(), i);
    const struct told *ongoing = blocks_at(3 * i - 3), *hang = blocks_at(3 * i - 2), *ended = blocks_at(3 * i - 1);
    CHECK(ongoing->state == BC_BLOCK_ONGOING && hang->state == BC_BLOCK_HANG && ended->state == BC_BLOCK_ENDED,
          "states %u %u %u", ongoing->state, hang->state, ended->state);
    CHECK(ongoing->id == ended->id && hang->id == ended->id, "ids %llu %llu %llu", (unsigned long long)ongoing->id,
          (unsigned long long)hang->id, (unsigned long long)ended->id);
    CHECK(ended->id < 1ull << 53, "id %llx", (unsigned long long)ended->id);
    CHECK(ongoing->wall_ns > 50000000 && ongoing->wall_ns <= hang->wall_ns && hang->wall_ns > 1000000000 &&
              hang->wall_ns <= ended->wall_ns,
          "durations %llu %llu %llu", (unsigned long long)ongoing->wall_ns, (unsigned long long)hang->wall_ns,
          (unsigned long long)ended->wall_ns);
    CHECK(ongoing->start_ns == ended->start_ns && ongoing->start_unix_ms == ended->start_unix_ms, "another begin");
    CHECK(ended->tag == i && strcmp(ended->what, "late") == 0 && strcmp(ended->loop_name, "ordered") == 0,
          "tag %d, what %s, loop %s", (int)ended->tag, ended->what, ended->loop_name);
    CHECK(ended->threshold_ns == 50000000, "threshold %llu", (unsigned long long)ended->threshold_ns);
    CHECK(ended->cpu_ns > 0 && ended->cpu_ns <= ended->wall_ns + 1000000, "CPU time %llu of %llu",
          (unsigned long long)ended->cpu_ns, (unsigned long long)ended->wall_ns);
  }
  CHECK(blocks_at(2)->id != blocks_at(5)->id && blocks_at(5)->id != blocks_at(8)->id, "an id came twice");
  bc_health end = health();
  CHECK(end.blocks_seen == 3 && end.blocks_delivered == 3 && end.blocks_dropped == 0 && end.blocks_filtered == 0,
        "%d seen, %d delivered, %d dropped", (int)end.blocks_seen, (int)end.blocks_delivered, (int)end.blocks_dropped);
  CHECK_OK(bc_uninstall());
}

static void ongoing_off(void) {
  bc_config config = config_of(50);
  config.report_ongoing = BC_OFF;
  install_and_start(&config);
  blocking_dispatch(watched("quiet"), "late", 1, 200);
  flush();
  CHECK(blocks_in(BC_BLOCK_ONGOING) == 0 && blocks_in(BC_BLOCK_ENDED) == 1, "%u ongoing, %u ended",
        blocks_in(BC_BLOCK_ONGOING), blocks_in(BC_BLOCK_ENDED));
  CHECK_OK(bc_uninstall());
}

/* A block whose dispatch never ends is delivered as long as it goes on. */
static void told_while_open(void) {
  bc_config config = config_of(50);
  install_and_start(&config);
  bc_loop *loop = watched("open");
  bc_dispatch_begin(loop, "open", 1);
  WAIT_FOR(blocks_in(BC_BLOCK_ONGOING) == 1, 20000);
  CHECK(blocks_in(BC_BLOCK_ENDED) == 0, "ended while open");
  bc_dispatch_end(loop);
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1, "%u ended", blocks_in(BC_BLOCK_ENDED));
  CHECK_OK(bc_uninstall());
}

/* The block that is open is closed by `close`, its dispatch still open: the duration ends there. */
static void closed_by(bc_loop *loop, bc_status (*close)(void)) {
  uint64_t begun = now_ns();
  bc_dispatch_begin(loop, "closed", 1);
  spin_ms(120);
  CHECK_OK(close());
  uint64_t closed = now_ns();
  spin_ms(200);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 1) == 1, "%u ended", blocks_tagged(BC_BLOCK_ENDED, 1));
  const struct told *ended = blocks_get(BC_BLOCK_ENDED, 1);
  CHECK(ended->wall_ns >= 120000000 && ended->wall_ns <= closed - begun, "%llu ns of %llu",
        (unsigned long long)ended->wall_ns, (unsigned long long)(closed - begun));
}

/* Open dispatches go on afterwards as if begun then. */
static void goes_on(bc_loop *loop, bc_status (*open)(void)) {
  CHECK_OK(open());
  spin_ms(20);
  bc_dispatch_end(loop);
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1, "a short rest was reported: %u", blocks_in(BC_BLOCK_ENDED));
  CHECK(health().calls_misused == 0, "the end after it was misuse");
}

static void paused(void) {
  bc_config config = config_of(50);
  install_and_start(&config);
  bc_loop *loop = watched("paused");
  closed_by(loop, bc_pause);
  goes_on(loop, bc_resume);

  /* A rest above the limit is a block again. */
  bc_dispatch_begin(loop, "twice", 2);
  CHECK_OK(bc_pause());
  CHECK_OK(bc_pause());
  spin_ms(100);
  CHECK_OK(bc_resume());
  spin_ms(100);
  CHECK(bc_is_running(), "a pause is not a stop");
  CHECK_OK(bc_resume());
  spin_ms(120);
  bc_dispatch_end(loop);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 2) == 1, "%u ended", blocks_tagged(BC_BLOCK_ENDED, 2));
  const struct told *rest = blocks_get(BC_BLOCK_ENDED, 2);
  CHECK(rest->wall_ns >= 119000000 && rest->wall_ns < 200000000, "%llu ns", (unsigned long long)rest->wall_ns);

  /* Counted, and it survives stop and start. */
  CHECK_STATUS(bc_resume(), BC_ERROR_INVALID_STATE);
  CHECK_OK(bc_pause());
  CHECK_OK(bc_stop());
  CHECK_OK(bc_start());
  blocking_dispatch(loop, "still paused", 3, 120);
  CHECK_OK(bc_resume());
  blocking_dispatch(loop, "resumed", 4, 120);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 3) == 0 && blocks_tagged(BC_BLOCK_ENDED, 4) == 1, "%u and %u",
        blocks_tagged(BC_BLOCK_ENDED, 3), blocks_tagged(BC_BLOCK_ENDED, 4));
  CHECK_OK(bc_uninstall());
}

static void stopped(void) {
  bc_config config = config_of(50);
  install_and_start(&config);
  bc_loop *loop = watched("stopped");
  closed_by(loop, bc_stop);
  goes_on(loop, bc_start);
  CHECK_OK(bc_uninstall());
}

static bc_loop *leaving;
static atomic_int step;

static bc_status unwatch_elsewhere(void) {
  return bc_loop_unwatch(leaving);
}

static void unwatched(void) {
  bc_config config = config_of(50);
  install_and_start(&config);
  leaving = watched("unwatched");
  closed_by(leaving, unwatch_elsewhere);
  bc_dispatch_end(leaving);
  blocking_dispatch(leaving, "gone", 2, 120);
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1, "%u blocks", blocks_in(BC_BLOCK_ENDED));
  CHECK(watched("again") != leaving, "the token is the same again");
  CHECK_OK(bc_uninstall());
}

static void *unwatched_from_outside_thread(void *argument) {
  leaving = watched("left");
  bc_dispatch_begin(leaving, "left", 5);
  WAIT_FOR(blocks_tagged(BC_BLOCK_ONGOING, 5) == 1, 20000);
  atomic_store(&step, 1);
  WAIT_FOR(atomic_load(&step) == 2, 20000);
  return argument;
}

static void unwatched_from_outside(void) {
  bc_config config = config_of(50);
  install_and_start(&config);
  unsigned long thread = start_thread(unwatched_from_outside_thread, NULL);
  WAIT_FOR(atomic_load(&step) == 1, 20000);
  CHECK_OK(bc_loop_unwatch(leaving));
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 5) == 1, "%u ended", blocks_tagged(BC_BLOCK_ENDED, 5));
  atomic_store(&step, 2);
  join_thread(thread);
  CHECK_OK(bc_uninstall());
}

static void *exiting_thread(void *argument) {
  bc_loop *loop = watched("exiting");
  bc_dispatch_begin(loop, "never ended", 9);
  spin_ms(150);
  return argument;
}

static void thread_exit(void) {
  bc_config config = config_of(50);
  install_and_start(&config);
  join_thread(start_thread(exiting_thread, NULL));
  WAIT_FOR(blocks_tagged(BC_BLOCK_ENDED, 9) == 1, 20000);
  WAIT_FOR(health().loops_watched == 0, 20000);
  CHECK(blocks_get(BC_BLOCK_ENDED, 9)->wall_ns >= 150000000, "%llu ns",
        (unsigned long long)blocks_get(BC_BLOCK_ENDED, 9)->wall_ns);
  CHECK_OK(bc_uninstall());
}

CASES({"order", order}, {"ongoing_off", ongoing_off}, {"told_while_open", told_while_open}, {"paused", paused},
      {"stopped", stopped}, {"unwatched", unwatched}, {"unwatched_from_outside", unwatched_from_outside},
      {"thread_exit", thread_exit})
