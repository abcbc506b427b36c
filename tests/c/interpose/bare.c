/* The engine by itself. */
#include "engine.h"

int main(void) {
  engine_run(stdout, 1);
  return 0;
}
