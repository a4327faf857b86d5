#pragma once
// Late switches as events for people: on a crowded machine there are dozens a second, which would
// push everything else out of the list. Pure.

#include "monitor/switch_window.hpp"

#include <optional>

namespace score::monitor {

class LateDigest {
 public:
  // At most one event in this time; the first comes at once.
  static constexpr Duration kPause = 10s;

  struct Told {
    LateSwitch worst;
    std::size_t count = 1;  // since the last one that was told
  };

  void add(const LateSwitch& late);
  // What is to be told now, if anything.
  std::optional<Told> take(TimePoint now);

 private:
  std::optional<Told> waiting_;
  std::optional<TimePoint> told_;
};

}  // namespace score::monitor
