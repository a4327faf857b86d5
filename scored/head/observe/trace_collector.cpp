#include "scored/head/observe/trace_collector.hpp"

#include "base/limits.hpp"

#include <utility>

namespace score::head {
namespace {

constexpr Duration kDeadline = 2s;
constexpr std::size_t kMaxBytes = 12 * limits::kMiB;  // of one trace
constexpr std::size_t kMaxCollections = 8;

}  // namespace

Status TraceCollector::gather(Duration since, Done done) {
  if (collections_.size() >= kMaxCollections) {
    return fail(Errc::Busy, "{} traces are being gathered already; try again", collections_.size());
  }
  const std::uint64_t tag = next_tag_++;
  Collection& collection = collections_[tag];
  collection.done = std::move(done);
  wire::NodeTraceRequest request;
  request.set_tag(tag);
  request.set_since_ns(since.count());
  const auto frame =
      proto::encode_frame(proto::FrameType::NodeTraceRequest, request.SerializeAsString());
  for (const NodeId node : links_.connected()) {
    collection.missing.insert(node);
    links_.send_shared(node, frame);
  }
  const TimePoint now = clock_.now();
  collection.until = collection.missing.empty() ? now : now + kDeadline;
  alarm_.at(collection.until);
  return {};
}

void TraceCollector::reply(NodeId node, wire::NodeTraceReply&& message) {
  const auto found = collections_.find(message.tag());
  if (found == collections_.end() || found->second.missing.erase(node) == 0) return;
  Collection& collection = found->second;
  wire::NodeTrace& trace = *message.mutable_trace();
  trace.set_node(links_.name(node));
  const std::size_t bytes = trace.ByteSizeLong();
  if (collection.bytes + bytes > kMaxBytes) {
    trace.set_lost(trace.lost() + static_cast<std::uint64_t>(trace.switches_size()));
    trace.clear_switches();
  } else {
    collection.bytes += bytes;
  }
  *collection.trace.add_nodes() = std::move(trace);
  if (!collection.missing.empty()) return;
  collection.until = clock_.now();
  tick(clock_.now());
}

void TraceCollector::tick(TimePoint now) {
  for (auto next = collections_.begin(); next != collections_.end();) {
    const auto current = next++;
    if (current->second.until > now) continue;
    Collection collection = std::move(current->second);
    collections_.erase(current);
    for (const NodeId node : collection.missing) {
      collection.trace.add_silent_nodes(links_.name(node));
    }
    collection.done(std::move(collection.trace));
  }
}

std::optional<TimePoint> TraceCollector::next_deadline() const {
  std::optional<TimePoint> next;
  for (const auto& [tag, collection] : collections_) {
    if (!next || collection.until < *next) next = collection.until;
  }
  return next;
}

}  // namespace score::head
