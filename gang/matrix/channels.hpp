// Channels assigns each job its network channel. A channel is a numbered resource of every node; a
// job has the same number on all of its nodes. While there are enough channels, a job has its own.
// Beyond that jobs share one, but only jobs that the gang schedule never runs at the same time: the
// network is switched with them. It has no I/O and no clock.
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace score::gang {

using base::AttemptId;
using base::JobId;
using base::NodeId;

// NetworkPlace holds the nodes and cores where an attempt runs.
struct NetworkPlace {
  std::vector<NodeId> nodes;                      // [node index]
  std::vector<std::vector<std::uint32_t>> cores;  // [node index]
  JobId gang{0};  // of steps of one job: they run at the same time, even on common cores
};

class Channels {
 public:
  // `count` is 1 ... 65535; channels are numbered from 0. A later, smaller count leaves assigned
  // channels alone.
  explicit Channels(std::uint32_t count) : count_(count) {}

  void set_count(std::uint32_t count) { count_ = count; }

  // Returns the least used channel that the attempt may have, and the same one when it is called
  // again. Errors: Busy: each channel is taken by a job that may run at the same time on a common
  // node.
  base::Result<std::uint16_t> assign(AttemptId attempt, NetworkPlace place);
  // Records a channel that the attempt has had since before a restart.
  void claim(AttemptId attempt, NetworkPlace place, std::uint16_t channel);
  // Releases the channel; does nothing if the attempt has none.
  void release(AttemptId attempt);

  // Returns the attempts with the same channel on a common node, ascending.
  [[nodiscard]] std::vector<AttemptId> sharers(AttemptId attempt) const;

 private:
  struct Holder {
    NetworkPlace place;
    std::uint16_t channel = 0;
  };

  std::uint32_t count_;
  std::map<AttemptId, Holder> holders_;
};

}  // namespace score::gang
