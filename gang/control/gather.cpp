// A batch is a bundle from below, a hop is a bundle that went up. A batch is
// over when all its blocks went in hops that were confirmed. One of which a hop
// was given up is forgotten: its sender repeats it, or gives it up too.
#include "gang/control/gather.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <iterator>

namespace score::gang {

bool BlockWindow::take(std::uint64_t sequence) {
  if (sequence > newest_) {
    const std::uint64_t shift = sequence - newest_;
    seen_ = shift < kWidth ? (seen_ << shift) | 1U : 1U;
    newest_ = sequence;
    return true;
  }
  const std::uint64_t age = newest_ - sequence;
  if (age >= kWidth) return false;
  const std::uint64_t bit = std::uint64_t{1} << age;
  const bool is_new = (seen_ & bit) == 0;
  seen_ |= bit;
  return is_new;
}

namespace {

std::size_t size_of(const Gather::Block& block) {
  return block.bytes.size() + Gather::kBlockBytes;
}

std::size_t size_of(const Gather::Bundle& bundle) {
  std::size_t sum = 0;
  for (const auto& block : bundle.blocks) sum += size_of(block);
  return sum;
}

std::uint32_t levels_of(std::size_t members, const Tree& tree, Position position) {
  std::uint32_t levels = 0;
  for (; members > 1; ++levels) {
    position = tree.children(position).front();  // the first one has the most below it
    members = tree.subtree(position).count();
  }
  return levels;
}

}  // namespace

Gather::Gather(const Tree& tree, Position self, const Limits& limits, std::uint64_t last_number)
    : tree_(tree),
      self_(self),
      limits_(limits),
      below_{self + 1, tree.subtree(self).end},
      height_(levels_of(tree.subtree(self).count(), tree, self)),
      depth_(static_cast<std::uint32_t>(tree.ancestors(self).size())),
      last_sequence_(last_number),
      last_id_(last_number),
      windows_(self == 0 ? tree.size() : 0) {}

// ---- in
// ----------------------------------------------------------------------------------------

Gather::Actions Gather::offer(std::vector<std::string> blocks, Pace pace, const Around& around,
                              TimePoint now) {
  SCORE_ASSERT(self_ != 0, "the head is where blocks go");
  Actions actions;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const bool ends_round = pace == Pace::Collected && i + 1 == blocks.size();
    Block block{self_, ++last_sequence_, ends_round, std::move(blocks[i])};
    const bool fits =
        size_of(block) <= limits_.bundle_bytes && bytes_ + size_of(block) <= limits_.most_bytes;
    if (around.up && fits) {
      wait({std::move(block), std::nullopt}, pace, now);
    } else {
      actions.failed.push_back(block.sequence);
    }
  }
  flush_if_due(around, now, actions);
  return actions;
}

bool Gather::is_credible(Position from, const Bundle& bundle) const {
  if (from >= tree_.size() || !tree_.is_below(from, self_)) return false;
  const PositionRange theirs = tree_.subtree(from);
  return std::all_of(bundle.blocks.begin(), bundle.blocks.end(), [&](const Block& block) {
    return theirs.contains(block.from) && size_of(block) <= limits_.bundle_bytes;
  });
}

Gather::Actions Gather::hear(Position from, const Bundle& bundle, const Around& around,
                             TimePoint now) {
  Actions actions;
  if (!is_credible(from, bundle)) {
    ++refused_;
    return actions;
  }
  const auto known = batches_.find({from, bundle.id});
  if (self_ == 0) {
    take(from, bundle, actions);
  } else if (known == batches_.end()) {
    relay(from, bundle, around, now);
    flush_if_due(around, now, actions);
  } else if (known->second == 0) {
    acks_[from].ids.push_back(bundle.id);
  } else {
    actions.acks.push_back({from, {false, {bundle.id}}});
  }
  if (self_ != 0 || bundle.asks) emit_acks(from, actions);
  return actions;
}

void Gather::take(Position from, const Bundle& bundle, Actions& actions) {
  for (const Block& block : bundle.blocks) {
    if (windows_[block.from].take(block.sequence)) actions.deliver.push_back(block);
  }
  auto& ids = acks_[from].ids;
  ids.push_back(bundle.id);
  // Its last one is lost; the repeated ones ask again.
  if (ids.size() > limits_.batches) ids.clear();
}

// One for which there is no room, or no way, is not answered: its sender uses
// TLS in the end.
void Gather::relay(Position from, const Bundle& bundle, const Around& around, TimePoint now) {
  if (!around.up || bytes_ + size_of(bundle) > limits_.most_bytes) return;
  const BatchKey key{from, bundle.id};
  remember(key, bundle.blocks.size());
  for (const Block& block : bundle.blocks) wait({block, key}, bundle.pace, now);
  if (bundle.blocks.empty()) acks_[from].ids.push_back(bundle.id);
}

void Gather::remember(const BatchKey& key, std::size_t open) {
  while (order_.size() >= limits_.batches) {
    batches_.erase(order_.front());
    order_.pop_front();
  }
  batches_[key] = open;
  order_.push_back(key);
}

