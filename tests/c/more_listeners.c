/* Several listeners, and what they do to each other, to the program and to the library. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"

static char order[64];
static atomic_uint order_length;

/* Its user_data is a letter. */
static void noting(const bc_block *block, void *user_data) {
  if (block->state == BC_BLOCK_ENDED) {
    order[atomic_load(&order_length)] = *(const char *)user_data;
    atomic_fetch_add(&order_length, 1);
  }
}

static const char *noted(bc_loop *loop) {
  memset(order, 0, sizeof order);
  atomic_store(&order_length, 0);
  blocking_dispatch(loop, "late", 1, 60);
  flush();
  return order;
}

static void beside_each_other(void) {
  static char letters[] = "abcdefghij";
  CHECK_STATUS(bc_add_listener(noting, letters), BC_ERROR_INVALID_STATE);
  CHECK_STATUS(bc_remove_listener(noting, letters), BC_ERROR_INVALID_STATE);
  bc_config config = config_of(30);
  CHECK_OK(bc_install(&config));
  CHECK_OK(bc_start());
  bc_loop *loop = watched("several");
  CHECK_STATUS(bc_add_listener(NULL, letters), BC_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(bc_remove_listener(NULL, letters), BC_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(bc_remove_listener(noting, letters), BC_ERROR_INVALID_ARGUMENT);
  for (unsigned i = 0; i < 8; i++) {
    CHECK_OK(bc_add_listener(noting, &letters[i]));
    CHECK_OK(bc_add_listener(noting, &letters[i]));
  }
  CHECK_STATUS(bc_add_listener(noting, &letters[8]), BC_ERROR_LIMIT_REACHED);
  CHECK(strcmp(noted(loop), "abcdefgh") == 0, "%s", order);
  CHECK_OK(bc_set_listener(noting, &letters[9]));
  CHECK(strcmp(noted(loop), "jabcdefgh") == 0, "%s", order);
  CHECK_OK(bc_remove_listener(noting, &letters[2]));
  CHECK_STATUS(bc_remove_listener(noting, &letters[2]), BC_ERROR_INVALID_ARGUMENT);
  CHECK_OK(bc_add_listener(noting, &letters[8]));
  CHECK_OK(bc_set_listener(NULL, NULL));
  CHECK(strcmp(noted(loop), "abdefghi") == 0, "%s", order);
  CHECK_OK(bc_set_listener(noting, &letters[9]));
  CHECK_OK(bc_remove_listener(noting, &letters[9]));
  CHECK(strcmp(noted(loop), "abdefghi") == 0, "%s", order);
  CHECK_OK(bc_uninstall());
  CHECK_OK(bc_install(&config));
  CHECK_OK(bc_start());
  CHECK(strcmp(noted(watched("several")), "") == 0, "%s outlived the installation", order);
  CHECK_OK(bc_uninstall());
}

static atomic_int inside, runs, is_removed;

static void slow(const bc_block *block, void *user_data) {
  (void)block, (void)user_data;
  CHECK(!atomic_load(&is_removed), "a listener runs that was removed");
  atomic_store(&inside, 1);
  sleep_ms(300);
  atomic_store(&inside, 0);
  atomic_fetch_add(&runs, 1);
}

static atomic_int removed_itself;

static void once(const bc_block *block, void *user_data) {
  (void)block;
  CHECK_OK(bc_remove_listener(once, user_data));
  atomic_fetch_add(&removed_itself, 1);
}

/* A removal waits for one that runs, unless it comes from there. */
static void removal(void) {
  bc_config config = config_of(30);
  config.report_ongoing = BC_OFF;
  install_and_start(&config);
  CHECK_OK(bc_add_listener(slow, NULL));
  CHECK_OK(bc_add_listener(once, &config));
  bc_loop *loop = watched("removal");
  blocking_dispatch(loop, "first", 1, 60);
  WAIT_FOR(atomic_load(&inside), 10000);
  CHECK_OK(bc_remove_listener(slow, NULL));
  CHECK(!atomic_load(&inside) && atomic_load(&runs) == 1, "it is still running");
  atomic_store(&is_removed, 1);
  blocking_dispatch(loop, "second", 2, 60);
  flush();
  CHECK(atomic_load(&removed_itself) == 1, "%d", atomic_load(&removed_itself));
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 2) == 1, "%u", blocks_tagged(BC_BLOCK_ENDED, 2));
  CHECK_OK(bc_uninstall());
}

