#pragma once
// PageRates holds how fast each node has written memory of jobs to swap and read it back.

#include "base/time.hpp"
#include "base/units.hpp"
#include "gang/matrix/shape.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace score::gang {

enum class PageWay : std::uint8_t { Out, In };

class PageRates {
 public:
  // Small amounts say little about the swap and are left out.
  static constexpr base::Bytes kLeast{std::uint64_t{4} << 20U};
  static constexpr double kAssumed = 256e6;  // bytes per second, before the first measurement

  // Counts the newest measurement as much as all before it.
  void note(NodeIndex node, PageWay way, base::Bytes moved, base::Duration took) {
    if (moved < kLeast || took <= base::Duration::zero()) return;
    const double rate = static_cast<double>(moved.value()) / seconds(took);
    double& known = rates_[node].at(static_cast<std::size_t>(way));
    known = known > 0 ? (known + rate) / 2 : rate;
  }

  // Returns how long the node will take for so much. A way without a measurement is taken to be as
  // fast as the other one.
  [[nodiscard]] base::Duration time(NodeIndex node, PageWay way, base::Bytes bytes) const {
    const auto found = rates_.find(node);
    double rate = kAssumed;
    if (found != rates_.end()) {
      const double own = found->second.at(static_cast<std::size_t>(way));
      rate = own > 0 ? own : std::max(found->second.front(), found->second.back());
    }
    const double of_bytes = static_cast<double>(bytes.value()) / rate;
    constexpr double kMost = 1e6;  // seconds
    return base::Duration{static_cast<base::Duration::rep>(std::min(of_bytes, kMost) * 1e9)};
  }

 private:
  static double seconds(base::Duration time) { return static_cast<double>(time.count()) / 1e9; }

  std::map<NodeIndex, std::array<double, 2>> rates_;  // [PageWay], bytes per second; 0: unknown
};

}  // namespace score::gang
