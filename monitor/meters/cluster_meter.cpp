#include "monitor/meters/cluster_meter.hpp"

#include <algorithm>

namespace score::monitor {

namespace {

bool went_back(const NodeTotals& now, const NodeTotals& before) {
  return now.switches < before.switches || now.busy < before.busy ||
         now.overhead.total() < before.overhead.total();
}

// Returns the totals with the fields that the sample left out.
NodeTotals with_rest_of(const NodeTotals& before, const NodeTotals& sent) {
  NodeTotals made = before;
  made.switches = sent.switches;
  made.late = sent.late;
  made.overhead = sent.overhead;
  made.busy = sent.busy;
  return made;
}

// Adds the growth of a total since the previous one.
template <class Total>
void add_growth(Total& sum, const Total& now, const Total& before) {
  if (now > before) sum += now - before;
}

void add_growth(NodeTotals& sum, const NodeTotals& now, const NodeTotals& before) {
  add_growth(sum.switches, now.switches, before.switches);
  add_growth(sum.late, now.late, before.late);
  for (const auto& [name, part] : kOverheadParts) {
    add_growth(sum.overhead.*part, now.overhead.*part, before.overhead.*part);
  }
  add_growth(sum.busy, now.busy, before.busy);
  add_growth(sum.user, now.user, before.user);
  add_growth(sum.system, now.system, before.system);
  add_growth(sum.filled, now.filled, before.filled);
  for (std::size_t i = 0; i < kSwitchPhases; ++i) {
    auto& counts = sum.phases[i].counts;
    for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
      add_growth(counts[bucket], now.phases[i].counts[bucket], before.phases[i].counts[bucket]);
    }
    add_growth(sum.phases[i].sum, now.phases[i].sum, before.phases[i].sum);
  }
}

}  // namespace

const ClusterMeter::Node* ClusterMeter::find(NodeId node) const {
  return node.value() < nodes_.size() ? &nodes_[node.value()] : nullptr;
}

std::vector<LateSwitch> ClusterMeter::feed(NodeId id, const NodeSample& sample) {
  if (id.value() >= nodes_.size()) nodes_.resize(id.value() + 1);
  Node& node = nodes_[id.value()];
  if (!sample.totals_only) {
    node.load.feed(sample);
    node.runs.feed(sample);
  }
  if (sample.totals) note_totals(node, sample.taken, *sample.totals);
  return switches_.feed(id, sample);
}

void ClusterMeter::feed_volumes(NodeId id, TimePoint taken,
                                const std::vector<VolumeSample>& volumes) {
  if (id.value() >= nodes_.size()) nodes_.resize(id.value() + 1);
  nodes_[id.value()].scratch.feed(taken, volumes);
}

void ClusterMeter::note_totals(Node& node, TimePoint taken, const NodeTotals& totals) {
  // A scrape requests totals, which may overtake queued samples.
  if (!node.totals.empty() && taken < node.totals.back().at) return;
  const bool has_restarted = node.has_totals && went_back(totals, node.newest);
  if (has_restarted) node.totals.clear();
  node.totals.push_back({taken, {totals.overhead, totals.busy}, totals.switches});
  // One entry beyond the window remains, as the base of the differences.
  while (node.totals.size() > 2 && node.totals[1].at < taken - kOverheadWindow) {
    node.totals.pop_front();
  }
  // Counts from before the first sample are no growth, and partial totals lack them.
  if (!totals.is_whole && !node.has_totals) return;
  const NodeTotals before = has_restarted ? NodeTotals() : node.newest;
  const NodeTotals now = totals.is_whole ? totals : with_rest_of(before, totals);
  if (node.has_totals) add_growth(sum_, now, before);
  node.newest = now;
  node.has_totals = true;
}

void ClusterMeter::task_ended(NodeId node, JobId job, TimePoint at) {
  if (node.value() < nodes_.size()) nodes_[node.value()].runs.task_ended(job, at);
}

void ClusterMeter::interrupt(NodeId node, TimePoint now) {
  if (node.value() >= nodes_.size()) return;
  nodes_[node.value()].load.forget();
  nodes_[node.value()].runs.interrupt(now);
  nodes_[node.value()].scratch.forget();
  nodes_[node.value()].totals.clear();
}

void ClusterMeter::interrupt_all(TimePoint now) {
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) interrupt(NodeId(i), now);
}

const NodeLoad* ClusterMeter::load(NodeId id) const {
  const Node* node = find(id);
  return node != nullptr && node->load.has_sample() ? &node->load.load() : nullptr;
}

const NodeTotals* ClusterMeter::totals(NodeId id) const {
  const Node* node = find(id);
  return node != nullptr && node->has_totals ? &node->newest : nullptr;
}

const ScratchMeter* ClusterMeter::scratch(NodeId id) const {
  const Node* node = find(id);
  return node != nullptr ? &node->scratch : nullptr;
}

std::vector<JobRun> ClusterMeter::runs(NodeId id, TimePoint from, TimePoint to) const {
  const Node* node = find(id);
  return node != nullptr ? node->runs.between(from, to) : std::vector<JobRun>();
}

std::vector<JobRun> ClusterMeter::fills(NodeId id, TimePoint from, TimePoint to) const {
  const Node* node = find(id);
  return node != nullptr ? node->runs.fills_between(from, to) : std::vector<JobRun>();
}

void ClusterMeter::add_overhead(const Node& node, Overhead& sum) {
  if (node.totals.size() < 2) return;
  const Overhead& first = node.totals.front().overhead;
  const Overhead& last = node.totals.back().overhead;
  sum.spent += last.spent - first.spent;
  sum.busy += last.busy - first.busy;
}

ClusterMeter::Overhead ClusterMeter::overhead(NodeId id) const {
  Overhead sum;
  if (const Node* node = find(id)) add_overhead(*node, sum);
  return sum;
}

ClusterMeter::Overhead ClusterMeter::overhead() const {
  Overhead sum;
  for (const Node& node : nodes_) add_overhead(node, sum);
  return sum;
}

double ClusterMeter::switches_per_second() const {
  double sum = 0;
  std::size_t count = 0;
  for (const Node& node : nodes_) {
    if (node.totals.size() < 2) continue;
    const Totals& first = node.totals.front();
    const Totals& last = node.totals.back();
    if (last.switches <= first.switches) continue;
    const double period = std::chrono::duration<double>(last.at - first.at).count();
    sum += static_cast<double>(last.switches - first.switches) / period;
    ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace score::monitor