static atomic_int is_done;
static atomic_ullong calls;

static void counting(const bc_block *block, void *user_data) {
  (void)block, (void)user_data;
  atomic_fetch_add(&calls, 1);
}

static void *changing(void *argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  while (!atomic_load(&is_done)) {
    char *name = (char *)&calls + rand_r(&seed) % 3;
    bc_status added = bc_add_listener(counting, name);
    CHECK(added == BC_OK || added == BC_ERROR_LIMIT_REACHED, "%s", bc_status_str(added));
    bc_status removed = bc_remove_listener(counting, name);
    CHECK(removed == BC_OK || removed == BC_ERROR_INVALID_ARGUMENT, "%s", bc_status_str(removed));
  }
  return NULL;
}

/* Added and removed from three threads while blocks are told. */
static void changed_meanwhile(void) {
  bc_config config = config_of(3);
  config.sample_interval_ms = 1;
  install_and_start(&config);
  bc_loop *loop = watched("changed");
  unsigned long threads[3];
  for (uintptr_t i = 0; i < 3; i++) {
    threads[i] = start_thread(changing, (void *)(i + 1));
  }
  for (unsigned i = 0; i < 100; i++) {
    blocking_dispatch(loop, "late", i, 6);
  }
  atomic_store(&is_done, 1);
  for (unsigned i = 0; i < 3; i++) {
    join_thread(threads[i]);
  }
  flush();
  CHECK_STATUS(bc_remove_listener(counting, &calls), BC_ERROR_INVALID_ARGUMENT);
  bc_health after = health();
  CHECK(after.blocks_seen == after.blocks_delivered + after.blocks_dropped, "%d seen", (int)after.blocks_seen);
  printf("%d blocks, %d told, %llu times to one that came and went\n", (int)after.blocks_seen,
         (int)after.blocks_delivered, (unsigned long long)atomic_load(&calls));
  CHECK_OK(bc_uninstall());
}

/* Runs every call that there is, and blocks loops itself by holding what they need. */
static pthread_mutex_t needed = PTHREAD_MUTEX_INITIALIZER;
static atomic_int holds;

static void holding(const bc_block *block, void *user_data) {
  (void)user_data;
  if (block->state == BC_BLOCK_ENDED && block->tag == 1) {
    pthread_mutex_lock(&needed);
    atomic_store(&holds, 1);
    bc_loop *loop = (bc_loop *)user_data;
    bc_dispatch_begin(loop, "not its own", 9);
    bc_dispatch_end(loop);
    bc_loop_beat(loop);
    CHECK_OK(bc_loop_set_threshold(loop, 50));
    CHECK_OK(bc_pause());
    CHECK_OK(bc_resume());
    CHECK_OK(bc_add_listener(counting, NULL));
    CHECK_OK(bc_remove_listener(counting, NULL));
    CHECK_OK(bc_set_filter(NULL, NULL));
    CHECK(bc_is_running(), "not running");
    sleep_ms(2000);
    pthread_mutex_unlock(&needed);
  }
}

/* The loop waits for the listener, and the listener takes two seconds: a block like any other, stored in time. */
static void makes_blocks(void) {
  const char *directory = fresh_directory("makes_blocks");
  bc_config config = config_of(50);
  config.report_dir = directory;
  install_and_start(&config);
  bc_loop *loop = watched("waits");
  CHECK_OK(bc_add_listener(holding, loop));
  blocking_dispatch(loop, "first", 1, 80);
  WAIT_FOR(atomic_load(&holds), 10000);
  uint64_t begin = now_ns();
  bc_dispatch_begin(loop, "needs", 2);
  WAIT_FOR(files_in(directory, ".log") == 2, 500);
  unsigned on_disk_ms = (unsigned)((now_ns() - begin) / 1000000);
  pthread_mutex_lock(&needed);
  pthread_mutex_unlock(&needed);
  bc_dispatch_end(loop);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 2) == 1, "%u", blocks_tagged(BC_BLOCK_ENDED, 2));
  printf("limit 50 ms: on disk after %u ms beside a listener that takes 2 s; the block took %u ms\n", on_disk_ms,
         (unsigned)(blocks_get(BC_BLOCK_ENDED, 2)->wall_ns / 1000000));
  CHECK(blocks_get(BC_BLOCK_ENDED, 2)->wall_ns > 1500000000, "the loop did not wait");
  CHECK_OK(bc_uninstall());
}

