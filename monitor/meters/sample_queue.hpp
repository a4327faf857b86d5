#pragma once
// SampleQueue delivers samples that arrive together at the pace at which they were taken: viewers
// see ten per second where two messages per second arrive. It is pure.

#include "monitor/sampler/samples.hpp"

#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace score::monitor {

class SampleQueue {
 public:
  // Returns the delay between taking and delivering a sample of this period, because messages come
  // every `together` and need some time.
  [[nodiscard]] static Duration delay(Duration period, Duration together) {
    return period > Duration(0) && period < kTogether ? together + 100ms : Duration(0);
  }

  using Sample = std::unique_ptr<NodeSample>;

  // Returns an old sample to fill again, so that its memory is reused.
  [[nodiscard]] Sample spare();
  // Queues a sample, which is not null. The samples of a node must come in the order in which they
  // were taken.
  void put(NodeId node, Sample sample);
  void forget(NodeId node);

  void forget_all() { nodes_.clear(); }

  // Calls each(NodeId, const NodeSample&) for samples taken until then, and for the oldest ones
  // beyond kMostWaiting.
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
  static constexpr std::size_t kMostWaiting = 32;  // per node
  static constexpr std::size_t kMostSpares = 1'024;

  std::vector<std::deque<Sample>> nodes_;
  std::vector<Sample> spares_;
};

}  // namespace score::monitor
