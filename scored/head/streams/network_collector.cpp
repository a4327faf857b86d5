#include "scored/head/streams/network_collector.hpp"

#include "base/errc.hpp"

#include <utility>

namespace score::head {

namespace {

constexpr std::size_t kAddressBytes = 6;

}  // namespace

std::string NetworkCollector::all_addresses(const Collection& collector) {
  std::string all;
  for (const std::string& of_node : collector.addresses) all += of_node;
  return all;
}

void NetworkCollector::take_over(Collection& collector, AttemptId attempt, const Job& job,
                                 const Prepared& message) {
  collector.addresses.assign(job.place.nodes.size(), {});
  collector.missing = collector.addresses.size();
  collector.key = message.key;
  collector.channel = static_cast<std::uint16_t>(message.channel);
  channels_.release(attempt);
  channels_.claim(attempt, job.place, collector.channel);
}

NetworkCollector::Answer NetworkCollector::request(AttemptId attempt, const Job& job,
                                                   std::size_t node_index, std::uint64_t key) {
  const auto found = collectors_.find(attempt);
  if (found != collectors_.end()) {
    const Collection& collector = found->second;
    if (collector.failure) return Failed{*collector.failure, node_index};
    if (collector.missing == 0) return Ready{all_addresses(collector), node_index};
    return PrepareAll{collector.key, collector.channel};
  }
  Collection& collector = collectors_[attempt];
  collector.addresses.resize(job.place.nodes.size());
  collector.missing = collector.addresses.size();
  const auto channel = channels_.assign(attempt, job.place);
  if (!channel) {
    collector.failure = channel.error().context();
    return Failed{*collector.failure};
  }
  collector.key = key;
  collector.channel = *channel;
  return PrepareAll{collector.key, collector.channel};
}

Result<NetworkCollector::Answer> NetworkCollector::prepared(AttemptId attempt, const Job& job,
                                                            Prepared message) {
  const std::size_t index = message.node_index;
  if (index >= job.tasks_on_node.size() || message.key == 0 || message.channel > 0xffff ||
      message.addresses.size() != kAddressBytes * job.links * job.tasks_on_node[index]) {
    return fail(Errc::Malformed, "invalid addresses of attempt {} from its node {}", attempt,
                index);
  }
  bool is_claim = !collectors_.contains(attempt);
  Collection& collector = collectors_[attempt];
  if (collector.failure) return Answer(Failed{*collector.failure, index});
  if (!is_claim && message.key != collector.key) {
    if (collector.missing == 0) return refused(attempt, "nodes have different keys");
    if (!message.is_open) return Answer(PrepareAll{collector.key, collector.channel});
    is_claim = true;
  }
  if (is_claim) take_over(collector, attempt, job, message);
  std::string& mine = collector.addresses[index];
  const bool is_again = !mine.empty();
  if (is_again && mine != message.addresses) return refused(attempt, "a node has other sockets");
  mine = std::move(message.addresses);
  if (!is_again) --collector.missing;
  if (collector.missing > 0) {
    Answer answer;
    if (is_claim) answer.emplace<PrepareAll>(collector.key, collector.channel);
    return answer;
  }
  Ready ready{all_addresses(collector)};
  if (is_again) ready.only_for = index;
  return Answer(std::move(ready));
}

NetworkCollector::Answer NetworkCollector::refused(AttemptId attempt, std::string reason) {
  const auto found = collectors_.find(attempt);
  if (found == collectors_.end() || found->second.failure) return {};
  channels_.release(attempt);
  found->second.failure = std::move(reason);
  return Failed{*found->second.failure};
}

void NetworkCollector::close(AttemptId attempt) {
  channels_.release(attempt);
  collectors_.erase(attempt);
}

}  // namespace score::head
