#include "monitor/meters/sample_queue.hpp"

#include <utility>

namespace score::monitor {

SampleQueue::Sample SampleQueue::spare() {
  if (spares_.empty()) return std::make_unique<NodeSample>();
  Sample sample = std::move(spares_.back());
  spares_.pop_back();
  return sample;
}

void SampleQueue::put(NodeId node, Sample sample) {
  if (node.value() >= nodes_.size()) nodes_.resize(node.value() + 1);
  auto& waiting = nodes_[node.value()];
  // A slow reader loses the oldest samples, which is harmless because samples are totals.
  if (waiting.size() >= 2 * kMostWaiting) waiting.pop_front();
  waiting.push_back(std::move(sample));
}

void SampleQueue::forget(NodeId node) {
  if (node.value() < nodes_.size()) nodes_[node.value()].clear();
}

}  // namespace score::monitor
