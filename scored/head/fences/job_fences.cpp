#include "scored/head/fences/job_fences.hpp"

#include <utility>

namespace score::head {
namespace {

wire::FenceDone message_of(FenceCollector::Key key, std::uint64_t sequence, std::uint64_t offset) {
  wire::FenceDone message;
  message.set_attempt(key.attempt.value());
  message.set_pmix(key.pmix);
  message.set_sequence(sequence);
  message.set_offset(offset);
  return message;
}

// Errors: Malformed.
Result<FenceEntry> entry_of(wire::FenceEnter&& message) {
  FenceEntry entry;
  entry.sequence = message.sequence();
  entry.takes_pieces = message.step() != wire::FenceEnter::WHOLE;
  entry.key_values = std::move(*message.mutable_key_values());
  entry.bytes = entry.takes_pieces ? message.bytes() : entry.key_values.size();
  entry.taken = entry.takes_pieces ? message.offset() : 0;
  if (!entry.key_values.empty() && !entry.is_held()) {
    return fail(Errc::Malformed, "a node sent {} bytes of its PMI key-values instead of {}",
                entry.key_values.size(), entry.bytes);
  }
  return entry;
}

}  // namespace

void JobFences::open(AttemptId attempt, UserId user, const std::vector<NodeId>& nodes) {
  if (nodes_.try_emplace(attempt, nodes).second) collector_.open(attempt, user, nodes.size());
}

void JobFences::close(AttemptId attempt) {
  nodes_.erase(attempt);
  send(collector_.close(attempt));
}

Status JobFences::entered(std::size_t index, wire::FenceEnter&& message) {
  const FenceCollector::Key key{AttemptId(message.attempt()), message.pmix()};
  Result<FenceCollector::Actions> actions = FenceCollector::Actions();
  switch (message.step()) {
    case wire::FenceEnter::PIECE:
      actions = collector_.piece(key, index, message.sequence(), message.offset(),
                                 std::move(*message.mutable_key_values()));
      break;
    case wire::FenceEnter::TAKEN:
      actions = collector_.taken(key, index, message.sequence(), message.offset(), message.bytes());
      break;
    case wire::FenceEnter::WHOLE:
    case wire::FenceEnter::ANNOUNCE: {
      auto entry = entry_of(std::move(message));
      if (!entry) return entry.error();
      actions = collector_.enter(key, index, *std::move(entry));
      break;
    }
    default:
      return fail(Errc::Malformed, "unknown step of a PMI barrier");
  }
  if (!actions) return actions.error();
  send(*actions);
  return {};
}

void JobFences::node_ended(AttemptId attempt, std::size_t index) {
  send(collector_.leave(attempt, index));
}

void JobFences::link_lost(AttemptId attempt, std::size_t index) {
  collector_.link_lost(attempt, index);
}

void JobFences::send(const FenceCollector::Actions& actions) {
  for (const auto& due : actions) {
    const auto nodes = nodes_.find(due.key.attempt);
    if (nodes == nodes_.end()) continue;
    std::visit([&](const auto& action) { send_one(nodes->second, due.key, action); }, due.action);
  }
}

void JobFences::send_one(const std::vector<NodeId>& nodes, FenceCollector::Key key,
                         const FetchPiece& fetch) {
  wire::FenceDone message = message_of(key, fetch.sequence, fetch.offset);
  message.set_fetch(fetch.bytes);
  links_.send(nodes[fetch.node], message);
}

void JobFences::send_one(const std::vector<NodeId>& nodes, FenceCollector::Key key,
                         const SendPiece& piece) {
  wire::FenceDone message = message_of(key, piece.sequence, piece.offset);
  message.set_bytes(piece.total);
  message.set_key_values(*piece.data);
  const auto frame = proto::encode_frame(message);
  for (const std::size_t index : piece.nodes) links_.send_shared(nodes[index], frame);
}

}  // namespace score::head
