/* The wall clock jumps by an hour and back, while the loop is idle and inside a dispatch: nothing is told, and a block that
 * follows is told once, with its duration.
 *
 * Setting the machine's clock is nobody's business here. This program puts a function of its own in the C library's place,
 * so that the library sees a wall clock that jumps; "set" does it with the real one, where that is allowed, for moments. */
#include <stdio.h>
#include <stdlib.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

#define LIMIT_MS 200
#define HOUR_S 3600

static _Atomic int64_t offset_s;
static atomic_uint wall_clock_reads;

/* The program's, and so the library's. */
int clock_gettime(clockid_t id, struct timespec *time) {
  int result = (int)syscall(SYS_clock_gettime, id, time);
  if (id == CLOCK_REALTIME && result == 0) {
    time->tv_sec += atomic_load(&offset_s);
    atomic_fetch_add(&wall_clock_reads, 1);
  }
  return result;
}

static void fake_jump(int64_t by_s) { atomic_fetch_add(&offset_s, by_s); }

static void real_jump(int64_t by_s) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  time.tv_sec += by_s;
  CHECK(syscall(SYS_clock_settime, CLOCK_REALTIME, &time) == 0, "the clock can't be set");
}

static unsigned busy, judged;
static uint64_t next_tag;

/* A dispatch of 50 ms with a jump in its middle. Where the machine makes it longer than its limit, it doesn't count. */
static void dispatch_with_jump(bc_loop *loop, void (*jump)(int64_t), int64_t by_s) {
  uint64_t tag = ++next_tag, begin = now_ns();
  bc_dispatch_begin(loop, "jump", tag);
  spin_ms(25);
  jump(by_s);
  spin_ms(25);
  bc_dispatch_end(loop);
  bool is_busy = now_ns() - begin > (LIMIT_MS - 2) * 1000000ull;
  flush();
  busy += is_busy;
  judged += !is_busy;
  CHECK(is_busy || blocks_tagged(BC_BLOCK_ENDED, tag) + blocks_tagged(BC_BLOCK_ONGOING, tag) == 0, "told");
}

static void real_block(bc_loop *loop) {
  uint64_t tag = ++next_tag, begin = now_ns();
  bc_dispatch_begin(loop, "real", tag);
  uint64_t begun = now_ns();
  spin_ms(300);
  uint64_t ending = now_ns();
  bc_dispatch_end(loop);
  uint64_t end = now_ns();
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, tag) == 1, "%u", blocks_tagged(BC_BLOCK_ENDED, tag));
  const struct told *told = blocks_get(BC_BLOCK_ENDED, tag);
  CHECK(told->wall_ns >= ending - begun && told->wall_ns <= end - begin, "%llu ns, really %llu to %llu",
        (unsigned long long)told->wall_ns, (unsigned long long)(ending - begun), (unsigned long long)(end - begin));
  int64_t began_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000 - (int64_t)((end - begin) / 1000000);
  CHECK(llabs(told->start_unix_ms - began_ms) < 60000, "began at %lld, %lld by the wall clock", (long long)told->start_unix_ms,
        (long long)began_ms);
}

static void jumps(void (*jump)(int64_t), unsigned rounds) {
  bc_config config = config_of(LIMIT_MS);
  config.report_dir = fresh_directory("wall_clock");
  install_and_start(&config);
  bc_loop *loop = watched("jumps");
  unsigned real = 0;
  for (unsigned round = 0; round < rounds; round++) {
    static const int64_t ways[] = {HOUR_S, -HOUR_S, -HOUR_S, HOUR_S};
    for (unsigned i = 0; i < 4; i++) {
      jump(ways[i]);
      pause_ms(round == 0 ? 1200 : 50); /* the monitor parks in the first round */
      jump(-ways[i]);
      dispatch_with_jump(loop, jump, ways[i]);
      real_block(loop);
      real++;
    }
  }
  flush();
  CHECK(blocks_in(BC_BLOCK_ENDED) <= real + busy, "%u blocks", blocks_in(BC_BLOCK_ENDED));
  printf("%u jumps while idle and %u inside a dispatch (%u too busy to be judged): 0 false, %u of %u blocks told once, with their durations\n",
         rounds * 8, judged, busy, real, real);
  CHECK(judged > 0, "none could be judged");
  bc_health end = health();
  CHECK(end.reports_written >= 2 * real && end.reports_failed == 0, "%d files, %d failed", (int)end.reports_written,
        (int)end.reports_failed);
  CHECK_OK(bc_uninstall());
}

static void as_seen(void) {
  unsigned before = atomic_load(&wall_clock_reads);
  jumps(fake_jump, 3);
  CHECK(atomic_load(&wall_clock_reads) > before, "the library reads another wall clock");
}

static uint64_t set_at;
static struct timespec set_from;

static void put_back(void) {
  uint64_t passed = now_ns() - set_at + (uint64_t)set_from.tv_nsec;
  set_from.tv_sec += (time_t)(passed / 1000000000u);
  set_from.tv_nsec = (long)(passed % 1000000000u);
  syscall(SYS_clock_settime, CLOCK_REALTIME, &set_from);
}

static void set(void) {
  set_at = now_ns();
  clock_gettime(CLOCK_REALTIME, &set_from);
  if (syscall(SYS_clock_settime, CLOCK_REALTIME, &set_from) != 0) {
    printf("left out: the clock can't be set here\n");
    return;
  }
  atexit(put_back);
  jumps(real_jump, 1);
}

CASES({"as_seen", as_seen}, {"set", set})
