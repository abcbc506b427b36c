/* A library that comes and goes. All of them have the same pages and a function at the same place, but its name and
 * frame are others, and the tables that describe it lie elsewhere. */
#include "visitor.h"

visitor_function VISITOR;

void VISITOR(void (*call)(void)) {
  volatile char room[ROOM];
  room[0] = 0;
  call();
  room[0]++;
}

#ifdef MORE
/* Lies before the tables. */
const char more_constants[400] = {1};

#define FUNCTION(name)                          \
  void name(void (*call)(void), char *buffer);  \
  void name(void (*call)(void), char *buffer) { \
    volatile char room[sizeof #name * 8];       \
    room[0] = *buffer;                          \
    call();                                     \
    *buffer = room[0];                          \
  }
FUNCTION(more_1)
FUNCTION(more_two)
FUNCTION(more_three)
FUNCTION(more_4)
FUNCTION(more_number_five)
#endif