void Gather::wait(Waiting waiting, Pace pace, TimePoint now) {
  const Duration window = pace == Pace::Soon ? limits_.collect_soon : limits_.collect;
  const TimePoint due = now + window * height_;
  due_ = waiting_.empty() ? due : std::min(due_, due);
  if (waiting_.empty() || pace == Pace::Soon) pace_ = pace;
  bytes_ += size_of(waiting.block);
  waiting_bytes_ += size_of(waiting.block);
  rounds_ += waiting.block.ends_round ? 1 : 0;
  waiting_.push_back(std::move(waiting));
}

// ---- up
// ----------------------------------------------------------------------------------------

bool Gather::has_whole_round(const Around& around) const {
  if (rounds_ == 0) return false;
  Positions silent = around.silent;
  silent.clip(below_);
  return rounds_ >= below_.count() - silent.count() + 1;
}

void Gather::flush_if_due(const Around& around, TimePoint now, Actions& actions) {
  const bool waits = now < due_ && waiting_bytes_ < limits_.most_waiting;
  if (waiting_.empty() || (waits && !has_whole_round(around))) return;
  if (around.up) return flush(*around.up, now, actions);
  for (const Waiting& waiting : std::exchange(waiting_, {})) {
    bytes_ -= size_of(waiting.block);
    settle(waiting.owner, waiting.block.sequence, false, actions);
  }
  rounds_ = waiting_bytes_ = 0;
}

void Gather::flush(Position to, TimePoint now, Actions& actions) {
  Hop hop;
  for (Waiting& waiting : std::exchange(waiting_, {})) {
    const std::size_t bytes = size_of(waiting.block);
    if (hop.bytes + bytes > limits_.bundle_bytes) send(to, std::exchange(hop, {}), now, actions);
    hop.bytes += bytes;
    hop.owners.push_back(waiting.owner);
    hop.bundle.blocks.push_back(std::move(waiting.block));
  }
  hop.bundle.asks = true;
  send(to, std::move(hop), now, actions);
  rounds_ = waiting_bytes_ = 0;
}

void Gather::send(Position to, Hop hop, TimePoint now, Actions& actions) {
  hop.bundle.id = ++last_id_;
  hop.bundle.pace = pace_;
  hop.due = now + limits_.retry;
  hop.give_up = now + limits_.patience * depth_;
  actions.bundles.emplace_back(to, hop.bundle);
  hops_.emplace(hop.bundle.id, std::move(hop));
}

Gather::Actions Gather::advance(const Around& around, TimePoint now) {
  Actions actions;
  flush_if_due(around, now, actions);
  for (auto next = hops_.begin(); next != hops_.end();) {
    const auto at = next++;
    Hop& hop = at->second;
    if (now < hop.due) continue;
    if (now >= hop.give_up || !around.up) {
      close(at, false, actions);
      continue;
    }
    hop.due = now + limits_.retry;
    hop.bundle.asks = true;
    actions.bundles.emplace_back(*around.up, hop.bundle);
  }
  return actions;
}

// ---- confirmed
// ---------------------------------------------------------------------------------

Gather::Actions Gather::hear(Position from, const Ack& ack, TimePoint now) {
  Actions actions;
  if (from >= tree_.size() || !tree_.is_below(self_, from)) return actions;
  for (const std::uint64_t id : ack.ids) {
    const auto hop = hops_.find(id);
    if (hop == hops_.end()) continue;
    if (ack.is_confirmed) {
      close(hop, true, actions);
    } else {
      hop->second.due = now + limits_.again;
    }
  }
  while (!acks_.empty()) emit_acks(acks_.begin()->first, actions);
  return actions;
}

void Gather::close(Hops::iterator hop, bool is_confirmed, Actions& actions) {
  const Hop closed = std::move(hop->second);
  hops_.erase(hop);
  bytes_ -= closed.bytes;
  for (std::size_t i = 0; i < closed.owners.size(); ++i) {
    settle(closed.owners[i], closed.bundle.blocks[i].sequence, is_confirmed, actions);
  }
}

void Gather::settle(const std::optional<BatchKey>& owner, std::uint64_t sequence, bool is_confirmed,
                    Actions& actions) {
  if (!owner) {
    (is_confirmed ? actions.confirmed : actions.failed).push_back(sequence);
    return;
  }
  const auto batch = batches_.find(*owner);
  if (batch == batches_.end()) return;
  if (!is_confirmed) {
    batches_.erase(batch);
    std::erase(order_, *owner);
  } else if (batch->second > 0 && --batch->second == 0) {
    acks_[owner->first].ids.push_back(owner->second);
  }
}

void Gather::emit_acks(Position to, Actions& actions) {
  const auto found = acks_.extract(to);
  if (found.empty()) return;
  const auto& ids = found.mapped().ids;
  for (std::size_t at = 0; at < ids.size(); at += kMostAcked) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(at);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kMostAcked, ids.size() - at));
    actions.acks.push_back({to, {true, {begin, begin + count}}});
  }
}

std::optional<TimePoint> Gather::next_deadline() const {
  std::optional<TimePoint> next;
  if (!waiting_.empty()) next = due_;
  for (const auto& [id, hop] : hops_) next = std::min(next.value_or(hop.due), hop.due);
  return next;
}

}  // namespace score::gang
