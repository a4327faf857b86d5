#pragma once
// Late switches as events for people: on a crowded machine there are dozens a second, which would
// push everything else out of the list, or fill the journal. Pure.

#include "base/time.hpp"

#include <optional>
#include <utility>

namespace score::monitor {

// Late: a value with `Duration late`.
template <class Late>
class LateDigest {
 public:
  // At most one event in `pause`; the first comes at once.
  explicit LateDigest(Duration pause) : pause_(pause) {}

  struct Told {
    Late worst;
    std::uint64_t count = 1;  // since the last one that was told
  };

  void add(const Late& late) {
    if (!waiting_) {
      waiting_ = Told{late, 1};
      return;
    }
    ++waiting_->count;
    if (late.late > waiting_->worst.late) waiting_->worst = late;
  }

  // What is to be told now, if anything.
  std::optional<Told> take(TimePoint now) {
    if (!waiting_ || (told_ && now - *told_ < pause_)) return std::nullopt;
    told_ = now;
    return std::exchange(waiting_, std::nullopt);
  }

 private:
  Duration pause_;
  std::optional<Told> waiting_;
  std::optional<TimePoint> told_;
};

}  // namespace score::monitor
