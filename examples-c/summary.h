/* One block, in a few lines for people. */
#ifndef SUMMARY_H
#define SUMMARY_H

#include <blockcanary.h>
#include <stdbool.h>

/* Prints duration, loop, hottest frames and report. `function` is who is known to be guilty, or NULL; gives whether it
 * is among the hottest frames. */
bool summary_print(const bc_block *block, const char *function);

#endif
