#include "scored/node/idle/fill_account.hpp"

#include <algorithm>

namespace score::node {

[[gnu::hot]] void FillAccount::start(Duration used) {
  fills_from_.store(used.count(), std::memory_order_release);
}

[[gnu::hot]] Duration FillAccount::stop(Duration used) {
  const Duration from{fills_from_.load(std::memory_order_relaxed)};
  const Duration more = std::max(used - from, Duration{0});
  filled_.store(filled_.load(std::memory_order_relaxed) + more.count(), std::memory_order_relaxed);
  fills_from_.store(-1, std::memory_order_release);
  return more;
}

Duration FillAccount::read(const IdleWatch& watch) const {
  const auto from = fills_from_.load(std::memory_order_acquire);
  const Duration filled{filled_.load(std::memory_order_relaxed)};
  if (from < 0) return filled;
  return filled + std::max(watch.used() - Duration{from}, Duration{0});
}

}  // namespace score::node
