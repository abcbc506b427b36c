/* What the library says of itself; the no-op must say the same. */
#include <blockcanary.h>
#include <stdio.h>

int main(void) {
  puts(bc_version());
  for (int status = -1; status < 32; status++) {
    puts(bc_status_str((bc_status)status));
  }
  return 0;
}