static void sleeping(const bc_block *block, void *user_data) {
  (void)block, (void)user_data;
  sleep_ms(2000);
}

#define PAIRS 300000
static uint32_t pair_ns[PAIRS], bare_ns[PAIRS];

static int by_size(const void *a, const void *b) {
  uint32_t one = *(const uint32_t *)a, two = *(const uint32_t *)b;
  return (one > two) - (one < two);
}

static atomic_int is_measured;

static void *two_hundred_blocks(void *argument) {
  const char *directory = argument;
  (void)directory;
  bc_loop *loop = watched("writes");
  for (unsigned i = 0; i < 200; i++) {
    bc_dispatch_begin(loop, "late", i);
    pause_ms(6); /* the processor is the other loop's */
    bc_dispatch_end(loop);
  }
  while (!atomic_load(&is_measured)) {
    pause_ms(5);
  }
  return NULL;
}

/* Marks of one loop while a listener sleeps and the blocks of another are written: 200 reports. */
static void marks_stay_fast(void) {
  const char *directory = fresh_directory("marks");
  bc_config config = config_of(3);
  config.sample_interval_ms = 2;
  config.report_dir = directory;
  install_and_start(&config);
  CHECK_OK(bc_add_listener(sleeping, NULL));
  bc_loop *loop = watched("fast");
  CHECK_OK(bc_loop_set_threshold(loop, 60000));
  unsigned long other = start_thread(two_hundred_blocks, (void *)(uintptr_t)directory);
  unsigned n = 0;
  while (health().blocks_seen < 200) {
    for (unsigned i = 0; i < 500; i++) {
      uint64_t begin = now_ns();
      bc_dispatch_begin(loop, "pair", i);
      bc_dispatch_end(loop);
      uint64_t end = now_ns();
      /* What the machine does to as many reads of the clock without marks. */
      now_ns();
      now_ns();
      bare_ns[n % PAIRS] = (uint32_t)(now_ns() - end);
      pair_ns[n++ % PAIRS] = (uint32_t)(end - begin);
    }
    pause_ms(1);
  }
  atomic_store(&is_measured, 1);
  join_thread(other);
  unsigned count = n < PAIRS ? n : PAIRS;
  qsort(pair_ns, count, sizeof pair_ns[0], by_size);
  qsort(bare_ns, count, sizeof bare_ns[0], by_size);
  uint32_t pair = pair_ns[count - count / 1000], bare = bare_ns[count - count / 1000];
  bc_health after = health();
  printf("%u pairs beside a sleeping listener and %d files: median %u ns, p99 %u, p99.9 %u, longest %u; %d dropped\n",
         count, (int)after.reports_written, pair_ns[count / 2], pair_ns[count - count / 100], pair, pair_ns[count - 1],
         (int)after.blocks_dropped);
  printf("without marks: median %u ns, p99 %u, p99.9 %u\n", bare_ns[count / 2], bare_ns[count - count / 100], bare);
  CHECK(after.reports_written >= 400, "%d files", (int)after.reports_written);
  CHECK(files_in(directory, ".log") >= 195, "%d files", files_in(directory, ".log"));
  CHECK(count >= 50000, "%u pairs", count);
  /* A machine with too much to do takes the processor away as often without marks. */
  CHECK(pair < 5000 + bare, "p99.9 %u ns, without marks %u", pair, bare);
  CHECK_OK(bc_set_listener(NULL, NULL));
  bc_status left = bc_uninstall();
  CHECK(left == BC_OK || left == BC_ERROR_TIMEOUT, "%s", bc_status_str(left));
}

CASES({"beside_each_other", beside_each_other}, {"removal", removal}, {"changed_meanwhile", changed_meanwhile},
      {"makes_blocks", makes_blocks}, {"marks_stay_fast", marks_stay_fast})
