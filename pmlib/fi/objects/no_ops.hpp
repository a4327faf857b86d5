// Members of libfabric's tables that this provider does not implement: applications call through
// the tables without looking, so none may be null.
#pragma once

#include <rdma/fi_errno.h>

namespace score::pm::fi {

// A function of any type that returns -FI_ENOSYS: `.accept = no_op`.
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
