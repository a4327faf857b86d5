#pragma once
// One node daemon's connection, after its key was proven.

#include "base/async/asio.hpp"
#include "base/os/log.hpp"
#include "proto/transport/connection.hpp"
#include "scored/head/head.hpp"

#include <memory>
#include <string>

namespace score::head {

class NodeSession {
 public:
  // head and clock must outlive run(). node: whom the key belongs to.
  NodeSession(Head& head, Clock& clock, NodeId node, std::shared_ptr<proto::Connection> connection);

  // Hello (read already), welcome, frames; until the link breaks or the node breaks the protocol.
  asio::awaitable<void> run(Result<proto::InFrame> hello);

  // The first frame, or any later one; false: the connection is of no more use. Public for tests.
  bool greet(const proto::InFrame& frame);
  bool dispatch(const proto::InFrame& frame);

 private:
  void answer_heartbeat(const proto::InFrame& frame, TimePoint received);
  // What only the nodes of an attempt may send, about a job that runs.
  template <class Message, class Handler>
  bool handle_stream(const proto::InFrame& frame, Handler handler);
  bool handle_sample(const proto::InFrame& frame);
  bool handle_report(const proto::InFrame& frame);
  // Logged, seldom; false.
  bool refuse(const Error& error);

  Head& head_;
  Clock& clock_;
  NodeId node_;
  std::shared_ptr<proto::Connection> connection_;
  LogLimiter limiter_;
};

}  // namespace score::head
