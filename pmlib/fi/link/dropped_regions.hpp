// Regions of PM that transfers no longer need. PM may still use one; it is then dropped later.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"

#include <cerrno>
#include <cstdint>
#include <vector>

namespace score::pm::fi {

class DroppedRegions {
 public:
  explicit DroppedRegions(pm::Endpoint& pm) : pm_(pm) {}

  void drop(std::uint32_t region) {
    if (pm_.drop_region(region) == EBUSY) in_use_.push_back(region);
  }

  // Drops the regions that PM no longer uses.
  void retry() {
    std::erase_if(in_use_, [&](std::uint32_t region) { return pm_.drop_region(region) != EBUSY; });
  }

  bool is_empty() const { return in_use_.empty(); }

 private:
  pm::Endpoint& pm_;
  std::vector<std::uint32_t> in_use_;
};

}  // namespace score::pm::fi
