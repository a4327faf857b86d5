#include "monitor/meters/playout.hpp"

#include <utility>

namespace score::monitor {

Playout::Sample Playout::spare() {
  if (spares_.empty()) return std::make_unique<NodeSample>();
  Sample sample = std::move(spares_.back());
  spares_.pop_back();
  return sample;
}

void Playout::put(NodeId node, Sample sample) {
  if (node.value() >= nodes_.size()) nodes_.resize(node.value() + 1);
  auto& waiting = nodes_[node.value()];
  // Whoever reads too slowly or not at all loses the oldest, which cost nothing: they are totals.
  if (waiting.size() >= 2 * kMostWaiting) waiting.pop_front();
  waiting.push_back(std::move(sample));
}

void Playout::forget(NodeId node) {
  if (node.value() < nodes_.size()) nodes_[node.value()].clear();
}

}  // namespace score::monitor
