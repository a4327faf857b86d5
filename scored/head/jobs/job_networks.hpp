#pragma once
// JobNetworks sends the decisions of NetworkCollector about the networks of running jobs to the
// nodes. Callers have checked that the attempt runs on the node.

#include "proto/node.pb.h"
#include "scored/head/cluster/cluster_runner.hpp"
#include "scored/head/cluster/node_links.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/jobs/network_collector.hpp"

#include <optional>

namespace score::head {

class JobNetworks {
 public:
  // All references must outlive this object.
  JobNetworks(ClusterRunner& runner, NodeLinks& links, const HeadConfig& config)
      : runner_(runner), links_(links), config_(config), collector_(config.network.channels) {}

  void request(NodeId node, AttemptId attempt);
  void prepared(NodeId node, wire::NetworkPrepared&& message);
  void refused(NodeId node, const wire::NetworkRefused& message);

  // Forgets an attempt that has ended; an unknown attempt is ignored.
  void close(AttemptId attempt);

  void set_channels(std::uint32_t count) { collector_.set_channels(count); }

 private:
  struct Sender {
    NetworkCollector::Job job;
    std::size_t index = 0;  // index of the node in the job
  };

  [[nodiscard]] std::optional<Sender> sender(NodeId node, AttemptId attempt) const;
  void note_sharing(AttemptId attempt, bool shares);
  void note_opened(AttemptId attempt);
  void send(AttemptId attempt, const Sender& sender, const NetworkCollector::Answer& answer);

  ClusterRunner& runner_;
  NodeLinks& links_;
  const HeadConfig& config_;
  NetworkCollector collector_;
};

}  // namespace score::head
