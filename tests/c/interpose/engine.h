/* An engine on a looper. */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdio.h>

/* What it has done, by its own count. */
struct engine_counts {
  unsigned callbacks, polls;
};

/* Runs it to its end on the calling thread, and writes what it gets from the looper to `transcript`. Twice it takes
 * `slow_ms` for something: in a callback, and between two polls. */
struct engine_counts engine_run(FILE *transcript, unsigned slow_ms);

#endif
