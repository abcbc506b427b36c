#include "stacks.h"

#include <stdio.h>
#include <string.h>

const bc_sample *sample_of(const bc_block *block, size_t number) {
  return (const bc_sample *)(const void *)((const char *)block->samples + number * block->sample_size);
}

const bc_frame *frame_of(const bc_block *block, const bc_sample *sample, size_t number) {
  return (const bc_frame *)(const void *)((const char *)sample->frames + number * block->frame_size);
}

int stack_find(const bc_block *block, const bc_sample *sample, const char *symbol, size_t from) {
  for (size_t i = from; i < sample->frame_count; i++) {
    const char *found = frame_of(block, sample, i)->symbol;
    if (found != NULL && strcmp(found, symbol) == 0) {
      return (int)i;
    }
  }
  return -1;
}

bool stack_has(const bc_block *block, const bc_sample *sample, const char *const *names, size_t count) {
  int at = -1;
  for (size_t i = 0; i < count; i++) {
    int found = stack_find(block, sample, names[i], (size_t)(at + 1));
    if (found < 0 || (i > 1 && found != at + 1)) {
      return false;
    }
    at = found;
  }
  return true;
}

void stack_print(const bc_block *block, const bc_sample *sample) {
  printf("method %u, state %c, %zu frames%s%s\n", sample->method,
         sample->thread_state == 0 ? '?' : sample->thread_state, sample->frame_count,
         sample->truncated ? ", truncated" : "", sample->approximate ? ", approximate" : "");
  for (size_t i = 0; i < sample->frame_count; i++) {
    const bc_frame *frame = frame_of(block, sample, i);
    const char *base = frame->module == NULL ? NULL : strrchr(frame->module, '/');
    printf("  #%02zu %s (%s 0x%llx)\n", i, frame->symbol == NULL ? "?" : frame->symbol,
           base == NULL ? "?" : base + 1, (unsigned long long)frame->module_offset);
  }
}
