#pragma once
// NodeManager passes the reports of nodes to gang::Cluster, manages their connections, and decides
// which head of the cluster is the newest.

#include "base/os/log.hpp"
#include "monitor/model/event_log.hpp"
#include "proto/node.pb.h"
#include "proto/transport/key_ring.hpp"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/cluster/observer.hpp"
#include "scored/head/jobs/attempt_secrets.hpp"
#include "scored/head/nodes/control_manager.hpp"
#include "scored/head/streams/job_streams.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace score::head {

class NodeManager {
 public:
  struct Parts {
    JobStreams& streams;
    ControlManager& control;
    AttemptSecrets& secrets;
  };

  // `head` and the parts must outlive the object.
  NodeManager(HeadContext& head, Parts parts, Epoch incarnation);

  // Sets the keys with which heads of this cluster prove their incarnation, and from which the
  // secrets of attempts follow; without keys no proof is accepted.
  void set_keys(const proto::KeyRing& cluster_keys);

  // The handler is called once, when a node has proven that a later head than this one welcomed it.
  void on_outlived(std::function<void()> then) { on_outlived_ = std::move(then); }

  // Call this if the head was restored from an old copy of its database: it then takes over from a
  // later head instead of ending. `behind` stores a greater incarnation and then calls
  // set_incarnation(); meanwhile nodes are not welcomed.
  void recover_with(std::function<void(Epoch newest)> behind) {
    on_behind_ = std::move(behind);
    accepts_loss_ = true;
  }

  // Sets the function that returns the last job number that this head has given, or skipped because
  // a node knew a later one.
  void set_last_number(std::function<JobId()> last) { last_number_ = std::move(last); }

  void set_incarnation(Epoch incarnation);

  // The handler is called at each hello with the greatest job number that the node says it has been
  // given; `is_proven` if the node has shown the proof that came with the job.
  using JobSeen = std::function<void(NodeId, JobId, bool is_proven)>;

  void on_job_seen(JobSeen then) { on_job_seen_ = std::move(then); }

  // Sets the only observer; nullptr removes it. It must stay alive while it is registered.
  void set_observer(HeadObserver* observer) { observer_ = observer; }

  [[nodiscard]] Epoch incarnation() const { return incarnation_; }

  [[nodiscard]] std::string proof() const;
  // Returns the proof that goes to a node with a job; empty without keys.
  [[nodiscard]] std::string job_proof(JobId job) const;
  // Returns true if the node runs a job whose number this head has not given, so the database is an
  // older copy. Such a node is not welcomed, because the head would end the job, unless the head
  // was started to recover.
  [[nodiscard]] bool has_lost_job(NodeId node, const NodeHello& hello) const;
  // Handles a node's report of the newest head that it knows. Returns true if that head is later
  // than this one and the proof is right.
  [[nodiscard]] bool is_outlived(NodeId node, Epoch newest, std::string_view proof);

  // Returns true if a different daemon with this node's key is connected and heard; the first
  // daemon keeps the node.
  [[nodiscard]] bool is_taken(NodeId node, std::uint64_t instance, const std::string& peer);
  void saw_job(NodeId node, JobId last, std::string_view proof);

  void connected(NodeId node, const NodeHello& hello, NodeVitals vitals,
                 std::shared_ptr<proto::Connection> connection);
  // Does nothing if the node has a new connection by now.
  void lost(NodeId node, const proto::Connection& connection);
  void reported(NodeId node, const NodeToHead& message);
  void heartbeat(NodeId node, const wire::Heartbeat& message);
  // Handles what nodes report over the PM network about each other.
  void relayed_heartbeats(const gang::RelayedHeartbeats& relayed_heartbeats);
  void sampled(NodeId node, const wire::NodeSample& message);

  // Returns the PM network of the daemons.
  [[nodiscard]] ControlManager& control() { return control_; }

  // Must be called when the cluster's view of the node has changed.
  void changed(NodeId node);

 private:
  [[nodiscard]] TimePoint now() const { return head_.runner.now(); }

  HeadContext& head_;
  JobStreams& streams_;
  ControlManager& control_;
  AttemptSecrets& secrets_;
  Epoch incarnation_;
  std::optional<proto::KeyRing> keys_;
  std::function<void()> on_outlived_;
  std::function<void(Epoch)> on_behind_;
  bool accepts_loss_ = false;
  std::function<JobId()> last_number_;
  std::vector<std::pair<JobId, JobId>> skipped_;  // numbers above the first, up to the second
  JobSeen on_job_seen_;
  std::map<NodeId, LogLimiter> second_daemons_;
  HeadObserver* observer_ = nullptr;
};

}  // namespace score::head
