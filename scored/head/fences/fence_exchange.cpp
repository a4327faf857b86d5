#include "scored/head/fences/fence_exchange.hpp"

#include "proto/frames/key_values.hpp"

#include <algorithm>
#include <utility>

namespace score::head {

std::uint64_t FenceExchange::window_of(std::size_t nodes) {
  return std::clamp(kMaxInFlight / std::max<std::size_t>(nodes, 1), kMinWindow, kMaxWindow);
}

FenceExchange::FenceExchange(std::vector<FenceEntry> entries, std::vector<bool> has_left)
    : nodes_(entries.size()) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    node.entry = std::move(entries[i]);
    node.has_left = has_left[i];
    total_ += node.entry.bytes;
    sequence_ = std::max(sequence_, node.entry.sequence);
    is_whole_ = is_whole_ || !node.entry.takes_pieces;
  }
  for (Node& node : nodes_) node.taken = is_whole_ ? 0 : node.entry.taken;
}

FenceActions FenceExchange::start() {
  FenceActions actions;
  restart(actions);
  return actions;
}

void FenceExchange::restart(FenceActions& actions) {
  std::uint64_t begin = 0;
  for (Node& node : nodes_) {
    node.begin = begin;
    begin += node.entry.bytes;
    node.taken = std::min(node.taken, total_);
  }
  whole_.clear();
  pieces_.clear();
  source_ = 0;
  sent_ = total_;
  find_base();
  if (is_whole_) base_ = 0;
  sent_ = next_ = base_;
  pump(actions);
}

// Nodes that have left count as if they had taken everything that was sent.
void FenceExchange::find_base() {
  base_ = sent_;
  at_base_ = 0;
  for (const Node& node : nodes_) {
    if (node.has_left || node.taken > base_) continue;
    if (node.taken < base_) at_base_ = 0;
    base_ = node.taken;
    ++at_base_;
  }
}

// Passes on, or fetches, as much of the result as the window permits.
void FenceExchange::pump(FenceActions& actions) {
  const std::uint64_t window = window_of(nodes_.size());
  while (next_ < total_ && next_ - base_ < window) {
    while (next_ >= nodes_[source_].begin + nodes_[source_].entry.bytes) ++source_;
    const Node& from = nodes_[source_];
    const std::uint64_t at = next_ - from.begin;
    const std::uint64_t most =
        std::min<std::uint64_t>(proto::kMaxFencePieceBytes, window - (next_ - base_));
    Piece piece;
    piece.source = source_;
    piece.bytes = static_cast<std::uint32_t>(std::min(most, from.entry.bytes - at));
    if (from.entry.is_held()) {
      piece.data = std::make_shared<const std::string>(from.entry.key_values, at, piece.bytes);
    } else {
      actions.emplace_back(FetchPiece{source_, sequence_, at, piece.bytes});
    }
    next_ += piece.bytes;
    pieces_.emplace(next_ - piece.bytes, std::move(piece));
    flush(actions);
  }
}

// Sends the pieces that have arrived, in order.
void FenceExchange::flush(FenceActions& actions) {
  for (auto next = pieces_.find(sent_); next != pieces_.end() && next->second.data;
       next = pieces_.find(sent_)) {
    sent_ += next->second.bytes;
    if (!is_whole_) {
      actions.emplace_back(sending(next->first, next->second));
      continue;
    }
    whole_ += *next->second.data;
    pieces_.erase(next);
    base_ = sent_;
  }
}

SendPiece FenceExchange::sending(std::uint64_t offset, const Piece& piece) const {
  SendPiece send{{}, sequence_, offset, total_, piece.data};
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].has_left) send.nodes.push_back(i);
  }
  return send;
}

Result<FenceActions> FenceExchange::piece(std::size_t index, std::uint64_t offset,
                                          std::string data) {
  FenceActions actions;
  const Node& node = nodes_[index];
  if (offset >= node.entry.bytes) return actions;
  const auto found = pieces_.find(node.begin + offset);
  if (found == pieces_.end() || found->second.data) return actions;
  if (data.size() != found->second.bytes) {
    return fail(Errc::Malformed, "a node sent {} bytes of its PMI key-values instead of {}",
                data.size(), found->second.bytes);
  }
  found->second.data = std::make_shared<const std::string>(std::move(data));
  flush(actions);
  pump(actions);
  return actions;
}

Result<FenceActions> FenceExchange::taken(std::size_t index, std::uint64_t offset,
                                          std::uint64_t total) {
  FenceActions actions;
  Node& node = nodes_[index];
  if (is_whole_ || node.has_left || total != total_ || offset <= node.taken) return actions;
  if (offset > sent_) {
    return fail(Errc::WrongState, "a node took more PMI key-values than were sent");
  }
  const bool was_at_base = node.taken == base_;
  node.taken = offset;
  if (was_at_base && --at_base_ == 0) settle(actions);
  return actions;
}

// Drops the pieces that all nodes have taken.
void FenceExchange::settle(FenceActions& actions) {
  find_base();
  while (!pieces_.empty() && pieces_.begin()->first + pieces_.begin()->second.bytes <= base_)
    pieces_.erase(pieces_.begin());
  pump(actions);
}

FenceActions FenceExchange::resume(std::size_t index) const {
  FenceActions actions;
  const Node& node = nodes_[index];
  for (const auto& [offset, piece] : pieces_) {
    if (!piece.data && piece.source == index)
      actions.emplace_back(FetchPiece{index, sequence_, offset - node.begin, piece.bytes});
    if (offset >= sent_ || offset + piece.bytes <= node.taken) continue;
    actions.emplace_back(SendPiece{{index}, sequence_, offset, total_, piece.data});
  }
  return actions;
}

FenceActions FenceExchange::leave(std::size_t index) {
  FenceActions actions;
  Node& node = nodes_[index];
  node.has_left = true;
  const bool is_lost = !node.entry.is_held() && sent_ < node.begin + node.entry.bytes;
  if (is_lost) {
    total_ -= std::exchange(node.entry.bytes, 0);
    for (Node& each : nodes_) each.taken = 0;
    restart(actions);
  } else if (!is_whole_ && node.taken == base_ && --at_base_ == 0) {
    settle(actions);
  }
  return actions;
}

}  // namespace score::head
