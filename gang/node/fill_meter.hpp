#pragma once
// Does an attempt leave processor time in its turns, so that others should fill it?
//
// A filler costs the attempt in turn a tick of the kernel's per turn and core: it gets the
// processor once after each change of roles, whatever its weight is, until the next tick
// (docs/lab/fill.md). So beside an attempt that uses all of its time the others are frozen.

#include "base/time.hpp"

#include <cstdint>

namespace score::gang {

using base::Duration;

class FillMeter {
 public:
  // cores: of the attempt on this node.
  explicit FillMeter(std::uint32_t cores = 1) : cores_(cores > 0 ? cores : 1) {}

  // A turn of `ran` is over, in which the attempt used `used`. `had_fillers`: others ran at idle
  // priority beside it.
  void add(Duration ran, Duration used, bool had_fillers);

  // At first true.
  [[nodiscard]] bool leaves_time() const { return leaves_time_; }

 private:
  void judge();

  std::uint32_t cores_;
  bool leaves_time_ = true;
  Duration ran_{0}, used_{0}, lost_{0};  // since it was judged
};

}  // namespace score::gang
