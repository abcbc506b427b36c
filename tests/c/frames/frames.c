/* A thread's frames, as its choreographer tells them, held against what a frame callback of the program's own sees. */
#include <android/looper.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../android/display.h"
#include "../check.h"
#include "../support/blocks.h"
#include "../support/procfs.h"
#include "polling.h"

static bc_loop *loop;

static void watch(void) {
  CHECK_OK(bc_frames_watch("frames", &loop));
}

static unsigned long started(uint32_t threshold_ms) {
  bc_config config = config_of(threshold_ms);
  install_and_start(&config);
  unsigned long thread = polling_thread();
  have_done(watch);
  return thread;
}

static bc_loop_stats stats(void) {
  bc_loop_stats stats = {.struct_size = sizeof stats};
  CHECK_OK(bc_loop_stats_get(loop, &stats));
  return stats;
}

/* The program's own frame callback, called in the same frames as the library's and after it, in which it counts for
 * itself; the library's counts are taken in the first one and the last. */
static struct {
  long last, period, period_before;
  unsigned spin_ms, spin_each, wanted, frames, missed, late, lagging, changes;
  bc_loop_stats begin, end;
} own;
static atomic_bool counted;

/* Another rate each 16 frames, if there is to be more than one. */
static const long periods[] = {16666667, 8333333, 11111111, 16666667, 33333333};
static unsigned rates;

static void own_frame(long time, void *data) {
  if (own.last == 0) {
    own.begin = stats();
  } else {
    long period = own.period > own.period_before ? own.period : own.period_before;
    own.period_before = own.period;
    long gone = (time - own.last + period / 2) / period;
    own.missed += gone > 1 ? (unsigned)gone - 1 : 0;
    own.late += time - own.last > 16700000;
    own.frames++;
  }
  own.last = time;
  if (own.frames == own.wanted) {
    own.end = stats();
    atomic_store(&counted, true);
    return;
  }
  if (rates > 1 && own.frames % 16 == 15) {
    own.period = periods[++own.changes % rates];
    display_set_period(own.period);
  }
  own.lagging += (long)now_ns() - time > own.period / 2;
  if (own.spin_ms != 0 && own.frames % own.spin_each == 0) {
    spin_ms(own.spin_ms);
  }
  AChoreographer_postFrameCallback(AChoreographer_getInstance(), own_frame, data);
}

static void begin_to_count(void) {
  own.last = 0;
  own.frames = own.missed = own.late = own.lagging = own.changes = 0;
  own.period = own.period_before = periods[0];
  AChoreographer_postFrameCallback(AChoreographer_getInstance(), own_frame, NULL);
}

/* Runs so many frames, each so many of which take long; gives how many more the library says were missed. */
static int count_frames(unsigned wanted, unsigned each, unsigned spin) {
  own.wanted = wanted;
  own.spin_each = each;
  own.spin_ms = spin;
  /* A few frames in which the library sees the rate. */
  display_set_period(periods[0]);
  uint64_t seen = stats().dispatches;
  WAIT_FOR(stats().dispatches >= seen + 6, 20000);
  atomic_store(&counted, false);
  have_done(begin_to_count);
  WAIT_FOR(atomic_load(&counted), 60000);
  unsigned dispatches = (unsigned)(own.end.dispatches - own.begin.dispatches);
  unsigned missed = (unsigned)(own.end.missed_frames - own.begin.missed_frames);
  unsigned late = (unsigned)(own.end.slow_count - own.begin.slow_count);
  printf("%u frames, %u missed, %u slow; counted %u, %u, %u\n", own.frames, own.missed, own.late, dispatches, missed, late);
  CHECK(dispatches == own.frames && late == own.late, "counted %u frames, %u slow", dispatches, late);
  CHECK(own.end.busy_ns == 0 && own.end.blocks == 0, "%llu blocks", (unsigned long long)own.end.blocks);
  return (int)missed - (int)own.missed;
}

