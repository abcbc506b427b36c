/* Libraries that come and go while threads are sampled in them, and the loader's lock. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../check.h"
#include "../support/blocks.h"
#include "../support/stacks.h"
#include "visitor.h"

static const char *wanted_symbol, *wanted_module;
static atomic_uint with_stack, naming, wrong;

static void examine(const bc_block *block) {
  for (size_t i = 0; i < block->sample_count && block->state == BC_BLOCK_ENDED; i++) {
    const bc_sample *sample = sample_of(block, i);
    with_stack += sample->frame_count > 0;
    for (size_t f = 0; f < sample->frame_count; f++) {
      const bc_frame *frame = frame_of(block, sample, f);
      const char *base = frame->module == NULL ? NULL : strrchr(frame->module, '/');
      bool is_visitor = base != NULL && strncmp(base + 1, "libvisitor_", 11) == 0;
      bool right = is_visitor && strcmp(base + 1, wanted_module) == 0 && frame->symbol != NULL &&
                   strcmp(frame->symbol, wanted_symbol) == 0 && frame->build_id != NULL;
      naming += right;
      wrong += is_visitor && !right;
    }
    if (i == block->sample_count - 1 && naming == 0 && strcmp(wanted_symbol, "-") != 0) {
      stack_print(block, sample);
    }
  }
}

static void begin(void) {
  bc_config config = config_of(40);
  config.sample_interval_ms = 10;
  blocks_examine(examine);
  install_and_start(&config);
}

static void want(const char *symbol, const char *module) {
  flush();
  wanted_symbol = symbol;
  wanted_module = module;
  with_stack = naming = wrong = 0;
}

static void judge(const char *what) {
  flush();
  printf("%s: %u stacks, %u of them in %s of %s, %u in another\n", what, with_stack, naming, wanted_symbol,
         wanted_module, wrong);
  CHECK(with_stack >= 10, "%u stacks", with_stack);
  CHECK(naming == with_stack && wrong == 0, "%u of %u name it, %u are wrong", naming, with_stack, wrong);
}

static void nap(void) {
  sleep_ms(200);
}

static void spin(void) {
  spin_ms(200);
}

static void *visit(bc_loop *loop, const char *path, const char *symbol, void (*call)(void), uint64_t *address) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(library != NULL, "%s", dlerror());
  visitor_function *visitor;
  *(void **)&visitor = dlsym(library, symbol);
  CHECK(visitor != NULL, "%s", dlerror());
  *address = (uint64_t)(uintptr_t)visitor;
  bc_dispatch_begin(loop, symbol, 1);
  visitor(call);
  bc_dispatch_end(loop);
  return library;
}

static void opened_later(void) {
  begin();
  bc_loop *loop = watched("visited");
  uint64_t address;
  /* The table of modules is made before. */
  want("-", "-");
  blocking_dispatch(loop, "before", 9, 80);
  want("visitor_one", "libvisitor_one.so");
  visit(loop, VISITOR_ONE, "visitor_one", nap, &address);
  judge("waiting in a library opened later");
  want("visitor_two", "libvisitor_two.so");
  visit(loop, VISITOR_TWO, "visitor_two", spin, &address);
  judge("running in one");
  CHECK_OK(bc_uninstall());
}

/* Another library at the address of one that is gone: the new one's name. */
static void take_turns(bool flush_before_close) {
  begin();
  bc_loop *loop = watched("visited");
  uint64_t first, second = 0;
  for (int round = 0; round < 4; round++) {
    want("visitor_one", "libvisitor_one.so");
    void *library = visit(loop, VISITOR_ONE, "visitor_one", nap, &first);
    if (flush_before_close) {
      flush();
    }
    CHECK(dlclose(library) == 0, "dlclose");
    judge("first");
    want("visitor_two", "libvisitor_two.so");
    library = visit(loop, VISITOR_TWO, "visitor_two", nap, &second);
    if (flush_before_close) {
      flush();
    }
    CHECK(dlclose(library) == 0, "dlclose");
    CHECK(first == second, "addresses %llx and %llx: nothing is shown", (unsigned long long)first,
          (unsigned long long)second);
    judge("second, at the same address");
  }
  CHECK_OK(bc_uninstall());
}

static void at_the_same_address(void) {
  take_turns(true);
}

static uint64_t first_ends_ns, second_begins_ns;
static unsigned in_time[2], out_of_time[2], broken;

/* What each sample shows must fit its time. */
static void examine_times(const bc_block *block) {
  for (size_t i = 0; i < block->sample_count && block->state == BC_BLOCK_ENDED; i++) {
    const bc_sample *sample = sample_of(block, i);
    for (size_t f = 0; f < sample->frame_count; f++) {
      const char *module = frame_of(block, sample, f)->module;
      bool one = module != NULL && strstr(module, "libvisitor_one.so") != NULL;
      bool two = module != NULL && strstr(module, "libvisitor_two.so") != NULL;
      in_time[0] += one && sample->time_ns < first_ends_ns;
      out_of_time[0] += one && sample->time_ns > second_begins_ns;
      in_time[1] += two && sample->time_ns > second_begins_ns;
      out_of_time[1] += two && sample->time_ns < first_ends_ns;
    }
    if (sample->frame_count > 0 && stack_find(block, sample, "come_and_go", 0) < 0 && broken++ == 0) {
      stack_print(block, sample);
    }
  }
}

