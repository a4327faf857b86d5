#include "gang/forecast/forecast.hpp"

#include <algorithm>
#include <utility>

namespace score::gang {

namespace {

constexpr TimePoint kNever = TimePoint::max();
constexpr Duration kNoEnd = std::chrono::hours{24 * 36'500};  // a longer job counts as endless
// This limits the steps that are examined in all to a few milliseconds of the head's time.
constexpr std::uint64_t kMostWork = 100'000;

TimePoint end_of(TimePoint start, std::optional<Duration> length) {
  return length && *length < kNoEnd ? start + *length : kNever;
}

}  // namespace

// Returns the maximum in use at any time in [from, to).
std::int64_t Forecast::most_taken(const Steps& steps, TimePoint from, TimePoint to) {
  std::int64_t taken = 0;
  std::int64_t most = 0;
  for (const auto& [at, more] : steps) {
    if (at >= to) break;
    if (at > from) most = std::max(most, taken);
    taken += more;
  }
  return std::max(most, taken);
}

void Forecast::take(const Part& part, std::optional<std::size_t> row, TimePoint from,
                    TimePoint to) {
  const auto add = [&](Steps& steps, std::int64_t amount) {
    steps[from] += amount;
    if (to < kNever) steps[to] -= amount;
  };
  for (std::size_t r = row.value_or(0); r < (row ? *row + 1 : rows_); ++r) {
    add(cores(part.node, r), part.cores);
  }
  add(memory_[part.node], static_cast<std::int64_t>(part.memory.value()));
  if (to < kNever) ends_.insert(to);
}

void Forecast::occupied(const std::vector<Part>& parts, std::optional<std::size_t> row,
                        std::optional<TimePoint> end) {
  const TimePoint to = end ? std::max(*end, now_ + Duration{1}) : kNever;
  for (const Part& part : parts) take(part, row, now_, to);
}

std::uint32_t Forecast::free_cores(NodeIndex node, std::optional<std::size_t> row, TimePoint from,
                                   TimePoint to) {
  std::int64_t taken = 0;
  for (std::size_t r = row.value_or(0); r < (row ? *row + 1 : rows_); ++r) {
    const auto found = cores_.find({node, r});
    if (found == cores_.end()) continue;
    work_ += found->second.size();
    taken = std::max(taken, most_taken(found->second, from, to));
  }
  const std::int64_t free = std::int64_t{nodes_[node].cores} - taken;
  if (!row && taken > 0) return 0;
  return static_cast<std::uint32_t>(std::max<std::int64_t>(0, free));
}

std::optional<Choice> Forecast::fits(const Wanted& wanted, std::optional<std::size_t> row,
                                     TimePoint at) {
  const TimePoint to = end_of(at, wanted.occupant.bound);
  std::vector<Candidate> room;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    ++work_;
    if (nodes_[node].cores == 0 || !calendar_.may_use(wanted.occupant, node, at)) continue;
    if (!wanted.allowed.empty() && !(node < wanted.allowed.size() && wanted.allowed[node])) {
      continue;
    }
    const auto taken = most_taken(memory_[node], at, to);
    const auto memory = static_cast<std::int64_t>(nodes_[node].memory.value()) - taken;
    if (memory < static_cast<std::int64_t>(wanted.shape.memory.value())) continue;
    const std::uint32_t tasks = tasks_on_cores(wanted.shape, free_cores(node, row, at, to));
    if (tasks > 0) room.push_back({node, tasks, 0});
  }
  return choose(at_least(wanted.shape), room);
}

std::optional<TimePoint> Forecast::put(const Wanted& wanted) {
  std::set<TimePoint> times = ends_;
  for (const Reservation& r : calendar_.all()) {
    for (const TimePoint at : {r.start, r.end}) {
      if (at > now_) times.insert(at);
    }
  }
  times.insert(now_);
  const std::size_t rows = wanted.is_exclusive ? 1 : std::min(wanted.rows, rows_);
  for (const TimePoint at : times) {
    for (std::size_t r = 0; r < rows && work_ < kMostWork; ++r) {
      const auto row = wanted.is_exclusive ? std::nullopt : std::optional(r);
      const auto choice = fits(wanted, row, at);
      if (!choice) continue;
      const TimePoint to = end_of(at, wanted.occupant.bound);
      for (std::size_t m = 0; m < choice->nodes.size(); ++m) {
        const NodeIndex node = choice->nodes[m];
        const std::uint32_t cores = wanted.is_exclusive
                                        ? nodes_[node].cores
                                        : cores_of_tasks(wanted.shape, choice->tasks_on_node[m]);
        take({node, cores, wanted.shape.memory}, row, at, to);
      }
      return at;
    }
  }
  return std::nullopt;
}

}  // namespace score::gang
