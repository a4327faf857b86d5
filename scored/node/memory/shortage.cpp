#include "scored/node/memory/shortage.hpp"

#include <utility>

namespace score::node {

std::optional<base::MemoryReport> ShortageWatch::note(Bytes available, bool has_parked,
                                                      TimePoint now) {
  const Bytes enough = is_short_ ? least_ + Bytes(least_.value() / 2) : least_;
  const bool was_short = std::exchange(is_short_, available < enough);
  const bool is_wanted = is_short_ || has_parked;
  const Duration pause = is_short_ ? kRepeat : kParkedRepeat;
  const bool is_due = is_wanted && (!reported_ || now - *reported_ >= pause);
  if (was_short == is_short_ && !is_due) return std::nullopt;
  reported_ = now;
  return base::MemoryReport{is_short_, available - least_};
}

}  // namespace score::node