/* Within one block: its first samples are in a library that is gone when the report is written, and in whose place
 * another one lies. */
void come_and_go(void);
STAYS void come_and_go(void) {
  void *one = dlopen(VISITOR_ONE, RTLD_NOW | RTLD_LOCAL);
  CHECK(one != NULL, "%s", dlerror());
  visitor_function *visitor;
  *(void **)&visitor = dlsym(one, "visitor_one");
  uint64_t first = (uint64_t)(uintptr_t)visitor;
  visitor(nap);
  first_ends_ns = now_ns();
  CHECK(dlclose(one) == 0, "dlclose");
  void *two = dlopen(VISITOR_TWO, RTLD_NOW | RTLD_LOCAL);
  CHECK(two != NULL, "%s", dlerror());
  *(void **)&visitor = dlsym(two, "visitor_two");
  CHECK(first == (uint64_t)(uintptr_t)visitor, "another address: nothing is shown");
  second_begins_ns = now_ns();
  visitor(nap);
  visitor(spin);
  __asm__ volatile("");
}

static void within_a_block(void) {
  begin();
  blocks_examine(examine_times);
  bc_loop *loop = watched("visited");
  bc_dispatch_begin(loop, "both", 1);
  come_and_go();
  bc_dispatch_end(loop);
  flush();
  printf("in the first library: %u in its time, %u later; in the second: %u in its time, %u before; %u broken\n",
         in_time[0], out_of_time[0], in_time[1], out_of_time[1], broken);
  CHECK(broken == 0, "%u stacks are broken", broken);
  CHECK(out_of_time[0] == 0 && out_of_time[1] == 0, "a library is named that was not there");
  CHECK(in_time[0] >= 10 && in_time[1] >= 20, "%u and %u", in_time[0], in_time[1]);
  CHECK_OK(bc_uninstall());
}

/* The library is gone before its block is written. */
static void gone_when_written(void) {
  take_turns(false);
}

static int wait_inside(struct dl_phdr_info *info, size_t size, void *data) {
  (void)info;
  (void)size;
  (void)data;
  sleep_ms(400);
  return 1;
}

void hold_loader_lock(void);
STAYS void hold_loader_lock(void) {
  CHECK(dl_iterate_phdr(wait_inside, NULL) == 1, "dl_iterate_phdr");
}

static unsigned holding;

static void examine_holder(const bc_block *block) {
  for (size_t i = 0; i < block->sample_count && block->state == BC_BLOCK_ENDED; i++) {
    const bc_sample *sample = sample_of(block, i);
    with_stack += sample->frame_count > 0;
    holding += stack_find(block, sample, wanted_symbol, 0) >= 0;
  }
}

static void holder_is_told(const char *symbol, uint64_t begun) {
  flush();
  uint64_t told_after = now_ns() - begun;
  printf("%u stacks, %u with %s; told %.1f ms after the begin\n", with_stack, holding, symbol, told_after / 1e6);
  CHECK(blocks_tagged(BC_BLOCK_ONGOING, 1) == 1 && blocks_tagged(BC_BLOCK_ENDED, 1) == 1, "not told");
  CHECK(with_stack >= 20 && holding == with_stack, "%u of %u", holding, with_stack);
  CHECK(told_after < 2000000000, "it hung");
  CHECK_OK(bc_uninstall());
}

static void lock_held_in_callback(void) {
  begin();
  wanted_symbol = "hold_loader_lock";
  blocks_examine(examine_holder);
  bc_loop *loop = watched("holder");
  uint64_t begun = now_ns();
  bc_dispatch_begin(loop, "dl_iterate_phdr", 1);
  hold_loader_lock();
  bc_dispatch_end(loop);
  holder_is_told(wanted_symbol, begun);
}

static void lock_held_in_constructor(void) {
  begin();
  wanted_symbol = "slow_constructor";
  blocks_examine(examine_holder);
  bc_loop *loop = watched("holder");
  uint64_t begun = now_ns();
  bc_dispatch_begin(loop, "constructor", 1);
  void *library = dlopen(SLOW_START, RTLD_NOW | RTLD_LOCAL);
  bc_dispatch_end(loop);
  CHECK(library != NULL, "%s", dlerror());
  holder_is_told(wanted_symbol, begun);
}

CASES({"opened_later", opened_later}, {"at_the_same_address", at_the_same_address}, {"within_a_block", within_a_block}, {"gone_when_written", gone_when_written},
      {"lock_held_in_callback", lock_held_in_callback}, {"lock_held_in_constructor", lock_held_in_constructor})
