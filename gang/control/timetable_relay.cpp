// A batch is the content of one bundle (at the head: one publication), and a hop is a bundle that
// was forwarded to one child. A batch is over when all its hops are. A hop is over when the child
// has confirmed its own batch, or when all repetitions failed. So the head learns of everything
// that arrived, and of everything that may not have, whichever member fails on the way.
#include "gang/control/timetable_relay.hpp"

#include <algorithm>
#include <span>

namespace score::gang {

namespace {

constexpr std::size_t kRangeBytes = 12;   // at most, encoded
constexpr std::size_t kPartBytes = 16;    // of the encoding around a part
constexpr std::size_t kMostRanges = 40;   // per part; more are sent as several parts
constexpr std::size_t kMostMissing = 60;  // ranges in one ack

std::size_t size_of(const TimetableRelay::Part& part) {
  return kPartBytes + part.body.size() + kRangeBytes * part.to.ranges().size();
}

// Adds the share of `whole` that lies in the range to `out`, as parts of at most kMostRanges
// ranges.
void add_clipped_part(const TimetableRelay::Part& whole, PositionRange range,
                      std::vector<TimetableRelay::Part>& out) {
  Positions to = whole.to;
  to.clip(range);
  const std::span<const PositionRange> ranges(to.ranges());
  for (std::size_t at = 0; at < ranges.size(); at += kMostRanges) {
    const auto some = ranges.subspan(at, std::min(kMostRanges, ranges.size() - at));
    out.push_back({Positions(some), whole.body});
  }
}

Positions receivers(const TimetableRelay::Bundle& bundle) {
  Positions all;
  for (const auto& part : bundle.parts) all.add(part.to);
  return all;
}

// Returns a superset of `missing` in few ranges. Sending a part again is harmless.
Positions in_few_ranges(const Positions& missing) {
  const auto& ranges = missing.ranges();
  if (ranges.size() <= kMostMissing) return missing;
  Positions few(std::span<const PositionRange>(ranges).first(kMostMissing - 1));
  few.add({ranges[kMostMissing - 1].begin, ranges.back().end});
  return few;
}

}  // namespace

TimetableRelay::TimetableRelay(const Tree& tree, Position self, Limits limits,
                               std::uint64_t last_id)
    : tree_(tree), self_(self), limits_(limits), last_id_(last_id) {}

TimetableRelay::Actions TimetableRelay::publish(std::uint32_t number,
                                                const std::vector<Part>& parts,
                                                const Positions& silent, TimePoint now) {
  Actions actions;
  begin({self_, number}, parts, silent, now, actions);
  return actions;
}

TimetableRelay::Actions TimetableRelay::hear(Position from, const Bundle& bundle,
                                             const Positions& silent, TimePoint now) {
  Actions actions;
  if (from >= tree_.size() || !tree_.is_below(self_, from)) return actions;
  const BatchKey key{from, bundle.id};
  const auto known = batches_.find(key);
  if (known == batches_.end()) {
    begin(key, bundle.parts, silent, now, actions);
  } else if (known->second.is_over) {
    actions.acks.push_back({from, {bundle.id, true, in_few_ranges(known->second.missing)}});
  } else {
    actions.acks.push_back({from, {bundle.id, false, {}}});
  }
  return actions;
}

void TimetableRelay::begin(const BatchKey& key, const std::vector<Part>& parts,
                           const Positions& silent, TimePoint now, Actions& actions) {
  forget_old(actions);
  batches_[key] = {};
  order_.push_back(key);
  const PositionRange below{self_ + 1, tree_.subtree(self_).end};
  Positions reached;
  for (const Part& part : parts) {
    if (part.to.contains(self_)) actions.deliver.push_back(part.body);
  }
  for (const Position child : tree_.children_past(self_, silent)) {
    reached.add(tree_.subtree(child));
    send_down(key, child, parts, now, actions);
  }
  for (const Part& part : parts) {  // silent members, on the way or as receivers
    Positions left = part.to;
    left.clip(below);
    for (const PositionRange& range : reached.ranges()) left.remove(range);
    batches_[key].missing.add(left);
  }
  if (key.first != self_ && batches_[key].open > 0) {
    actions.acks.push_back({key.first, {key.second, false, {}}});
  }
  end_if_complete(key, actions);
}

void TimetableRelay::send_down(const BatchKey& key, Position child, const std::vector<Part>& parts,
                               TimePoint now, Actions& actions) {
  std::vector<Part> all, some;
  for (const Part& part : parts) add_clipped_part(part, tree_.subtree(child), all);
  std::size_t bytes = 0;
  for (Part& part : all) {
    const std::size_t size = size_of(part);
    if (size > limits_.bundle_bytes) {
      batches_[key].missing.add(part.to);
      continue;
    }
    if (bytes + size > limits_.bundle_bytes) {
      send_bundle(key, child, std::exchange(some, {}), now, actions);
      bytes = 0;
    }
    bytes += size;
    some.push_back(std::move(part));
  }
  if (!some.empty()) send_bundle(key, child, std::move(some), now, actions);
}

void TimetableRelay::send_bundle(const BatchKey& key, Position child, std::vector<Part> parts,
                                 TimePoint now, Actions& actions) {
  const std::uint64_t id = ++last_id_;
  Hop hop{child, {id, std::move(parts)}, key, 1, false, now + limits_.retry};
  actions.bundles.emplace_back(child, hop.bundle);
  hops_.emplace(id, std::move(hop));
  ++batches_[key].open;
}

TimetableRelay::Actions TimetableRelay::hear(Position from, const Ack& ack, TimePoint now) {
  Actions actions;
  const auto hop = hops_.find(ack.id);
  if (hop == hops_.end() || hop->second.to != from) return actions;
  if (ack.is_confirmed) {
    Positions missing = ack.missing;
    missing.clip(tree_.subtree(from));
    close(hop, missing, actions);
  } else if (!std::exchange(hop->second.is_received, true)) {
    // The child repeats on its own now, so its confirmation may take as long as this member's.
    hop->second.tries = std::max(hop->second.tries, 2U);
    hop->second.due = now + limits_.retry * (1 << hop->second.tries);
  }
  return actions;
}

void TimetableRelay::close(std::map<std::uint64_t, Hop>::iterator hop, const Positions& missing,
                           Actions& actions) {
  const BatchKey key = hop->second.batch;
  hops_.erase(hop);
  const auto batch = batches_.find(key);
  if (batch == batches_.end()) return;
  batch->second.missing.add(missing);
  --batch->second.open;
  end_if_complete(key, actions);
}

void TimetableRelay::end_if_complete(const BatchKey& key, Actions& actions) {
  Batch& batch = batches_[key];
  if (batch.open > 0 || std::exchange(batch.is_over, true)) return;
  if (key.first != self_) {
    actions.acks.push_back({key.first, {key.second, true, in_few_ranges(batch.missing)}});
    return;
  }
  const auto number = static_cast<std::uint32_t>(key.second);
  actions.ended.push_back(number);
  if (!batch.missing.empty()) actions.missing.emplace_back(number, batch.missing);
}

TimetableRelay::Actions TimetableRelay::advance(TimePoint now) {
  Actions actions;
  for (auto next = hops_.begin(); next != hops_.end();) {
    const auto hop = next++;
    if (now < hop->second.due) continue;
    if (hop->second.tries >= limits_.tries) {
      const Positions lost = receivers(hop->second.bundle);
      close(hop, lost, actions);
      continue;
    }
    hop->second.due = now + limits_.retry * (1 << hop->second.tries);
    ++hop->second.tries;
    actions.bundles.emplace_back(hop->second.to, hop->second.bundle);
  }
  return actions;
}

std::optional<TimePoint> TimetableRelay::next_deadline() const {
  std::optional<TimePoint> next;
  for (const auto& [id, hop] : hops_) next = std::min(next.value_or(hop.due), hop.due);
  return next;
}

// The oldest batches are usually over; their senders repeat those that are not.
void TimetableRelay::forget_old(Actions& actions) {
  while (order_.size() >= limits_.batches) {
    const BatchKey key = order_.front();
    order_.pop_front();
    auto batch = batches_.extract(key);
    if (key.first == self_ && !batch.mapped().is_over) {
      for (const auto& [id, hop] : hops_) {
        if (hop.batch == key) batch.mapped().missing.add(receivers(hop.bundle));
      }
      const auto number = static_cast<std::uint32_t>(key.second);
      actions.ended.push_back(number);
      actions.missing.emplace_back(number, batch.mapped().missing);
    }
    std::erase_if(hops_, [&](const auto& entry) { return entry.second.batch == key; });
  }
}

}  // namespace score::gang
