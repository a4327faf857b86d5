#pragma once
// JobRelays passes messages between the nodes of a job on. What arrives and what waits in the
// queues of connections is in a budget per user: a node asks for room before it sends a large
// message, and asks again while there is none. Messages beyond the budget are dropped: their
// senders repeat requests that are not answered. So a job does not fill the head's memory, and a
// connection to a node is not closed because of it. All calls come from one thread.

#include "base/limits.hpp"
#include "base/os/log.hpp"
#include "scored/head/cluster/node_links.hpp"
#include "scored/head/cluster/user_budgets.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace score::head {

class JobRelays {
 public:
  static constexpr std::size_t kMaxQueued = 16 * limits::kMiB;  // of a user, for all nodes
  static constexpr std::size_t kMaxOfLink = 32 * limits::kMiB;  // then relays do not add to it

  // `links` must outlive this object.
  explicit JobRelays(NodeLinks& links) : links_(links) {}

  struct Sender {
    AttemptId attempt;
    UserId user;
    NodeId node;
  };

  // Reserves room for one message of this size from the sender, and tells it so. Nothing happens if
  // there is no room, or if no message is that large.
  void ask(const Sender& from, std::size_t bytes);
  // Queues the frame for the node, or drops it.
  void send(const Sender& from, NodeId to, std::shared_ptr<const std::string> frame);

  // Forget the reservations of an attempt that has ended, or of a node whose connection broke.
  void close(AttemptId attempt);
  void link_lost(NodeId node);

  // Returns the bytes of the user's messages that may arrive or are queued.
  [[nodiscard]] std::size_t used(UserId user);

 private:
  void report_drop(const Sender& from, NodeId to);

  NodeLinks& links_;
  UserBudgets budgets_{kMaxQueued};  // reservations and queued frames have shares
  std::map<std::pair<AttemptId, NodeId>, std::unique_ptr<ByteShare>> reserved_;
  LogLimiter limiter_;
};

}  // namespace score::head
