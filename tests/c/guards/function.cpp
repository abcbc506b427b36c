// A function with guards and the same without: what the compiler makes of the two is compared.
#include <blockcanary.hpp>

void run_frame(int number);
bool load_level(int number);

extern "C" bool frame(bc_loop *loop, int number);
extern "C" bool frame(bc_loop *loop, int number) {
#ifdef GUARDED
  blockcanary::Dispatch dispatch(loop, "frame", static_cast<uint64_t>(number));
#else
  (void)loop;
#endif
  run_frame(number);
  if (number == 0) {
    return false;
  }
#ifdef GUARDED
  blockcanary::Allowance allowance(loop, 5000, "level");
  if (allowance.status() != BC_OK) {
    return false;
  }
#endif
  return load_level(number);
}
