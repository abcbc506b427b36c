/* Which blocks are wanted: the filter and the lists of modules. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "support/ads.h"
#include "support/blocks.h"
#include "support/procfs.h"

static char text[1024 * 1024];
static const char *directory;

/* Blocks by what is on their account: each is seen once, as one of three. */
static void check_sums(uint64_t seen, uint64_t filtered) {
  bc_health after = health();
  CHECK(after.blocks_seen == seen && after.blocks_filtered == filtered, "%llu seen, %llu filtered",
        (unsigned long long)after.blocks_seen, (unsigned long long)after.blocks_filtered);
  CHECK(after.blocks_seen == after.blocks_delivered + after.blocks_dropped + after.blocks_filtered,
        "%llu seen, %llu delivered, %llu dropped, %llu filtered", (unsigned long long)after.blocks_seen,
        (unsigned long long)after.blocks_delivered, (unsigned long long)after.blocks_dropped,
        (unsigned long long)after.blocks_filtered);
}

static uint64_t asked[64];
static atomic_uint asked_count;
static atomic_int nonsense;

/* Wants blocks with an even tag. */
static bool even(const bc_block *block, void *user_data) {
  unsigned n = atomic_fetch_add(&asked_count, 1);
  asked[n % 64] = block->id;
  char id[32];
  snprintf(id, sizeof id, "-%llu.log", (unsigned long long)block->id);
  bool is_odd = user_data != &nonsense || block->report_path != NULL || files_in(directory, id) != 0 ||
                block->struct_size < sizeof *block;
  atomic_fetch_add(&nonsense, is_odd);
  return block->tag % 2 == 0;
}

/* Once for each block, before anything of it is on disk; what is refused is neither stored nor delivered. */
static void asked_once(void) {
  for (unsigned round = 0; round < 2; round++) {
    directory = fresh_directory("asked_once");
    bc_config config = config_of(50);
    config.report_dir = directory;
    config.hang_threshold_ms = 100;
    config.report_ongoing = round == 0 ? BC_ON : BC_OFF;
    install_and_start(&config);
    CHECK_OK(bc_set_filter(even, &nonsense));
    atomic_store(&asked_count, 0);
    unsigned told_before = blocks_told();
    bc_loop *loop = watched("asked");
    for (unsigned i = 1; i <= 10; i++) {
      blocking_dispatch(loop, "late", round * 100 + i, i % 3 == 0 ? 150 : 70);
    }
    flush();
    check_sums(10, 5);
    CHECK(atomic_load(&asked_count) == 10, "asked %u times", atomic_load(&asked_count));
    for (unsigned i = 0; i < 10; i++) {
      for (unsigned k = 0; k < i; k++) {
        CHECK(asked[i] != asked[k], "asked twice for %llu", (unsigned long long)asked[i]);
      }
    }
    for (unsigned i = told_before; i < blocks_told(); i++) {
      CHECK(blocks_at(i)->tag % 2 == 0, "told of %llu", (unsigned long long)blocks_at(i)->tag);
    }
    for (unsigned i = 2; i <= 10; i += 2) {
      CHECK(blocks_tagged(BC_BLOCK_ENDED, round * 100 + i) == 1, "%u not told", i);
    }
    CHECK(files_in(directory, ".log") == 5 && files_in(directory, ".json") == 5, "%d and %d files",
          files_in(directory, ".log"), files_in(directory, ".json"));
    CHECK_OK(bc_set_filter(NULL, NULL));
    blocking_dispatch(loop, "wanted", 1001, 70);
    flush();
    CHECK(blocks_tagged(BC_BLOCK_ENDED, 1001) == round + 1, "%u", blocks_tagged(BC_BLOCK_ENDED, 1001));
    CHECK_OK(bc_uninstall());
  }
  CHECK(atomic_load(&nonsense) == 0, "%d odd calls", atomic_load(&nonsense));
}

static bc_status from_flush, from_uninstall, from_watch, from_filter;

