#pragma once
// NodeSession serves one connection of a node daemon, after the node's key was proven.

#include "base/async/asio.hpp"
#include "base/os/log.hpp"
#include "proto/transport/connection.hpp"
#include "scored/head/checkpoint/checkpoint_manager.hpp"
#include "scored/head/cluster/facts_collector.hpp"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/cluster/trace_collector.hpp"
#include "scored/head/nodes/hook_reports.hpp"
#include "scored/head/nodes/node_manager.hpp"
#include "scored/head/stacks/stacks_collector.hpp"
#include "scored/head/streams/job_networks.hpp"
#include "scored/head/streams/job_streams.hpp"
#include "scored/head/streams/job_volumes.hpp"

#include <memory>
#include <string>

namespace score::head {

class NodeSession {
 public:
  struct Parts {  // all must outlive the session
    HeadContext& head;
    NodeManager& manager;
    JobStreams& streams;
    JobNetworks& networks;
    JobVolumes& volumes;
    TraceCollector& traces;
    FactsCollector& facts;
    HookReports& hooks;
    StacksCollector& stacks;
    CheckpointManager& checkpoints;
  };

  // `clock` must outlive run(); `node` is the node that the key belongs to.
  NodeSession(const Parts& parts, Clock& clock, NodeId node,
              std::shared_ptr<proto::Connection> connection);

  // Serves the hello, which has been read, then frames until the link breaks or the node breaks the
  // protocol.
  asio::awaitable<void> run(Result<proto::InFrame> hello);

  // Each handles one frame, greet() the first one; false means that the connection must be closed.
  // Public for tests.
  bool greet(const proto::InFrame& frame);
  bool dispatch(const proto::InFrame& frame);

 private:
  void answer_heartbeat(const proto::InFrame& frame, TimePoint received);
  // Handles a message that only the nodes of a running attempt may send.
  template <class Message, class Handler>
  bool handle_stream(const proto::InFrame& frame, Handler handler);
  // Passes a node's answer to the collector that has asked.
  template <class Message, class Collector>
  bool handle_reply(const proto::InFrame& frame, Collector& collector);
  template <class Items>
  void drop_foreign(Items& items) const;
  bool handle_sample(const proto::InFrame& frame);
  bool handle_usage(const proto::InFrame& frame);
  bool handle_report(const proto::InFrame& frame);
  // Logs the error at a limited rate; always returns false.
  bool refuse(const Error& error);

  Parts parts_;
  Clock& clock_;
  NodeId node_;
  std::shared_ptr<proto::Connection> connection_;
  LogLimiter limiter_;
};

}  // namespace score::head
