/* Samples and frames of a delivered block. */
#ifndef STACKS_H
#define STACKS_H

#include <blockcanary.h>

const bc_sample *sample_of(const bc_block *block, size_t number);
const bc_frame *frame_of(const bc_block *block, const bc_sample *sample, size_t number);
/* Place of the first frame from `from` on in this function; -1: none. */
int stack_find(const bc_block *block, const bc_sample *sample, const char *symbol, size_t from);
/* Does the stack hold all these functions, inner ones first, with nothing between `names[1]` and the last? What lies
 * between the first two is free. */
bool stack_has(const bc_block *block, const bc_sample *sample, const char *const *names, size_t count);
/* Prints a stack, one function a line. */
void stack_print(const bc_block *block, const bc_sample *sample);

#endif
