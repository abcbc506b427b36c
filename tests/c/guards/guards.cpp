// What a guard begins it ends, once and with its scope.
#include <blockcanary.hpp>
#include <type_traits>

extern "C" {
#include "../check.h"
#include "../support/blocks.h"
}

using blockcanary::Allowance;
using blockcanary::Dispatch;

static_assert(!std::is_copy_constructible<Dispatch>::value && !std::is_copy_assignable<Dispatch>::value, "one end each");
static_assert(!std::is_copy_constructible<Allowance>::value && !std::is_copy_assignable<Allowance>::value, "one end each");
static_assert(!std::is_convertible<bc_loop *, Dispatch>::value, "never by accident");
static_assert(std::is_nothrow_constructible<Dispatch, bc_loop *, const char *, uint64_t>::value, "");
static_assert(std::is_nothrow_constructible<Allowance, bc_loop *, uint32_t, const char *>::value, "");

static bc_loop *start(uint32_t threshold_ms) {
  bc_config config = config_of(threshold_ms);
  install_and_start(&config);
  return watched("guarded");
}

static uint64_t dispatches(bc_loop *loop) {
  bc_loop_stats stats = {};
  stats.struct_size = sizeof stats;
  CHECK_OK(bc_loop_stats_get(loop, &stats));
  return stats.dispatches;
}

static int leaves_early(bc_loop *loop, bool early) {
  Dispatch dispatch(loop, "function", 1);
  if (early) {
    return 1;
  }
  Dispatch inner(loop, "inner", 2);
  return 2;
}

static void dispatch() {
  bc_loop *loop = start(50);
  leaves_early(loop, true);
  CHECK(dispatches(loop) == 1, "%d dispatches", (int)dispatches(loop));
  leaves_early(loop, false);
  CHECK(dispatches(loop) == 3, "%d dispatches", (int)dispatches(loop));
  {
    Dispatch frame(loop, "frame", 42);
    spin_ms(150);
    CHECK(dispatches(loop) == 3, "ended before its scope");
  }
  { Dispatch bare(loop); }
  CHECK(dispatches(loop) == 5, "%d dispatches", (int)dispatches(loop));
  flush();
  const told *block = blocks_get(BC_BLOCK_ENDED, 42);
  CHECK(block->wall_ns >= 150000000, "%d ns", (int)block->wall_ns);
  CHECK(health().calls_misused == 0, "%d misused", (int)health().calls_misused);
  CHECK_OK(bc_uninstall());
}

static void allowance() {
  bc_loop *loop = start(300);
  Dispatch frame(loop, "frame", 7);
  {
    Allowance loading(loop, 60000, "loading");
    CHECK_OK(loading.status());
    {
      // Refused, so it ends nothing: the outer one still stands.
      Allowance none(loop, 0, "none");
      CHECK_STATUS(none.status(), BC_ERROR_INVALID_ARGUMENT);
    }
    spin_ms(600);
    CHECK_OK(Allowance(loop, 1000, "another").status());
  }
  CHECK_STATUS(bc_allow_end(loop), BC_ERROR_INVALID_STATE);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 7) == 0, "a block in spite of an allowance");
  CHECK_OK(bc_uninstall());
}

CASES({"dispatch", dispatch}, {"allowance", allowance})
