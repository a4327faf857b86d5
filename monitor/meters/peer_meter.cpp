#include "monitor/meters/peer_meter.hpp"

#include "base/model/model.hpp"

#include <algorithm>

namespace score::monitor {

namespace {

constexpr std::uint32_t kHalf = 1U << 31;

// Returns the growth of a count modulo 2^32. A count that went back has grown by 0.
std::uint32_t growth(std::uint32_t before, std::uint32_t now) {
  const std::uint32_t grown = now - before;
  return grown < kHalf ? grown : 0;
}

}  // namespace

void PeerMeter::set_nodes(std::uint32_t count) {
  if (count == node_count_) return;
  node_count_ = count;
  nodes_per_cell_ = std::max((count + kMostSide - 1) / kMostSide, 1U);
  rows_.clear();
}

void PeerMeter::feed(NodeId from, TimePoint taken, const GangSample& gang,
                     std::span<const NodeId> nodes) {
  if (gang.frames_to.size() != nodes.size() || from.value() >= node_count_) return;
  sweep(taken);
  std::vector<std::uint32_t> frames(side());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].value() >= node_count_) return;
    frames[nodes[i].value() / nodes_per_cell_] += gang.frames_to[i];
  }
  Row& row = rows_[{gang.attempt, from}];
  if (!row.frames.empty()) {
    const double period = std::chrono::duration<double>(taken - row.taken).count();
    if (period <= 0) return;
    row.rates.resize(frames.size());
    for (std::size_t i = 0; i < frames.size(); ++i) {
      row.rates[i] = growth(row.frames[i], frames[i]) / period;
    }
  }
  row.taken = taken;
  row.frames = std::move(frames);
}

void PeerMeter::sweep(TimePoint now) {
  if (now - swept_ < kKept) return;
  swept_ = now;
  std::erase_if(rows_, [&](const auto& row) { return row.second.taken < now - kKept; });
}

std::vector<PeerMeter::Cell> PeerMeter::cells(TimePoint now, std::optional<JobId> job) const {
  std::vector<double> sums(side() * side());  // [row][column]
  for (const auto& [key, row] : rows_) {
    const auto& [attempt, from] = key;
    if (row.taken < now - kKept || (job && base::job_of(attempt) != *job)) continue;
    double* to = sums.data() + from.value() / nodes_per_cell_ * side();
    for (const double rate : row.rates) *to++ += rate;
  }
  std::vector<Cell> found;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] <= 0) continue;
    found.push_back(
        {static_cast<std::uint32_t>(i / side()), static_cast<std::uint32_t>(i % side()), sums[i]});
  }
  return found;
}

}  // namespace score::monitor
