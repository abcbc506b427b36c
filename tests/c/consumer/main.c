#include <blockcanary.h>
#include <stdio.h>

int main(void) {
  puts(bc_version());
  return bc_is_running();
}