/* Regular frames, and some that take 45 ms: the next one is late, and at least one after it missed. */
static void intervals(void) {
  unsigned long thread = started(30000);
  int more = count_frames(60, 1, 0);
  CHECK(more == 0, "%d missed too many", more);
  more = count_frames(60, 4, 45);
  CHECK(more == 0 && own.missed >= 14, "%d missed too many, of %u", more, own.missed);
  bc_loop_stats now = stats();
  CHECK(now.max_ns >= 33000000 && now.p50_ns >= 15000000 && now.p50_ns <= now.max_ns, "max %llu, p50 %llu",
        (unsigned long long)now.max_ns, (unsigned long long)now.p50_ns);
  CHECK_OK(bc_uninstall());
  end_polling(thread);
}

/* A display that changes its rate, as the system tells. */
static void rates_told(void) {
  unsigned long thread = started(30000);
  rates = sizeof periods / sizeof periods[0];
  int more = count_frames(16 * 12, 1, 0);
  CHECK(more == 0 && own.changes == 12, "%d missed too many", more);
  more = count_frames(16 * 12, 4, 40);
  CHECK(more == 0 && own.missed > 12, "%d missed too many, of %u", more, own.missed);
  /* None is asked for in time to tell the rate by itself. */
  more = count_frames(16 * 6, 1, 40);
  CHECK(more == 0 && own.changes == 6, "%d missed too many, of %u", more, own.missed);
  CHECK_OK(bc_uninstall());
  end_polling(thread);
}

/* As the frames themselves tell, of which two are needed to believe in another rate. A thread that gets no processor for
 * half a period asks for the next frame so late that this one tells nothing, nor does it together with the one before. */
static void rates_seen(void) {
  unsigned long thread = started(30000);
  rates = sizeof periods / sizeof periods[0];
  int more = count_frames(16 * 12, 1, 0);
  int by_lag = 6 * (int)own.lagging;
  CHECK(more >= -12 - by_lag && more <= 12 + by_lag, "%d missed too many in %u changes, %u frames asked for late", more,
        own.changes, own.lagging);
  CHECK_OK(bc_uninstall());
  end_polling(thread);
}

static uint64_t spun_from, spun_to;

STAYS static void work_too_long(void) {
  spun_from = now_ns();
  spin_ms(500);
  spun_to = now_ns();
}

/* And until it is told while it goes on. */
STAYS static void work_until_told(void) {
  unsigned before = blocks_in(BC_BLOCK_ONGOING);
  spun_from = now_ns();
  do {
    spin_ms(400);
  } while (blocks_in(BC_BLOCK_ONGOING) == before && now_ns() < spun_from + 20000000000ull);
  spun_to = now_ns();
}

static void work_a_little(void) {
  sleep_ms(250);
}

/* The block of what has just been worked. */
static const struct told *block_of_work(void) {
  for (unsigned i = blocks_told(); i-- > 0;) {
    const struct told *block = blocks_at(i);
    if (block->state == BC_BLOCK_ENDED && block->start_ns < spun_to && block->start_ns + block->wall_ns > spun_from) {
      return block;
    }
  }
  return NULL;
}

/* A frame that comes too late is a block like any other; one that does not is none. */
static void blocks(void) {
  blocks_expect("spin_ms", 4);
  unsigned long thread = started(2500);
  for (unsigned i = 0; i < 5; i++) {
    have_done(work_a_little);
  }
  flush();
  CHECK(blocks_told() == 0, "%u blocks below the threshold", blocks_told());
  CHECK_OK(bc_loop_set_threshold(loop, 300));
  uint64_t frames = stats().dispatches;
  WAIT_FOR(stats().dispatches >= frames + 3, 20000);
  unsigned named = 0;
  for (unsigned i = 0; i < 5; i++) {
    have_done(work_until_told);
    WAIT_FOR(block_of_work() != NULL, 10000);
    const struct told *block = block_of_work();
    uint64_t shortest = spun_to - spun_from;
    CHECK(strcmp(block->what, "frame") == 0 && strcmp(block->loop_name, "frames") == 0, "\"%s\"", block->what);
    /* On a busy machine a thread may not answer in time. */
    CHECK(block->samples_naming == block->samples_with_stack, "%u of %u samples", block->samples_naming,
          block->samples_with_stack);
    named += block->samples_naming > 0;
    /* The frame before had come when the work began. */
    CHECK(block->wall_ns >= shortest && block->start_ns <= spun_from, "%llu ns", (unsigned long long)block->wall_ns);
    CHECK(block->tag != 0 && block->tag <= block->start_ns, "begun %llu ns before its frame",
          (unsigned long long)(block->tag - block->start_ns));
    /* And is followed by frames. */
    frames = stats().dispatches;
    WAIT_FOR(stats().dispatches >= frames + 3, 20000);
  }
  CHECK(named > 0, "no block names the function");
  CHECK(blocks_in(BC_BLOCK_ONGOING) >= 5 && stats().blocks >= 5, "%u told while they went on", blocks_in(BC_BLOCK_ONGOING));
  CHECK_OK(bc_uninstall());
  end_polling(thread);
}

