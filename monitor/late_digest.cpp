#include "monitor/late_digest.hpp"

#include <utility>

namespace score::monitor {

void LateDigest::add(const LateSwitch& late) {
  if (!waiting_) {
    waiting_ = Told{late, 1};
    return;
  }
  ++waiting_->count;
  if (late.late > waiting_->worst.late) waiting_->worst = late;
}

std::optional<LateDigest::Told> LateDigest::take(TimePoint now) {
  if (!waiting_ || (told_ && now - *told_ < kPause)) return std::nullopt;
  told_ = now;
  return std::exchange(waiting_, std::nullopt);
}

}  // namespace score::monitor
