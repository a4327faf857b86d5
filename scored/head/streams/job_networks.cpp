#include "scored/head/streams/job_networks.hpp"

#include "base/os/log.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <sys/random.h>
#include <utility>

namespace score::head {
namespace {

// Returns a key other than 0, because 0 means none.
std::uint64_t random_key() {
  std::uint64_t key = 0;
  while (key == 0 && getrandom(&key, sizeof key, 0) == sizeof key) continue;
  return key;
}

}  // namespace

std::optional<JobNetworks::Sender> JobNetworks::sender(NodeId node, AttemptId attempt) const {
  const auto view = head_.runner.view(job_of(attempt));
  if (!view || view->attempt != attempt || is_final(view->state)) return std::nullopt;
  const auto mine = std::find(view->nodes.begin(), view->nodes.end(), node);
  if (mine == view->nodes.end()) return std::nullopt;
  Sender found;
  found.index = static_cast<std::size_t>(mine - view->nodes.begin());
  found.job.place = {view->nodes, view->cores, view->request.inside};
  found.job.tasks_on_node = view->tasks_on_node;
  if (view->request.allocation) {  // only the script
    found.job.place = {{view->nodes.front()}, {view->cores.front()}, view->id};
    found.job.tasks_on_node = {1};
    if (found.index > 0) return std::nullopt;
  }
  found.job.links = std::max<std::size_t>(1, head_.config.network.links.size());
  return found;
}

void JobNetworks::request(NodeId node, AttemptId attempt) {
  const auto from = sender(node, attempt);
  if (!from) return;
  const std::size_t open_before = collector_.open_attempts();
  const auto answer = collector_.request(attempt, from->job, from->index, random_key());
  if (collector_.open_attempts() > open_before) note_opened(attempt);
  send(attempt, *from, answer);
}

void JobNetworks::prepared(NodeId node, wire::NetworkPrepared&& message) {
  const AttemptId attempt(message.attempt());
  const auto from = sender(node, attempt);
  if (!from) return;
  const std::size_t open_before = collector_.open_attempts();
  auto answer = collector_.prepared(attempt, from->job,
                                    {from->index, message.key(), message.channel(),
                                     std::move(*message.mutable_addresses()), message.is_open()});
  if (collector_.open_attempts() > open_before) note_opened(attempt);
  if (!answer) {
    log_warning("Refused the network addresses of a node", kv("node", head_.links.name(node)),
                kv("err", answer.error()));
    const std::string reason =
        head_.links.name(node) +
        ": it reported wrong addresses; its [network] differs from the head's";
    send(attempt, *from, collector_.refused(attempt, reason));
    return;
  }
  send(attempt, *from, *answer);
}

void JobNetworks::refused(NodeId node, const wire::NetworkRefused& message) {
  const AttemptId attempt(message.attempt());
  const auto from = sender(node, attempt);
  if (!from) return;
  const std::string reason =
      fmt::format("{}: {}", head_.links.name(node),
                  escape_terminal(message.reason(), limits::kMaxErrorTextBytes));
  send(attempt, *from, collector_.refused(attempt, reason));
}

// Jobs that share a channel may not fill, so the scheduler must know them.
void JobNetworks::note_sharing(AttemptId attempt, bool shares) {
  head_.runner.perform(
      head_.runner.cluster().set_shares_channel(job_of(attempt), shares, head_.runner.now()));
}

void JobNetworks::note_opened(AttemptId attempt) {
  const auto sharers = collector_.sharers(attempt);
  if (sharers.empty()) return;
  note_sharing(attempt, true);
  for (const AttemptId other : sharers) note_sharing(other, true);
}

void JobNetworks::close(AttemptId attempt) {
  const auto sharers = collector_.sharers(attempt);
  collector_.close(attempt);
  for (const AttemptId other : sharers) note_sharing(other, !collector_.sharers(other).empty());
}

void JobNetworks::send(AttemptId attempt, const Sender& to,
                       const NetworkCollector::Answer& answer) {
  const auto send_all = [&](const auto& message, std::optional<std::size_t> only_for) {
    const auto frame = proto::encode_frame(message);
    for (std::size_t i = 0; i < to.job.place.nodes.size(); ++i) {
      if (!only_for || *only_for == i) head_.links.send_shared(to.job.place.nodes[i], frame);
    }
  };
  if (const auto* prepare = std::get_if<NetworkCollector::PrepareAll>(&answer)) {
    wire::NetworkPrepare message;
    message.set_attempt(attempt.value());
    message.set_key(prepare->key);
    message.set_channel(prepare->channel);
    send_all(message, std::nullopt);
  } else if (const auto* ready = std::get_if<NetworkCollector::Ready>(&answer)) {
    wire::NetworkReady message;
    message.set_attempt(attempt.value());
    message.set_addresses(ready->addresses);
    message.set_payload(head_.config.network.payload);
    send_all(message, ready->only_for);
  } else if (const auto* failed = std::get_if<NetworkCollector::Failed>(&answer)) {
    log_notice("Cannot open the network of job", kv("job", job_of(attempt)),
               kv("reason", failed->reason));
    wire::NetworkFailed message;
    message.set_attempt(attempt.value());
    message.set_reason(failed->reason);
    send_all(message, failed->only_for);
  }
}

}  // namespace score::head
