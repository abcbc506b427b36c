/* The engine with the no-op: nothing is seen, and nothing is different. */
#include <blockcanary.h>

#include "engine.h"

int main(void) {
  bc_install(NULL);
  bc_start();
  engine_run(stdout, 1);
  return bc_uninstall() != BC_OK;
}
