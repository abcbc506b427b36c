/* The header alone, as C11. Layouts are pinned here and beside the Rust types. */
#include <blockcanary.h>

#define PIN(type, size) _Static_assert(sizeof(void *) != 8 || sizeof(type) == (size), #type)
#include "header_pins.inc"

int main(void) {
  bc_config config = {.struct_size = sizeof config, .stack_sampling = BC_ON};
  enum bc_status status = BC_OK;
  struct bc_health health = {.struct_size = sizeof health};
  return !(config.stack_sampling == BC_ON && status == BC_OK && health.struct_size == sizeof(bc_health));
}
