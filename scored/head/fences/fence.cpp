#include "scored/head/fences/fence.hpp"

#include "proto/frames/key_values.hpp"

#include <algorithm>
#include <utility>

namespace score::head {

Result<FenceActions> Fence::enter(std::size_t node, FenceEntry entry) {
  if (node >= left_.size()) return fail(Errc::NotFound, "cannot enter a PMI barrier: no such node");
  const std::uint64_t sequence = entry.sequence;
  if (exchange_ && sequence == exchanged_) return repeat(node, sequence);
  if (last_ && sequence <= last_->sequence) return repeat(node, sequence);
  if (gathering_.count > 0 && sequence != gathering_.sequence) {
    return fail(Errc::WrongState, "nodes wait in different PMI barriers ({} and {})",
                gathering_.sequence, sequence);
  }
  gathering_.entries.resize(left_.size());
  auto& mine = gathering_.entries[node];
  if (mine) return FenceActions();
  FenceActions actions;
  if (exchange_) {  // the node has the whole result; its acknowledgment may have been lost
    auto rest = exchange_->taken(node, exchange_->total(), exchange_->total());
    if (!rest) return rest.error();
    actions = *std::move(rest);
  }
  if (entry.bytes > proto::kMaxFenceBytes - gathering_.total) {
    return fail(Errc::TooLarge, "PMI key-values of all ranks exceed {} bytes",
                proto::kMaxFenceBytes);
  }
  gathering_.sequence = sequence;
  gathering_.total += entry.bytes;
  gathering_.older += entry.takes_pieces ? 0 : 1;
  held_ += entry.key_values.size();
  ++gathering_.count;
  if (left_[node]) --gathering_.absent;
  mine = std::move(entry);
  finish_if_done(actions);
  return actions;
}

// A correct node asks only once per connection for what it may have lost, and the connection that
// it would fill also serves other jobs.
Result<FenceActions> Fence::repeat(std::size_t node, std::uint64_t sequence) {
  const bool is_current = exchange_ && sequence == exchanged_;
  const bool is_last = last_ && sequence == last_->sequence;
  if (!is_current && !is_last) return fail(Errc::WrongState, "the PMI barrier has already ended");
  if (was_repeated_[node] || (!is_current && !last_->result)) {
    return fail(Errc::WrongState, "a node enters the same PMI barrier again");
  }
  was_repeated_[node] = true;
  if (is_current) return exchange_->resume(node);
  FenceActions actions;
  actions.emplace_back(SendPiece{{node}, sequence, 0, 0, last_->result});
  return actions;
}

void Fence::link_lost(std::size_t node) {
  if (node < was_repeated_.size()) was_repeated_[node] = false;
}

bool Fence::is_whole() const {
  return exchange_ ? exchange_->is_whole() : gathering_.older > 0;
}

std::uint64_t Fence::total() const {
  return exchange_ ? exchange_->total() : gathering_.total;
}

FenceActions Fence::start() {
  std::vector<FenceEntry> entries;
  for (auto& entry : gathering_.entries) {
    entries.push_back(entry ? *std::move(entry) : FenceEntry{.takes_pieces = true});
  }
  exchanged_ = gathering_.sequence;
  exchange_.emplace(std::move(entries), left_);
  gathering_ = Gathering();
  gathering_.absent = static_cast<std::size_t>(std::ranges::count(left_, true));
  FenceActions actions = exchange_->start();
  finish_if_done(actions);
  return actions;
}

void Fence::finish_if_done(FenceActions& actions) {
  if (!exchange_ || !exchange_->is_done()) return;
  last_ = Last{exchanged_, nullptr};
  if (exchange_->is_whole() || exchange_->total() == 0) {
    last_->result = std::make_shared<const std::string>(exchange_->take_whole());
    SendPiece whole{{}, exchanged_, 0, 0, last_->result};
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (!left_[i]) whole.nodes.push_back(i);
    }
    actions.emplace_back(std::move(whole));
  }
  exchange_.reset();
  was_repeated_.assign(left_.size(), false);
  held_ = last_->result ? last_->result->size() : 0;
  for (const auto& entry : gathering_.entries) held_ += entry ? entry->key_values.size() : 0;
}

Result<FenceActions> Fence::piece(std::size_t node, std::uint64_t sequence, std::uint64_t offset,
                                  std::string data) {
  if (!exchange_ || sequence != exchanged_ || node >= left_.size()) return FenceActions();
  auto actions = exchange_->piece(node, offset, std::move(data));
  if (actions) finish_if_done(*actions);
  return actions;
}

Result<FenceActions> Fence::taken(std::size_t node, std::uint64_t sequence, std::uint64_t offset,
                                  std::uint64_t total) {
  if (!exchange_ || sequence != exchanged_ || node >= left_.size()) return FenceActions();
  auto actions = exchange_->taken(node, offset, total);
  if (actions) finish_if_done(*actions);
  return actions;
}

FenceActions Fence::leave(std::size_t node) {
  FenceActions actions;
  if (node >= left_.size() || left_[node]) return actions;
  left_[node] = true;
  FenceEntry* mine = nullptr;
  if (!gathering_.entries.empty() && gathering_.entries[node]) mine = &*gathering_.entries[node];
  if (mine == nullptr) {
    ++gathering_.absent;
  } else if (!mine->is_held()) {  // they can no longer be fetched
    gathering_.total -= std::exchange(mine->bytes, 0);
  }
  if (exchange_) actions = exchange_->leave(node);
  finish_if_done(actions);
  return actions;
}

}  // namespace score::head
