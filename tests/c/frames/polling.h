/* A thread that polls its looper, and does in a callback what it is told to. */
#ifndef POLLING_H
#define POLLING_H

#include <stdatomic.h>

/* Times that it has come back from its poll. */
extern atomic_uint polls;

/* Starts it, and waits for its looper. */
unsigned long polling_thread(void);

/* Has it do something, and waits for that. */
void have_done(void (*work)(void));

/* Ends it. */
void end_polling(unsigned long thread);

#endif
