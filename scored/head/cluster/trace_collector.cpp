#include "scored/head/cluster/trace_collector.hpp"

#include "base/limits.hpp"

#include <utility>

namespace score::head {
namespace {

constexpr std::size_t kMaxBytes = 12 * limits::kMiB;  // per trace

}  // namespace

Status TraceCollector::gather(const std::string& asker, Duration since, Done done) {
  const auto question = [since](std::uint64_t tag) {
    wire::NodeTraceRequest request;
    request.set_tag(tag);
    request.set_since_ns(since.count());
    return request;
  };
  return poll_.ask(asker, links_.connected(), question,
                   {{}, [done = std::move(done)](Parts parts) { done(std::move(parts.trace)); }});
}

void TraceCollector::reply(NodeId node, wire::NodeTraceReply&& message) {
  poll_.answer(message.tag(), node, [&](Parts& parts) {
    wire::NodeTrace& trace = *message.mutable_trace();
    trace.set_node(links_.name(node));
    const std::size_t bytes = trace.ByteSizeLong();
    if (parts.bytes + bytes > kMaxBytes) {
      trace.set_lost(trace.lost() + static_cast<std::uint64_t>(trace.switches_size()));
      trace.clear_switches();
    } else {
      parts.bytes += bytes;
    }
    *parts.trace.add_nodes() = std::move(trace);
  });
}

}  // namespace score::head
