/* Marks, pauses and threads that come and go, as fast as four threads can: nothing is told, nothing left, nothing breaks. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

#define THREADS 4
#define CALLS 250000 /* of each */
#define COMERS 40000
#define LIMIT_MS 1000

/* Of each thread: its longest time between two calls, which is all that it could be blamed for. */
static uint64_t longest_ns[THREADS];
static atomic_uint resumed, refused;

static void *racer(void *argument) {
  unsigned number = (unsigned)(uintptr_t)argument, seed = number + 1, open = 0, pauses = 0;
  bc_loop *loop = watched(NULL);
  uint64_t last = now_ns();
  for (unsigned i = 0; i < CALLS; i++) {
    switch (rand_r(&seed) % 8) {
      case 0:
        pauses += bc_pause() == BC_OK;
        break;
      case 1:
        /* A resume too many is refused; another thread's pause may be taken back. */
        atomic_fetch_add(bc_resume() == BC_OK ? &resumed : &refused, 1);
        break;
      case 2:
        bc_loop_beat(loop);
        break;
      case 3:
        bc_loop_idle(loop);
        open = 0;
        break;
      case 4:
      case 5:
        if (open < 20) {
          bc_dispatch_begin(loop, "race", i);
          open++;
        }
        break;
      default:
        bc_dispatch_end(loop); /* one too many is misuse, and harmless */
        open -= open > 0;
    }
    uint64_t now = now_ns();
    longest_ns[number] = now - last > longest_ns[number] ? now - last : longest_ns[number];
    last = now;
  }
  bc_loop_idle(loop);
  return NULL;
}

static void pauses_and_marks(void) {
  bc_config config = config_of(LIMIT_MS);
  config.sample_interval_ms = 1;
  unsigned before = descriptors();
  install_and_start(&config);
  uint64_t begin = now_ns();
  unsigned long threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) {
    threads[i] = start_thread(racer, (void *)i);
  }
  unsigned slow = 0;
  uint64_t longest = 0;
  for (unsigned i = 0; i < THREADS; i++) {
    join_thread(threads[i]);
    slow += longest_ns[i] > (LIMIT_MS - 2) * 1000000ull;
    longest = longest_ns[i] > longest ? longest_ns[i] : longest;
  }
  double seconds = (double)(now_ns() - begin) / 1e9;
  while (bc_resume() == BC_OK) {
  }
  flush();
  printf("%u calls by %u threads in %.1f s (%u resumes, %u refused): %u told; longest between two calls %.1f ms\n", THREADS * CALLS,
         THREADS, seconds, atomic_load(&resumed), atomic_load(&refused), blocks_in(BC_BLOCK_ENDED), (double)longest / 1e6);
  CHECK(blocks_in(BC_BLOCK_ENDED) == 0 || slow > 0, "%u told", blocks_in(BC_BLOCK_ENDED));
  CHECK(atomic_load(&resumed) > 0 && atomic_load(&refused) > 0, "they did not meet");

  /* What has been raced still works. */
  bc_loop *loop = watched("afterwards");
  CHECK_OK(bc_loop_set_threshold(loop, 50));
  blocking_dispatch(loop, "real", 7, 100);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 7) == 1, "%u", blocks_tagged(BC_BLOCK_ENDED, 7));
  CHECK_OK(bc_loop_unwatch(loop));
  WAIT_FOR(health().loops_watched == 0, 20000);
  CHECK_OK(bc_uninstall());
  CHECK(descriptors() == before, "%u descriptors, %u before", descriptors(), before);
}

/* Of memory more, in a round of all these threads. */
#define MOST_KIB 256

static void *comer(void *argument) {
  (void)argument;
  bc_loop *loop = NULL;
  CHECK_OK(bc_loop_watch(NULL, &loop));
  bc_dispatch_begin(loop, "short", 1);
  bc_loop_beat(loop);
  /* And is gone, with its dispatch open. */
  return NULL;
}

static void *starts_comers(void *argument) {
  for (unsigned i = 0; i < COMERS / THREADS; i++) {
    join_thread(start_thread(comer, NULL));
  }
  return argument;
}

static void come_and_go(unsigned rounds) {
  for (unsigned round = 0; round < rounds; round++) {
    unsigned long threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
      threads[i] = start_thread(starts_comers, NULL);
    }
    for (unsigned i = 0; i < THREADS; i++) {
      join_thread(threads[i]);
    }
  }
}

static void threads_that_exit(void) {
  static struct mappings before, after;
  bc_config config = config_of(60000);
  config.max_loops = 256;
  install_and_start(&config);
  come_and_go(1); /* what the C library keeps of threads is kept now */
  WAIT_FOR(health().loops_watched == 0, 20000);
  unsigned open_before = descriptors();
  mappings_read(&before);
  long resident_before = resident_kib(), resident_more = 0;
  uint64_t begin = now_ns();
  come_and_go(1);
  double seconds = (double)(now_ns() - begin) / 1e9;
  resident_more = resident_kib() - resident_before;
  /* The C library keeps more where more threads meet; a leak grows with each round. */
  for (unsigned round = 0; round < 5 && resident_more >= MOST_KIB; round++) {
    resident_before = resident_kib();
    come_and_go(1);
    resident_more = resident_kib() - resident_before;
  }
  WAIT_FOR(health().loops_watched == 0, 20000);
  WAIT_FOR(descriptors() <= open_before, 20000);
  mappings_read(&after);
  bc_health end = health();
  printf("%u threads in %.1f s: %u told, %d refused, %u descriptors more, %d mappings and %lld bytes of them more, %ld KiB of memory more\n",
         COMERS, seconds, blocks_told(), (int)end.loops_refused, descriptors() - open_before, (int)(after.lines - before.lines),
         (long long)(after.bytes - before.bytes), resident_more);
  CHECK(blocks_told() == 0, "%u told", blocks_told());
  CHECK(end.loops_refused == 0, "%d refused", (int)end.loops_refused);
  CHECK(after.lines <= before.lines && after.bytes <= before.bytes, "mappings: %u lines, %u before", after.lines, before.lines);
  CHECK(resident_more < MOST_KIB, "%ld KiB more", resident_more);
  CHECK_OK(bc_uninstall());
}

CASES({"pauses_and_marks", pauses_and_marks}, {"threads_that_exit", threads_that_exit})
