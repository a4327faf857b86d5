// Fills members of libfabric's tables that this provider does not implement. Applications call
// through the tables without a check, so no member may be null.
#pragma once

#include <rdma/fi_errno.h>

namespace score::pm::fi {

// Converts to a function of any type that returns -FI_ENOSYS, as in `.accept = no_op`.
struct NoOp {
  template <class R, class... Args>
  using Function = R (*)(Args...);

  template <class R, class... Args>
  constexpr operator Function<R, Args...>() const {
    return [](Args...) -> R { return static_cast<R>(-FI_ENOSYS); };
  }
};

inline constexpr NoOp no_op;

}  // namespace score::pm::fi