static bool calling(const bc_block *block, void *user_data) {
  (void)block, (void)user_data;
  bc_loop *loop = (bc_loop *)1;
  from_flush = bc_flush(1000);
  from_uninstall = bc_uninstall();
  from_watch = bc_loop_watch("writer", &loop);
  from_filter = bc_set_filter(NULL, NULL);
  CHECK(loop == NULL, "a refused watch left %p", (void *)loop);
  CHECK_OK(bc_stop());
  CHECK_OK(bc_start());
  return false;
}

static void calls_from_inside(void) {
  CHECK_STATUS(bc_set_filter(calling, NULL), BC_ERROR_INVALID_STATE);
  bc_config config = config_of(50);
  install_and_start(&config);
  CHECK_OK(bc_set_filter(calling, NULL));
  bc_loop *loop = watched("calling");
  blocking_dispatch(loop, "late", 1, 100);
  flush();
  CHECK_STATUS(from_flush, BC_ERROR_WRONG_THREAD);
  CHECK_STATUS(from_uninstall, BC_ERROR_WRONG_THREAD);
  CHECK_STATUS(from_watch, BC_ERROR_WRONG_THREAD);
  CHECK_OK(from_filter);
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 1) == 0, "told of a block that was refused");
  blocking_dispatch(loop, "late", 2, 100);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 2) == 1, "the filter did not reset itself");
  CHECK_OK(bc_uninstall());
  /* An uninstall has reset it, or this would be refused. */
  install_and_start(&config);
  CHECK_OK(bc_set_filter(calling, NULL));
  CHECK_OK(bc_uninstall());
  install_and_start(&config);
  blocking_dispatch(watched("calling"), "late", 3, 100);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 3) == 1, "a filter outlived its installation");
  CHECK_OK(bc_uninstall());
}

static atomic_int entered, released;

static bool stuck(const bc_block *block, void *user_data) {
  (void)user_data;
  atomic_fetch_add(&entered, 1);
  WAIT_FOR(atomic_load(&released), 60000);
  return block->tag == 1;
}

static unsigned took_ms(uint64_t since) {
  return (unsigned)((now_ns() - since) / 1000000);
}

/* While it does not return nothing is stored, and the rest goes on; what finds no place any more is counted. */
static void never_returning(void) {
  directory = fresh_directory("stuck");
  bc_config config = config_of(10);
  config.report_dir = directory;
  config.max_loops = 1;
  config.sample_interval_ms = 5;
  install_and_start(&config);
  CHECK_OK(bc_set_filter(stuck, NULL));
  bc_loop *loop = watched("stuck");
  for (unsigned i = 1; i <= 60; i++) {
    uint64_t begin = now_ns();
    blocking_dispatch(loop, "late", i, 20);
    CHECK(took_ms(begin) < 500, "a dispatch took %u ms", took_ms(begin));
  }
  WAIT_FOR(atomic_load(&entered) == 1, 10000);
  CHECK(files_in(directory, "") == 0, "%d files", files_in(directory, ""));
  CHECK_STATUS(bc_flush(50), BC_ERROR_TIMEOUT);
  uint64_t begin = now_ns();
  CHECK_OK(bc_stop());
  CHECK(took_ms(begin) < 200, "bc_stop took %u ms", took_ms(begin));
  begin = now_ns();
  CHECK_STATUS(bc_uninstall(), BC_ERROR_TIMEOUT);
  CHECK(took_ms(begin) >= 1900 && took_ms(begin) < 4000, "bc_uninstall took %u ms", took_ms(begin));
  uint64_t dropped = health().blocks_dropped;
  CHECK(dropped >= 20, "%llu dropped", (unsigned long long)dropped);
  atomic_store(&released, 1);
  flush();
  check_sums(60, 60 - 1 - dropped);
  CHECK(files_in(directory, ".log") == 1, "%d files", files_in(directory, ".log"));
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 1) == 1, "%u", blocks_tagged(BC_BLOCK_ENDED, 1));
  printf("60 blocks beside a stuck filter: %llu dropped\n", (unsigned long long)dropped);
  CHECK_OK(bc_uninstall());
}