/* A thread to which the display gives no frame is not late, but for what it does itself meanwhile. */
static void display_off(void) {
  unsigned long thread = started(1000);
  uint64_t frames = stats().dispatches;
  WAIT_FOR(stats().dispatches >= frames + 6, 20000);
  display_switch(false);
  pause_ms(3000);
  uint64_t missed = stats().missed_frames;
  flush();
  CHECK(blocks_told() == 0, "a block of a thread that waited for the display");
  have_done(work_until_told);
  WAIT_FOR(block_of_work() != NULL, 10000);
  pause_ms(1500);
  display_switch(true);
  frames = stats().dispatches;
  WAIT_FOR(stats().dispatches >= frames + 6, 20000);
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1, "%u blocks", blocks_in(BC_BLOCK_ENDED));
  /* Those 5.5 s and more are no frame, and more than 300 periods. */
  CHECK(stats().max_ns < 5000000000, "a frame of %llu ns", (unsigned long long)stats().max_ns);
  CHECK(stats().missed_frames - missed < 250, "%u missed", (unsigned)(stats().missed_frames - missed));
  CHECK_OK(bc_uninstall());
  end_polling(thread);
}

static void comes_to_rest(void) {
  WAIT_FOR(display_owes() == 0 && display_tells() == 0, 20000);
  pause_ms(100);
  unsigned polled = atomic_load(&polls);
  uint64_t frames = stats().dispatches;
  pause_ms(1000);
  CHECK(atomic_load(&polls) == polled && stats().dispatches == frames && display_owes() == 0, "woken %u times",
        atomic_load(&polls) - polled);
}

static void goes_on(void) {
  uint64_t frames = stats().dispatches;
  WAIT_FOR(stats().dispatches >= frames + 6, 20000);
  CHECK(display_owes() <= 1 && display_tells() <= 1, "%u asked for", display_owes());
}

/* While watching is off or paused nothing is asked for, and nobody is woken. */
static void at_rest(void) {
  unsigned long thread = started(300);
  goes_on();
  CHECK_OK(bc_stop());
  comes_to_rest();
  CHECK_OK(bc_start());
  goes_on();
  CHECK_OK(bc_pause());
  comes_to_rest();
  have_done(work_too_long);
  CHECK_OK(bc_resume());
  goes_on();
  flush();
  CHECK(block_of_work() == NULL, "a block in a pause");
  CHECK(stats().max_ns < 1500000000, "a pause counts as a frame, of %llu ns", (unsigned long long)stats().max_ns);
  CHECK_OK(bc_uninstall());
  CHECK(display_owes() == 0 && display_tells() == 0, "%u are to come", display_owes());
  end_polling(thread);
}

static void unwatch(void) {
  CHECK_OK(bc_loop_unwatch(loop));
}

static void uninstall(void) {
  uint64_t from = now_ns();
  CHECK_OK(bc_uninstall());
  printf("uninstalled in %u ms\n", (unsigned)((now_ns() - from) / 1000000));
}

static void watch_again(void) {
  bc_loop *again = NULL;
  CHECK_OK(bc_frames_watch("again", &again));
  CHECK(again == loop, "another token for the same thread");
}

