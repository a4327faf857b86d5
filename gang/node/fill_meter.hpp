#pragma once
// FillMeter decides whether an attempt leaves processor time in its turns, so that other attempts
// should fill it.
//
// A filler costs the attempt in turn a tick of the kernel per turn and core: it gets the processor
// once after each change of roles, whatever its weight is, until the next tick (docs/lab/fill.md).
// So the other attempts are frozen if the attempt in turn uses all of its time, or would do so if
// the node were not crowded.

#include "base/time.hpp"

#include <cstdint>

namespace score::gang {

using base::Duration;

class FillMeter {
 public:
  // `cores` is the number of cores of the attempt on this node.
  explicit FillMeter(std::uint32_t cores = 1) : cores_(cores > 0 ? cores : 1) {}

  // Its turn begins, and other attempts run at idle priority at the same time.
  void note_fillers();
  // Records that it had its turn for `ran` since the last call, and used, or waited for, `wanted`
  // of processor time.
  void add(Duration ran, Duration wanted);

  // Returns whether it leaves time; false at first.
  [[nodiscard]] bool leaves_time() const { return leaves_time_; }

 private:
  void judge();

  std::uint32_t cores_;
  bool leaves_time_ = false;
  Duration ran_{0}, wanted_{0}, lost_{0};  // since the last judgement; lost to fillers, per core
};

}  // namespace score::gang
