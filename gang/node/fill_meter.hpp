#pragma once
// Does an attempt leave processor time in its turns, so that others should fill it?
//
// A filler costs the attempt in turn a tick of the kernel's per turn and core: it gets the
// processor once after each change of roles, whatever its weight is, until the next tick
// (docs/lab/fill.md). So beside an attempt that uses all of its time, or would if the node were not
// crowded, the others are frozen.

#include "base/time.hpp"

#include <cstdint>

namespace score::gang {

using base::Duration;

class FillMeter {
 public:
  // cores: of the attempt on this node.
  explicit FillMeter(std::uint32_t cores = 1) : cores_(cores > 0 ? cores : 1) {}

  // Its turn begins, and others run at idle priority beside it.
  void note_fillers();
  // It had its turn for `ran` since the last call, and used, or waited for, `wanted` of processor
  // time.
  void add(Duration ran, Duration wanted);

  // At first false.
  [[nodiscard]] bool leaves_time() const { return leaves_time_; }

 private:
  void judge();

  std::uint32_t cores_;
  bool leaves_time_ = false;
  Duration ran_{0}, wanted_{0}, lost_{0};  // since it was judged; lost to fillers, per core
};

}  // namespace score::gang
