/* A library that comes and goes. All of them are alike but for the name of the function. */
#include "visitor.h"

visitor_function VISITOR;

void VISITOR(void (*call)(void)) {
  volatile int behind = 0;
  call();
  behind++;
}
