/* Threads of every kind, and a watched loop, whose stacks are known. */
#ifndef CROWD_H
#define CROWD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What a thread does. A timed wait is one that a signal would cut short; a masked thread runs, too. */
enum doing { IN_FUTEX, IN_READ, IN_POLL, IN_TIMED_WAITS, SPINNING, MASKED, WITH_LOADERS_LOCK, DOINGS };

#define CROWD_MAX 2000

struct one {
  enum doing doing;
  char name[16];
  int32_t tid;
  unsigned long thread;
  /* For whoever looks at it: while it ran, its stack was taken. */
  bool was_caught;
};

extern struct one crowd[CROWD_MAX];
extern unsigned crowd_count;
/* The watched one, if it is there. */
extern int32_t crowd_loop_tid;
/* Timed waits, and those that ended early. */
extern atomic_uint crowd_waits, crowd_waits_cut;
/* All shall end. */
extern atomic_bool crowd_over;

/* Inner ones first; not exported. What IN_FUTEX and WITH_LOADERS_LOCK do, the watched loop, and SPINNING. */
extern const char *const quiet_chain[3], *const loop_chain[2], *const spins_chain[1];

/* So many of a kind; then, some of each and the watched loop. They are where they will stay when these return. */
void crowd_of(enum doing doing, unsigned count);
void crowd_of_all(void);
/* Joins them. */
void crowd_end(void);

bool is_asleep(int32_t tid);
int32_t tid_of_self(void);

#endif
