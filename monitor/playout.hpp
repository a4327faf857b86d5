#pragma once
// Samples that came together are played out in step, as they were taken: viewers see ten a second
// where two messages a second arrive. Pure.

#include "monitor/samples.hpp"

#include <deque>
#include <vector>

namespace score::monitor {

class Playout {
 public:
  // How long after it was taken a sample of this period is played: messages come each kTogether,
  // and take a moment.
  [[nodiscard]] static Duration delay(Duration period) {
    return period > Duration(0) && period < kTogether ? kTogether + 100ms : Duration(0);
  }

  // Of one node in the order they were taken.
  void put(NodeId node, NodeSample sample);
  void forget(NodeId node);

  void forget_all() { nodes_.clear(); }

  // Calls each(NodeId, NodeSample) for those taken until then, and for the oldest where more wait
  // than kMostWaiting.
  template <class Each>
  void take(TimePoint until, Each&& each) {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      auto& waiting = nodes_[i];
      while (!waiting.empty() &&
             (waiting.front().taken <= until || waiting.size() > kMostWaiting)) {
        const NodeSample sample = std::move(waiting.front());
        waiting.pop_front();
        each(NodeId(i), sample);
      }
    }
  }

 private:
  static constexpr std::size_t kMostWaiting = 32;  // of a node

  std::vector<std::deque<NodeSample>> nodes_;
};

}  // namespace score::monitor
