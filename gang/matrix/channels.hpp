// The channel of each job's network. A channel is a numbered resource of every node; a job has
// the same number on all of its nodes. While channels suffice a job is alone on its own; beyond
// that jobs share one in turn, but only jobs that the gang schedule never runs beside each other:
// the network is switched with them. Pure.
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

// Where an attempt runs.
struct NetworkPlace {
  std::vector<NodeId> nodes;                      // [node index]
  std::vector<std::vector<std::uint32_t>> cores;  // [node index]
  JobId gang{0};  // of steps of one job: they run at the same time, also on common cores
};

class Channels {
 public:
  // 1 ... 65535 channels, numbered from 0. A smaller count later leaves assigned channels alone.
  explicit Channels(std::uint32_t count) : count_(count) {}

  void set_count(std::uint32_t count) { count_ = count; }

  // The least used channel that it may have; the same one again for the same attempt. Errors: Busy:
  // each channel is taken by a job that may run at the same time on a common node.
  base::Result<std::uint16_t> assign(AttemptId attempt, NetworkPlace place);
  // It has this one already, from before a restart.
  void claim(AttemptId attempt, NetworkPlace place, std::uint16_t channel);
  // Nothing happens if the attempt has no channel.
  void release(AttemptId attempt);

  // The attempts with the same channel on a common node, ascending.
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
