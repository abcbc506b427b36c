/* Counts calls of the process's allocator that the library must not make: on its threads, and inside its functions. */
#ifndef MALLOC_COUNTER_H
#define MALLOC_COUNTER_H

#include <stdint.h>

/* Counting begins and ends. */
void malloc_counter_on(void);
void malloc_counter_off(void);
/* Calls counted so far; with a line for each of the first few on standard error. */
uint64_t malloc_counter_show(void);

/* The calling thread is inside a function of the library. */
extern __thread int malloc_counter_inside;

/* BC(call): a call of the library, with its value; BC_VOID(call): without one. */
#define BC(call)                             \
  __extension__({                            \
    malloc_counter_inside++;                 \
    __typeof__(call) bc_value = (call);      \
    malloc_counter_inside--;                 \
    bc_value;                                \
  })
#define BC_VOID(call)        \
  do {                       \
    malloc_counter_inside++; \
    (call);                  \
    malloc_counter_inside--; \
  } while (0)

#endif
