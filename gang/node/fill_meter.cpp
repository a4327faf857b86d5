#include "gang/node/fill_meter.hpp"

#include <algorithm>

namespace score::gang {

namespace {

// Shorter turns are judged together, because the kernel counts the use of a running task at its
// ticks, usually 4 ms apart.
constexpr Duration kLeast = std::chrono::milliseconds{40};
constexpr Duration kTick = std::chrono::milliseconds{4};
// The two limits differ, so that an attempt near one of them does not change with each turn. They
// are fractions of what it could use.
constexpr double kBusyAlone = 0.85;
constexpr double kBusyBesideFillers = 0.95;

}  // namespace

[[gnu::hot]] void FillMeter::note_fillers() {
  lost_ += kTick;
}

[[gnu::hot]] void FillMeter::add(Duration ran, Duration wanted) {
  ran_ += ran;
  wanted_ += wanted;
  if (ran_ >= kLeast) judge();
}

[[gnu::hot]] void FillMeter::judge() {
  const auto whole = static_cast<double>(ran_.count()) * cores_;
  const auto lost = static_cast<double>(std::min(lost_, ran_).count()) * cores_;
  const auto wanted = static_cast<double>(wanted_.count()) + lost;
  leaves_time_ = wanted < whole * (lost > 0 ? kBusyBesideFillers : kBusyAlone);
  ran_ = wanted_ = lost_ = Duration{0};
}

}  // namespace score::gang
