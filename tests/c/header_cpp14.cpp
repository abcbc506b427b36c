// The header alone, as C++14. Layouts are pinned here and beside the Rust types.
#include <blockcanary.h>

#define PIN(type, size) static_assert(sizeof(void *) != 8 || sizeof(type) == (size), #type)
#include "header_pins.inc"

int main() {
  bc_config config = {};
  config.struct_size = sizeof config;
  config.stack_sampling = BC_ON;
  bc_status status = BC_OK;
  return !(config.stack_sampling == BC_ON && status == BC_OK);
}
