/* Guards over blockcanary.h for C++14 and later: what begins with an object ends with it. Header-only, without exceptions,
 * RTTI and allocation. With the no-op build (BLOCKCANARY_ENABLED=0, as blockcanary::noop defines it) they are empty and
 * leave no instruction behind. SPDX-License-Identifier: Apache-2.0 */

#ifndef BLOCKCANARY_HPP
#define BLOCKCANARY_HPP

#include <blockcanary.h>

namespace blockcanary {

#if !defined(BLOCKCANARY_ENABLED) || BLOCKCANARY_ENABLED
/* Objects of both builds in one program do not get each other's functions. */
inline namespace live {

/**
 * A dispatch, from here to the end of the scope: `bc_dispatch_begin`, `bc_dispatch_end`.
 *
 * Units: none. Ownership: `what` stays the caller's and must stay valid until the guard is gone. Threads: the loop's own.
 * Async-signal-safe: no.
 */
class Dispatch {
 public:
  explicit Dispatch(bc_loop *loop, const char *what = nullptr, uint64_t tag = 0) noexcept : loop_(loop) {
    bc_dispatch_begin(loop, what, tag);
  }
  ~Dispatch() { bc_dispatch_end(loop_); }
  Dispatch(const Dispatch &) = delete;
  Dispatch &operator=(const Dispatch &) = delete;

 private:
  bc_loop *const loop_;
};

/**
 * An allowance, from here to the end of the scope: `bc_allow_begin`, `bc_allow_end`. One that could not begin ends nothing.
 *
 * Units: milliseconds. Ownership: `why` stays the caller's and must stay valid until the guard is gone. Threads: the
 * loop's own. Async-signal-safe: no.
 */
class Allowance {
 public:
  Allowance(bc_loop *loop, uint32_t allowance_ms, const char *why = nullptr) noexcept
      : loop_(loop), status_(bc_allow_begin(loop, allowance_ms, why)) {}
  ~Allowance() {
    if (status_ == BC_OK) {
      bc_allow_end(loop_);
    }
  }
  Allowance(const Allowance &) = delete;
  Allowance &operator=(const Allowance &) = delete;

  /** What `bc_allow_begin` returned. */
  bc_status status() const noexcept { return status_; }

 private:
  bc_loop *const loop_;
  const bc_status status_;
};

}  // namespace live
#else
inline namespace noop {

class Dispatch {
 public:
  explicit Dispatch(bc_loop *, const char * = nullptr, uint64_t = 0) noexcept {}
  ~Dispatch() {}
  Dispatch(const Dispatch &) = delete;
  Dispatch &operator=(const Dispatch &) = delete;
};

class Allowance {
 public:
  Allowance(bc_loop *, uint32_t, const char * = nullptr) noexcept {}
  ~Allowance() {}
  Allowance(const Allowance &) = delete;
  Allowance &operator=(const Allowance &) = delete;

  bc_status status() const noexcept { return BC_OK; }
};

}  // namespace noop
#endif

}  // namespace blockcanary

#endif  /* BLOCKCANARY_HPP */
