#include "scored/head/cluster/facts_collector.hpp"

#include "scored/shared/facts/host_facts.hpp"

#include <utility>

namespace score::head {

Status FactsCollector::gather(const std::string& asker, Done done) {
  std::vector<NodeId> nodes;
  for (const NodeId node : links_.connected()) {
    if (!links_.link(node).vitals.release.empty()) nodes.push_back(node);
  }
  Parts first;
  first.asked = wall_now();
  wire::HostFacts& head = *first.facts.mutable_head();
  head = facts::of_this_host();
  facts::add_file(head, wire::FileFact::CONFIGURATION, config_.file);
  facts::add_file(head, wire::FileFact::KEY, config_.key_file);
  const auto& socket = config_.socket;
  facts::add_file(head, wire::FileFact::COMMAND_SOCKET,
                  socket.empty() ? config_.run_dir + "/head.sock" : socket);
  const auto question = [](std::uint64_t tag) {
    wire::FactsRequest request;
    request.set_tag(tag);
    return request;
  };
  return poll_.ask(
      asker, nodes, question,
      {std::move(first), [done = std::move(done)](Parts parts) { done(std::move(parts.facts)); }});
}

// Half of the interval between request and reply is the error, because the node may have read its
// clock at any time in it.
void FactsCollector::reply(NodeId node, wire::FactsReply&& message) {
  poll_.answer(message.tag(), node, [&](Parts& parts) {
    const Duration error = (wall_now() - parts.asked) / 2;
    const Duration middle = parts.asked.time_since_epoch() + error;
    wire::HostFacts& facts = *message.mutable_facts();
    facts.set_name(links_.name(node));
    facts.set_ahead_ns((Duration(facts.wall_ns()) - middle).count());
    facts.set_ahead_error_ns(error.count());
    *parts.facts.add_nodes() = std::move(facts);
  });
}

}  // namespace score::head
