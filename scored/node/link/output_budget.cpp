#include "scored/node/link/output_budget.hpp"

#include <algorithm>

namespace score::node {

namespace {

double cost_of(std::size_t bytes) {
  return static_cast<double>(OutputBudget::kPerFrame.count()) +
         static_cast<double>(bytes) * OutputBudget::kNanosecondsPerByte;
}

// Returns the share as nanoseconds per second.
double rate_of(std::size_t processors) {
  return OutputBudget::kShare * 1e9 * static_cast<double>(std::max<std::size_t>(processors, 1));
}

bool begins_within(const JobHere& one, const JobHere& other) {
  return !one.cores.empty() &&
         std::ranges::find(other.cores, one.cores.front()) != other.cores.end();
}

}  // namespace

bool competes(const JobHere& one, const JobHere& other) {
  if (one.job == other.job) return false;
  if (!one.user || one.user != other.user) return true;
  return !begins_within(one, other) && !begins_within(other, one);
}

OutputBudget::OutputBudget(std::size_t processors)
    : pace_(rate_of(processors),
            rate_of(processors) * std::chrono::duration<double>(kBurst).count()) {}

TimePoint OutputBudget::reserve(UserId user, std::size_t bytes, TimePoint now) {
  const TimePoint paid = pace_.reserve(user, cost_of(bytes), now);
  if (paid <= now) return now;
  const auto batches = (paid.time_since_epoch() + kBatch - Duration{1}) / kBatch;
  return TimePoint(batches * kBatch);
}

}  // namespace score::node
