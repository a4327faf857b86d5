#pragma once
// UserBudget limits what one user may have of the head, over all connections of the user.

#include "base/async/byte_budget.hpp"
#include "base/async/token_bucket.hpp"
#include "base/limits.hpp"

namespace score::head {

struct UserBudget {
  TokenBucket requests{limits::kRequestsPerSecond, limits::kRequestBurst};
  ByteBudget incoming{limits::kMaxUserRequestBytes, limits::kMaxUserRequestBytes};
  ByteBudget outgoing{limits::kUserQueueRoom, limits::kMaxUserQueueBytes};
};

}  // namespace score::head
