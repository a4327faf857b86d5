#include "monitor/meters/switch_window.hpp"

#include <algorithm>
#include <utility>

namespace score::monitor {

namespace {

// Boundaries of nodes within this time are the same one. It is above any clock error on one machine
// or network, and well below the shortest quantum.
constexpr Duration kSameBoundary = 300us;
// The skew of a boundary counts once all nodes had time to report it.
constexpr Duration kSettleAfter = 2s;
constexpr std::size_t kUsual = 1'024;  // chosen: the usual number of switches in a window
constexpr Duration kMostDelay = 2s;    // of a sample behind those of other nodes

Quantiles quantiles(std::vector<Duration>& lengths) {
  Quantiles made;
  made.count = lengths.size();
  if (lengths.empty()) return made;
  // The values behind a selected place are not less, so the search for the next one starts there.
  auto from = lengths.begin();
  const auto at = [&](double part) {
    const auto index = part * static_cast<double>(lengths.size() - 1) + 0.5;
    const auto place = lengths.begin() + static_cast<std::ptrdiff_t>(index);
    std::nth_element(from, place, lengths.end());
    from = place;
    return *place;
  };
  made.p50 = at(0.5);
  made.p95 = at(0.95);
  made.max = *std::max_element(from, lengths.end());
  return made;
}

}  // namespace

SwitchWindow::Entry SwitchWindow::entry_of(const SwitchSample& sample) {
  Entry entry;
  entry.due = sample.due;
  entry.enters = !sample.entered.empty();
  for (std::size_t i = 0; i < kSwitchPhases; ++i) {
    entry.lengths[i] = length_of(sample, static_cast<SwitchPhase>(i)).value_or(kNone);
  }
  return entry;
}

std::vector<LateSwitch> SwitchWindow::feed(NodeId node, const NodeSample& sample) {
  std::vector<LateSwitch> found;
  for (const SwitchSample& one : sample.switches) {
    if (!one.is_switch()) continue;
    entries_.push_back(entry_of(one));
    if (!one.entered.empty()) note_boundary(one);
    if (is_late(one.woke, one.slice)) {
      found.push_back({++last_id_, node, one.due, one.woke, one.slice});
    }
  }
  late_.insert(late_.end(), found.begin(), found.end());
  while (late_.size() > kMostLate) late_.pop_front();
  while (!entries_.empty() &&
         (entries_.front().due < sample.taken - kKept || entries_.size() > kMostSwitches)) {
    entries_.pop_front();
  }
  settle(sample.taken - kSettleAfter);
  return found;
}

void SwitchWindow::note_boundary(const SwitchSample& sample) {
  if (sample.due <= settled_) return;  // reported too late to be compared
  auto found = boundaries_.lower_bound(sample.due - kSameBoundary);
  if (found == boundaries_.end() || found->first > sample.due + kSameBoundary) {
    found = boundaries_.try_emplace(sample.due).first;
  }
  Boundary& boundary = found->second;
  const TimePoint done = sample.due + sample.done;
  boundary.first = boundary.nodes == 0 ? done : std::min(boundary.first, done);
  boundary.last = boundary.nodes == 0 ? done : std::max(boundary.last, done);
  ++boundary.nodes;
}

void SwitchWindow::settle(TimePoint before) {
  for (auto next = boundaries_.upper_bound(settled_);
       next != boundaries_.end() && next->first < before; ++next) {
    if (next->second.nodes > 1) skews_.add(next->second.last - next->second.first);
    settled_ = next->first;
  }
  while (!boundaries_.empty() && boundaries_.begin()->first < before - kKept) {
    boundaries_.erase(boundaries_.begin());
  }
}

SwitchWindow::Summary SwitchWindow::summary(TimePoint from, TimePoint to) const {
  Summary made;
  std::array<std::vector<Duration>, kSwitchPhases> lengths;
  Duration overhead{0};
  std::int64_t entering = 0;
  for (auto& of_phase : lengths) of_phase.reserve(kUsual);
  // Entries are in order of arrival, and a new one is not much older than the previous one.
  for (auto next = entries_.rbegin(); next != entries_.rend(); ++next) {
    const Entry& entry = *next;
    if (entry.due < from - kMostDelay) break;
    if (entry.due < from || entry.due >= to) continue;
    ++made.count;
    for (std::size_t i = 0; i < kSwitchPhases; ++i) {
      if (entry.lengths[i] >= Duration(0)) lengths[i].push_back(entry.lengths[i]);
    }
    if (!entry.enters) continue;
    overhead += entry.lengths[static_cast<std::size_t>(SwitchPhase::Total)];
    ++entering;
  }
  for (std::size_t i = 0; i < kSwitchPhases; ++i) made.phases[i] = quantiles(lengths[i]);
  if (entering > 0) made.mean_overhead = overhead / entering;
  std::vector<Duration> skews;
  for (auto next = boundaries_.lower_bound(from); next != boundaries_.end() && next->first < to;
       ++next) {
    if (next->second.nodes > 1) skews.push_back(next->second.last - next->second.first);
  }
  made.skew = quantiles(skews);
  return made;
}

std::optional<LateSwitch> SwitchWindow::last_late() const {
  return late_.empty() ? std::nullopt : std::optional(late_.back());
}

std::optional<LateSwitch> SwitchWindow::late(std::uint64_t id) const {
  for (const LateSwitch& one : late_) {
    if (one.id == id) return one;
  }
  return std::nullopt;
}

}  // namespace score::monitor
