#pragma once
// AttemptSecrets decides which commands are believed from a node that is not a login node: those of
// the tasks that run there. Each node gets a secret per attempt of which it has tasks, and proves
// with it that a command comes from such a task. So the key of a node does not suffice to act as a
// user whose tasks run elsewhere. The secrets follow from the cluster key, so nothing is stored.
// All calls come from one thread.

#include "proto/node.pb.h"
#include "proto/transport/key_ring.hpp"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/jobs/job_table.hpp"

#include <algorithm>
#include <optional>

namespace score::head {

class AttemptSecrets {
 public:
  // `head` must outlive this object.
  explicit AttemptSecrets(HeadContext& head) : head_(head) {}

  // Without keys there are no secrets, and no command is believed.
  void set_keys(const proto::KeyRing& cluster_keys) { keys_ = cluster_keys; }

  // Sends the node the secret of an attempt of which it has tasks. Does nothing for other attempts,
  // and for a daemon whose release does not know secrets.
  void send(NodeId node, AttemptId attempt) const {
    const bool is_wanted = keys_ && head_.links.link(node).vitals.takes_attempt_secrets;
    if (!is_wanted || !has_tasks(node, attempt)) return;
    wire::AttemptSecret message;
    message.set_attempt(attempt.value());
    message.set_secret(keys_->attempt_secret(attempt, head_.links.name(node)));
    head_.links.send(node, message);
  }

  // Returns true if `hello` proves that a task of this user's job has started the command on the
  // node. A proof is of no use after the attempt has ended.
  [[nodiscard]] bool proves(NodeId node, const wire::LoginHello& hello) const {
    const AttemptId attempt(hello.attempt());
    return keys_ && has_tasks(node, attempt) &&
           head_.jobs.find(job_of(attempt))->info.user == UserId(hello.user()) &&
           keys_->is_attempt_secret(attempt, head_.links.name(node), hello.secret());
  }

  // Returns true if the attempt is current and has tasks on the node.
  [[nodiscard]] bool has_tasks(NodeId node, AttemptId attempt) const {
    const Job* job = head_.jobs.find(job_of(attempt));
    const bool is_current =
        job != nullptr && !job->ended && job->progress.placement.attempt == attempt;
    if (!is_current || job->nodes.empty()) return false;
    // An allocation has only its script, on the first node.
    if (job->info.allocation) return job->nodes.front() == node;
    return std::ranges::find(job->nodes, node) != job->nodes.end();
  }

 private:
  HeadContext& head_;
  std::optional<proto::KeyRing> keys_;
};

}  // namespace score::head