/* Whoever ends it, and wherever: callbacks that are still to come find nothing. */
static void watch_and_give_up(void) {
  bc_config config = config_of(300);
  install_and_start(&config);
  have_done(watch);
  have_done(watch_again);
  CHECK(health().loops_watched == 1, "%u loops", (unsigned)health().loops_watched);
  goes_on();
  bc_loop *first = loop;
  CHECK_OK(bc_loop_unwatch(loop));
  CHECK_STATUS(bc_loop_unwatch(loop), BC_ERROR_INVALID_ARGUMENT);
  WAIT_FOR(display_owes() == 0 && display_tells() == 0, 20000);
  have_done(watch);
  CHECK(loop != first, "the same token");
  goes_on();
  have_done(unwatch);
  have_done(watch);
  have_done(unwatch);
  have_done(watch);
  goes_on();
  have_done(uninstall);
  install_and_start(&config);
  have_done(watch);
  goes_on();
  CHECK_OK(bc_uninstall());
  CHECK(display_owes() == 0 && display_tells() == 0, "%u are to come", display_owes());
}

static void given_up(void) {
  unsigned long thread = polling_thread();
  watch_and_give_up(); /* what the display opens for a thread is open afterwards */
  unsigned before = descriptors();
  watch_and_give_up();
  CHECK(descriptors() == before, "%u descriptors, %u before", descriptors(), before);
  bc_config config = config_of(300);
  install_and_start(&config);
  have_done(watch);
  goes_on();
  /* The thread ends with a callback to come, which then never does. */
  end_polling(thread);
  WAIT_FOR(health().loops_watched == 0, 20000);
  CHECK_OK(bc_uninstall());
}

/* A thread has frames beside its dispatches, and of the same looper a heartbeat. */
static bc_loop *marks, *beats;

static void watch_all(void) {
  CHECK_OK(bc_loop_watch("marks", &marks));
  CHECK_OK(bc_looper_probe(ALooper_forThread(), "beats", &beats));
  bc_dispatch_begin(marks, "dispatch", 1);
  bc_dispatch_end(marks);
}

static void beside_others(void) {
  unsigned long thread = started(30000);
  have_done(watch_all);
  CHECK(marks != loop && beats != loop && marks != beats && health().loops_watched == 3, "one for another");
  goes_on();
  bc_loop_stats of_marks = {.struct_size = sizeof of_marks};
  CHECK_OK(bc_loop_stats_get(marks, &of_marks));
  CHECK(of_marks.dispatches == 1 && of_marks.missed_frames == 0, "%u dispatches", (unsigned)of_marks.dispatches);
  CHECK_OK(bc_uninstall());
  end_polling(thread);
}

static bc_status from_inside;

static void on_message(bc_log_level level, const char *message, void *user_data) {
  (void)level, (void)message, (void)user_data;
  bc_loop *none = (bc_loop *)1;
  from_inside = bc_frames_watch(NULL, &none);
  CHECK(none == NULL, "a token after a failure");
}

/* Where frames cannot be watched. */
static void refused(void) {
  bc_loop *none = (bc_loop *)1;
  CHECK_STATUS(bc_frames_watch("none", &none), BC_ERROR_INVALID_STATE);
  CHECK(none == NULL, "a token after a failure");
  CHECK_STATUS(bc_frames_watch("none", NULL), BC_ERROR_INVALID_ARGUMENT);
  bc_config config = config_of(50);
  config.max_loops = 1;
  install_and_start(&config);
  CHECK_STATUS(bc_frames_watch("none", &none), BC_ERROR_WRONG_THREAD);
  CHECK_OK(bc_set_log_handler(on_message, NULL));
  blocking_dispatch(watched("only"), "late", 1, 100);
  flush();
  CHECK(from_inside == BC_ERROR_WRONG_THREAD, "%s from inside a callback", bc_status_str(from_inside));
  CHECK_OK(bc_set_log_handler(NULL, NULL));
  CHECK(ALooper_prepare(0) != NULL, "a looper");
  CHECK_STATUS(bc_frames_watch(NULL, &none), BC_ERROR_LIMIT_REACHED);
  CHECK(none == NULL && display_owes() == 0, "asked for all the same");
  CHECK_OK(bc_uninstall());
}

CASES({"intervals", intervals}, {"rates_told", rates_told}, {"rates_seen", rates_seen}, {"blocks", blocks},
      {"display_off", display_off}, {"at_rest", at_rest}, {"given_up", given_up}, {"beside_others", beside_others},
      {"refused", refused})
