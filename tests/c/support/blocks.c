#include "blocks.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"

static struct told told[BLOCKS_MAX];
/* Entries below are whole: the listener runs on one thread at a time. */
static atomic_uint told_count;
static const char *expected_symbol;
static unsigned expected_depth;
static void (*_Atomic examiner)(const bc_block *block);

static void copy(char *to, size_t size, const char *from) {
  snprintf(to, size, "%s", from == NULL ? "" : from);
}

static bool names(const bc_block *block, const bc_sample *sample) {
  const char *at = (const char *)sample->frames;
  for (size_t i = 0; i < sample->frame_count && i < expected_depth; i++, at += block->frame_size) {
    const bc_frame *frame = (const bc_frame *)(const void *)at;
    if (frame->symbol != NULL && strcmp(frame->symbol, expected_symbol) == 0) {
      return true;
    }
  }
  return false;
}

void blocks_listener(const bc_block *block, void *user_data) {
  (void)user_data;
  unsigned n = atomic_load(&told_count);
  CHECK(n < BLOCKS_MAX, "more than %d blocks", BLOCKS_MAX);
  CHECK(block->struct_size >= sizeof(bc_block), "struct_size %zu", block->struct_size);
  struct told *entry = &told[n];
  *entry = (struct told){.id = block->id, .tag = block->tag, .wall_ns = block->wall_ns, .cpu_ns = block->cpu_ns,
                         .start_ns = block->start_ns, .threshold_ns = block->threshold_ns,
                         .start_unix_ms = block->start_unix_ms, .state = block->state, .cause = block->cause, .repeats = block->repeats, .tid = block->tid,
                         .samples = (unsigned)block->sample_count};
  copy(entry->loop_name, sizeof entry->loop_name, block->loop_name);
  copy(entry->what, sizeof entry->what, block->what);
  copy(entry->path, sizeof entry->path, block->report_path);
  copy(entry->detail, sizeof entry->detail, block->cause_detail);
  const char *at = (const char *)block->samples;
  for (size_t i = 0; i < block->sample_count; i++, at += block->sample_size) {
    const bc_sample *sample = (const bc_sample *)(const void *)at;
    entry->samples_with_stack += sample->frame_count > 0;
    entry->samples_naming += expected_symbol != NULL && names(block, sample);
  }
  void (*examine)(const bc_block *) = atomic_load(&examiner);
  if (examine != NULL) {
    examine(block);
  }
  atomic_store(&told_count, n + 1);
}

void blocks_examine(void (*examine)(const bc_block *block)) {
  atomic_store(&examiner, examine);
}

void blocks_expect(const char *symbol, unsigned depth) {
  expected_symbol = symbol;
  expected_depth = depth;
}

unsigned blocks_told(void) {
  return atomic_load(&told_count);
}

unsigned blocks_in(bc_block_state state) {
  unsigned found = 0;
  for (unsigned i = 0; i < blocks_told(); i++) {
    found += told[i].state == state;
  }
  return found;
}

unsigned blocks_tagged(bc_block_state state, uint64_t tag) {
  unsigned found = 0;
  for (unsigned i = 0; i < blocks_told(); i++) {
    found += told[i].state == state && told[i].tag == tag;
  }
  return found;
}

const struct told *blocks_at(unsigned n) {
  CHECK(n < blocks_told(), "%u of %u", n, blocks_told());
  return &told[n];
}

const struct told *blocks_get(bc_block_state state, uint64_t tag) {
  for (unsigned i = 0; i < blocks_told(); i++) {
    if (told[i].state == state && told[i].tag == tag) {
      return &told[i];
    }
  }
  CHECK(false, "no block in state %u with tag %llu", (unsigned)state, (unsigned long long)tag);
  return NULL;
}

bc_config config_of(uint32_t threshold_ms) {
  bc_config config;
  bc_config_init(&config, sizeof config);
  config.block_threshold_ms = threshold_ms;
  config.merge_window_s = BC_MERGE_OFF; /* every block has a file of its own */
  /* Where an emulator takes the signal that the library would choose, and never delivers it. */
  const char *signal_number = getenv("TEST_SIGNAL");
  if (signal_number != NULL) {
    config.signal_number = atoi(signal_number);
    config.sampling_method = BC_SAMPLING_SIGNAL;
  }
  return config;
}

void install_and_start(const bc_config *config) {
  CHECK_OK(bc_install(config));
  CHECK_OK(bc_set_listener(blocks_listener, NULL));
  CHECK_OK(bc_start());
}

void blocking_dispatch(bc_loop *loop, const char *what, uint64_t tag, unsigned ms) {
  bc_dispatch_begin(loop, what, tag);
  spin_ms(ms);
  bc_dispatch_end(loop);
}

bc_loop *watched(const char *name) {
  bc_loop *loop = NULL;
  CHECK_OK(bc_loop_watch(name, &loop));
  CHECK(loop != NULL, "no token for %s", name);
  return loop;
}

bc_health health(void) {
  bc_health health = {.struct_size = sizeof health};
  CHECK_OK(bc_health_get(&health));
  return health;
}

void flush(void) {
  CHECK_OK(bc_flush(20000));
}
