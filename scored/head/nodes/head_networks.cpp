// The networks of jobs: what NetworkBoard decides, sent to the nodes.
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "scored/head/head.hpp"

#include <algorithm>
#include <sys/random.h>
#include <utility>

namespace score::head {
namespace {

// Not 0, which means none.
std::uint64_t random_key() {
  std::uint64_t key = 0;
  while (key == 0 && getrandom(&key, sizeof key, 0) == sizeof key) continue;
  return key;
}

}  // namespace

std::optional<Head::NetworkPeer> Head::network_peer(NodeId node, AttemptId attempt) {
  const auto looked = view(job_of(attempt));
  if (!looked || looked->attempt != attempt || is_final(looked->state)) return std::nullopt;
  const auto mine = std::find(looked->nodes.begin(), looked->nodes.end(), node);
  if (mine == looked->nodes.end()) return std::nullopt;
  NetworkPeer peer;
  peer.index = static_cast<std::size_t>(mine - looked->nodes.begin());
  peer.job.place = {looked->nodes, looked->cores};
  peer.job.tasks_on_node = looked->tasks_on_node;
  return peer;
}

void Head::network_request(NodeId node, AttemptId attempt) {
  const auto peer = network_peer(node, attempt);
  if (!peer) return;
  tell_nodes(attempt, *peer, networks_.request(attempt, peer->job, peer->index, random_key()));
}

void Head::network_prepared(NodeId node, wire::NetworkPrepared&& message) {
  const AttemptId attempt(message.attempt());
  const auto peer = network_peer(node, attempt);
  if (!peer) return;
  auto answer = networks_.prepared(
      attempt, peer->job,
      {peer->index, message.key(), message.channel(), std::move(*message.mutable_addresses())});
  if (!answer) {
    log_warning("refuse a node's network", kv("node", links_.name(node)),
                kv("err", answer.error()));
    const std::string reason = links_.name(node) + ": its addresses make no sense";
    tell_nodes(attempt, *peer, networks_.refused(attempt, reason));
    return;
  }
  tell_nodes(attempt, *peer, *answer);
}

void Head::network_refused(NodeId node, const wire::NetworkRefused& message) {
  const AttemptId attempt(message.attempt());
  const auto peer = network_peer(node, attempt);
  if (!peer) return;
  const std::string reason = fmt::format(
      "{}: {}", links_.name(node), escape_terminal(message.reason(), limits::kMaxErrorTextBytes));
  tell_nodes(attempt, *peer, networks_.refused(attempt, reason));
}

void Head::tell_nodes(AttemptId attempt, const NetworkPeer& peer,
                      const NetworkBoard::Answer& answer) {
  const auto tell = [&](const auto& message, std::optional<std::size_t> only_for) {
    const auto frame = proto::encode_frame(message);
    for (std::size_t i = 0; i < peer.job.place.nodes.size(); ++i) {
      if (!only_for || *only_for == i) links_.send_shared(peer.job.place.nodes[i], frame);
    }
  };
  if (const auto* prepare = std::get_if<NetworkBoard::PrepareAll>(&answer)) {
    wire::NetworkPrepare message;
    message.set_attempt(attempt.value());
    message.set_key(prepare->key);
    message.set_channel(prepare->channel);
    tell(message, std::nullopt);
  } else if (const auto* ready = std::get_if<NetworkBoard::Ready>(&answer)) {
    wire::NetworkReady message;
    message.set_attempt(attempt.value());
    message.set_addresses(ready->addresses);
    message.set_payload(config_.network.payload);
    tell(message, ready->only_for);
  } else if (const auto* failed = std::get_if<NetworkBoard::Failed>(&answer)) {
    log_notice("a job gets no network", kv("job", job_of(attempt)), kv("why", failed->reason));
    wire::NetworkFailed message;
    message.set_attempt(attempt.value());
    message.set_reason(failed->reason);
    tell(message, failed->only_for);
  }
}

}  // namespace score::head
