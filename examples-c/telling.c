#include "telling.h"

#include <inttypes.h>
#include <stdio.h>

#define FRAMES 6

void telling_listener(const bc_block *block, void *user_data) {
  (void)user_data;
  if (block->state != BC_BLOCK_ENDED) {
    return;
  }
  printf("block: loop \"%s\", \"%s\" (%" PRId64 "), %.0f ms, %s:", block->loop_name,
         block->what != NULL ? block->what : "?", (int64_t)block->tag, (double)block->wall_ns / 1e6,
         block->cause_detail != NULL ? block->cause_detail : "nobody knows why");
  /* Samples and frames may grow in a later version: the block tells the distance between two. */
  const char *sample_at = (const char *)block->samples;
  for (size_t i = 0; i < block->sample_count; i++, sample_at += block->sample_size) {
    const bc_sample *sample = (const bc_sample *)(const void *)sample_at;
    const char *frame_at = (const char *)sample->frames;
    for (size_t k = 0; k < sample->frame_count && k < FRAMES; k++, frame_at += block->frame_size) {
      const bc_frame *frame = (const bc_frame *)(const void *)frame_at;
      printf(" %s", frame->symbol != NULL ? frame->symbol : "?");
    }
    if (sample->frame_count > 0) {
      break;
    }
  }
  printf("\n");
  fflush(stdout);
}
