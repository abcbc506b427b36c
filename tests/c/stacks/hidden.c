/* A library whose inner function only its file names. All of them are alike but for that name. */
#include "visitor.h"

#include "../check.h"

STAYS static void HIDDEN(void (*call)(void)) {
  volatile int behind = 0;
  call();
  behind++;
}

visitor_function leads_to_hidden;

void leads_to_hidden(void (*call)(void)) {
  volatile int behind = 0;
  HIDDEN(call);
  behind++;
}
