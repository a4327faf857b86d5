#include "scored/node/idle/fill_account.hpp"

#include <algorithm>

namespace score::node {

// A stopped attempt uses nothing, so what was read when it was stopped still holds.
[[gnu::hot]] void FillAccount::note(const Change& change, IdleWatch& watch) {
  const bool is_new = change.may_fill && used_ < Duration{0};
  if (change.role == role_ && !is_new) return;
  const bool is_known = role_ == Role::Stopped && used_ >= Duration{0};
  const bool is_measured = change.may_fill || role_ == Role::Fills;
  const Duration used = is_known ? used_ : is_measured ? watch.used_at(change.at) : Duration{-1};
  if (used >= Duration{0} && used_ >= Duration{0}) {
    const Duration more = std::max(used - used_, Duration{0});
    if (role_ == Role::Runs) meter_.add(change.at - since_, more, change.had_fillers);
    if (role_ == Role::Fills) {
      filled_.store(filled_.load(std::memory_order_relaxed) + more.count(),
                    std::memory_order_relaxed);
      watch.skip(more);
    }
  }
  fills_from_.store(change.role == Role::Fills ? used.count() : -1, std::memory_order_release);
  used_ = change.may_fill ? used : Duration{-1};
  since_ = change.at;
  role_ = change.role;
}

Duration FillAccount::read(const IdleWatch& watch) const {
  const auto from = fills_from_.load(std::memory_order_acquire);
  const Duration filled{filled_.load(std::memory_order_relaxed)};
  if (from < 0) return filled;
  return filled + std::max(watch.used() - Duration{from}, Duration{0});
}

}  // namespace score::node
