#include "summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Stacks are told apart by so many of their innermost functions. */
#define FRAMES 6

/* Samples and frames may grow in a later version: the block tells the distance between two. */
static const bc_sample *sample_at(const bc_block *block, size_t index) {
  return (const bc_sample *)(const void *)((const char *)block->samples + index * block->sample_size);
}

static const bc_frame *frame_at(const bc_block *block, const bc_sample *sample, size_t index) {
  return (const bc_frame *)(const void *)((const char *)sample->frames + index * block->frame_size);
}

static uint64_t function_of(const bc_frame *frame) {
  return frame->pc - frame->symbol_offset;
}

static bool same_stack(const bc_block *block, const bc_sample *a, const bc_sample *b) {
  if (a->frame_count != b->frame_count && (a->frame_count < FRAMES || b->frame_count < FRAMES)) {
    return false;
  }
  for (size_t i = 0; i < FRAMES && i < a->frame_count; i++) {
    if (function_of(frame_at(block, a, i)) != function_of(frame_at(block, b, i))) {
      return false;
    }
  }
  return true;
}

/* The stack that most samples have; `count` how many. */
static const bc_sample *hottest(const bc_block *block, size_t *count) {
  const bc_sample *best = NULL;
  *count = 0;
  for (size_t i = 0; i < block->sample_count; i++) {
    size_t same = 0;
    for (size_t k = 0; k < block->sample_count; k++) {
      same += same_stack(block, sample_at(block, i), sample_at(block, k));
    }
    if (sample_at(block, i)->frame_count > 0 && same > *count) {
      best = sample_at(block, i);
      *count = same;
    }
  }
  return best;
}

static const char *base_name(const char *path) {
  const char *slash = path == NULL ? NULL : strrchr(path, '/');
  return slash != NULL ? slash + 1 : path != NULL ? path : "?";
}

bool summary_print(const bc_block *block, const char *function) {
  printf("block: %.1f ms in loop \"%s\" (%s), %.1f ms on the processor\n", (double)block->wall_ns / 1e6,
         block->loop_name, block->what != NULL ? block->what : "unnamed", (double)block->cpu_ns / 1e6);
  bool named = false;
  size_t count;
  const bc_sample *stack = hottest(block, &count);
  if (stack != NULL) {
    printf("  %zu of %zu samples:\n", count, block->sample_count);
    for (size_t i = 0; i < FRAMES && i < stack->frame_count; i++) {
      const bc_frame *frame = frame_at(block, stack, i);
      bool guilty = function != NULL && frame->symbol != NULL && strcmp(frame->symbol, function) == 0;
      printf("    %s %s + %" PRIu64 " (%s)\n", guilty ? "->" : "  ", frame->symbol != NULL ? frame->symbol : "?",
             frame->symbol != NULL ? frame->symbol_offset : frame->module_offset, base_name(frame->module));
      named |= guilty;
    }
  }
  printf("  report: %s\n", block->report_path != NULL ? block->report_path : "none");
  return named;
}
