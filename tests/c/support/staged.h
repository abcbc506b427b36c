/* Blocks whose causes are staged: a hundred in a row, each judged by what is told of it. */
#ifndef STAGED_H
#define STAGED_H

#include <stdatomic.h>

#include "blocks.h"
#include "crowd.h"

#define RUNS 100
#define LIMIT_MS 30
#define BLOCK_MS 60

/* What other threads do for a run: told by a number that they wait for. */
extern atomic_uint run;
/* The block of this number has begun, or is over. */
extern atomic_uint begun, done;
/* All runs are over. */
extern atomic_bool over;

/* Waits until a number has come, or all is over. */
void wait_for(atomic_uint *number, unsigned n);
/* Where it may, the calling thread, and those that it starts, run before all others: the cause is what is staged then, and
 * not how busy the machine is. */
void go_first(void);

/* Blocks `RUNS` times and counts the blocks that are told rightly. `prepare`, if any, comes before each dispatch: what a
 * block needs of other threads is there when it begins. */
void staged(const char *name, bool (*is_right)(const struct told *told), void (*prepare)(unsigned n),
            void (*block)(unsigned n));
/* Is this the cause, in these words? */
bool says(const struct told *told, bc_cause cause, const char *words);
/* Uninstalls; no wait may have been cut short. */
void finish(void);

#endif
