/* An app's main Looper that is watched: what the cases have in common. */
#ifndef MAIN_LOOPER_H
#define MAIN_LOOPER_H

#include <blockcanary.h>

/* How blocks of messages that `Messages.post` sends are called. */
constexpr const char *WHAT = "dev.blockcanary.test.Messages$Work what=7";

/* The reports' folder gets its name; `begin` does that, too. */
void name_folder(void);
/* Begins the VM, and installs and starts the library with stored reports. */
void begin(bool is_precise, uint32_t threshold_ms);
/* The library alone, after an uninstall. */
void begin_again(uint32_t threshold_ms);
/* Uninstalls; no report is left. */
void end(void);
/* The main thread is watched, by whichever thread calls. */
bc_loop *watch(void);
/* Dispatches of the loop that was watched last. */
uint64_t dispatches(void);
/* Runs messages on the main thread until all are done; `run` waits for their reports, too. */
void run_bare(int count, int each = 0, int ms = 0);
void run(int count, int each, int ms);
/* The blocks that have ended: how many are of this message, and how many have the function's Java stack, in both forms. */
void count_blocks(unsigned *named, unsigned *stacks);

#endif