STAYS static void own_spin(unsigned ms) {
  spin_ms(ms);
}

/* A block all of whose samples lie in ignored modules is filtered; one that leaves them is told of from then on. */
static void ignored(void) {
  directory = fresh_directory("ignored");
  bc_config config = config_of(60);
  config.sample_interval_ms = 10;
  config.hang_threshold_ms = 600000;
  config.merge_window_s = BC_MERGE_OFF;
  config.report_dir = directory;
  char list[] = " libnone.so,\tlibtest_ads.so ,";
  config.ignore_modules = list;
  install_and_start(&config);
  memset(list, 'x', sizeof list - 1); /* it was copied */
  bc_loop *loop = watched("ignored");
  /* On a machine that is too busy the thread may lose its processor, and be seen, where it is in no module that is ignored. */
  unsigned ads = 0;
  do {
    CHECK(ads < 8, "told of what was in an ignored module");
    ads++;
    bc_dispatch_begin(loop, "ads", 20 + ads);
    ads_spin(150);
    bc_dispatch_end(loop);
    flush();
  } while (blocks_tagged(BC_BLOCK_ENDED, 20 + ads) != 0);
  check_sums(ads, 1);
  unsigned both = 0;
  do {
    CHECK(both < 8, "told of while all was in an ignored module");
    both++;
    bc_dispatch_begin(loop, "both", 10 + both);
    ads_spin(150);
    own_spin(100);
    bc_dispatch_end(loop);
    flush();
    CHECK(blocks_tagged(BC_BLOCK_ENDED, 10 + both) == 1, "%u told", blocks_told());
  } while (blocks_tagged(BC_BLOCK_ONGOING, 10 + both) != 0);
  bc_dispatch_begin(loop, "called from there", 3);
  ads_call(own_spin, 150);
  bc_dispatch_end(loop);
  flush();
  check_sums(ads + both + 1, 1);
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 3) == 1, "%u told", blocks_told());
  CHECK(files_in(directory, ".log") == (int)(ads + both), "%d files", files_in(directory, ".log"));
  CHECK_OK(bc_uninstall());
}

/* Where the line `stack = ` begins, and where the section for ndk-stack does. */
static void check_lead(const char *path, const char *function) {
  read_whole(path, text, sizeof text);
  const char *banner = strstr(text, "\n*** *** ***"), *stack = strstr(text, "\nstack = ");
  CHECK(banner != NULL && stack != NULL && banner < stack, "%.4000s", text);
  const char *found = strstr(banner, function), *banner_end = strstr(banner, "\n\n");
  CHECK(found != NULL && banner_end != NULL && found < banner_end, "%s does not lead the frames:%.2000s", function, banner);
  const char *first = strstr(stack, "\r\n\r\n"), *next = strstr(first + 4, "\r\n\r\n");
  found = strstr(first, function);
  CHECK(next != NULL && found != NULL && found < next, "%s does not lead the stacks:%.2000s", function, stack);
}

/* The stacks that touch a module of concern lead the text, however seldom they are. */
static void of_concern(void) {
  for (unsigned round = 0; round < 2; round++) {
    bc_config config = config_of(100);
    config.sample_interval_ms = 10;
    config.report_dir = fresh_directory("of_concern");
    config.concern_modules = round == 0 ? NULL : "libtest_ads.so";
    install_and_start(&config);
    bc_loop *loop = watched("concern");
    bc_dispatch_begin(loop, "both", round);
    own_spin(200);
    ads_spin(60);
    bc_dispatch_end(loop);
    flush();
    check_lead(blocks_get(BC_BLOCK_ENDED, round)->path, round == 0 ? "spin_ms" : "ads_spin");
    CHECK_OK(bc_uninstall());
  }
}

CASES({"asked_once", asked_once}, {"calls_from_inside", calls_from_inside}, {"never_returning", never_returning},
      {"ignored", ignored}, {"of_concern", of_concern})
