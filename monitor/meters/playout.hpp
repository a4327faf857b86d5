#pragma once
// Samples that came together are played out in step, as they were taken: viewers see ten a second
// where two messages a second arrive. Pure.

#include "monitor/sampler/samples.hpp"

#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace score::monitor {

class Playout {
 public:
  // How long after it was taken a sample of this period is played: messages come each `together`,
  // and take a moment.
  [[nodiscard]] static Duration delay(Duration period, Duration together) {
    return period > Duration(0) && period < kTogether ? together + 100ms : Duration(0);
  }

  using Sample = std::unique_ptr<NodeSample>;

  // One to fill: as it was when it was played last, for its memory.
  [[nodiscard]] Sample spare();
  // Not null; of one node in the order they were taken.
  void put(NodeId node, Sample sample);
  void forget(NodeId node);

  void forget_all() { nodes_.clear(); }

  // Calls each(NodeId, const NodeSample&) for those taken until then, and for the oldest where more
  // wait than kMostWaiting.
  template <class Each>
  void take(TimePoint until, Each&& each) {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      auto& waiting = nodes_[i];
      while (!waiting.empty() &&
             (waiting.front()->taken <= until || waiting.size() > kMostWaiting)) {
        Sample sample = std::move(waiting.front());
        waiting.pop_front();
        each(NodeId(i), std::as_const(*sample));
        if (spares_.size() < kMostSpares) spares_.push_back(std::move(sample));
      }
    }
  }

 private:
  static constexpr std::size_t kMostWaiting = 32;  // of a node
  static constexpr std::size_t kMostSpares = 1'024;

  std::vector<std::deque<Sample>> nodes_;
  std::vector<Sample> spares_;
};

}  // namespace score::monitor
