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

constexpr std::size_t kTagBytes = sizeof(std::uint64_t);

std::size_t size_of(const TimetableRelay::Part& part) {
  return kPartBytes + part.body.size() + kRangeBytes * part.to.ranges().size() +
         kTagBytes * part.tags.size();
}

// Splits a part into parts that fit into a bundle, unless its body is too large.
class PartSplitter {
 public:
  PartSplitter(const TimetableRelay::Part& whole, std::size_t most_bytes,
               std::vector<TimetableRelay::Part>& out)
      : whole_(whole), most_bytes_(most_bytes), out_(out) {}

  // Adds the share that lies in the range.
  void add(PositionRange range) {
    std::size_t index = 0;  // of the position's tag
    for (const PositionRange& all : whole_.to.ranges()) {
      const PositionRange some{std::max(all.begin, range.begin), std::min(all.end, range.end)};
      if (some.count() > 0) add_some(some, index + (some.begin - all.begin));
      index += all.count();
    }
    finish();
  }

 private:
  void add_some(PositionRange some, std::size_t index) {
    while (some.count() > 0) {
      if (!part_.to.empty() && (part_.to.ranges().size() == kMostRanges || room() == 0)) finish();
      const std::size_t most = part_.to.empty() && room() == 0 ? some.count() : room();
      const std::size_t count = std::min(some.count(), most);
      const auto end = static_cast<Position>(some.begin + count);
      part_.to.add({some.begin, end});
      if (is_tagged()) {
        const auto from = whole_.tags.begin() + static_cast<std::ptrdiff_t>(index);
        part_.tags.insert(part_.tags.end(), from, from + static_cast<std::ptrdiff_t>(count));
      }
      some.begin = end;
      index += count;
    }
  }

  // Returns how many positions of one more range the part has room for.
  [[nodiscard]] std::size_t room() const {
    if (!is_tagged()) return SIZE_MAX;
    const std::size_t used = size_of(part_) + whole_.body.size() + kRangeBytes;
    return most_bytes_ > used ? (most_bytes_ - used) / kTagBytes : 0;
  }

  void finish() {
    if (part_.to.empty()) return;
    part_.body = whole_.body;
    out_.push_back(std::exchange(part_, {}));
  }

  [[nodiscard]] bool is_tagged() const { return whole_.tags.size() == whole_.to.count(); }

  const TimetableRelay::Part& whole_;
  std::size_t most_bytes_;
  std::vector<TimetableRelay::Part>& out_;
  TimetableRelay::Part part_;
};

std::optional<std::uint64_t> tag_of(const TimetableRelay::Part& part, Position position) {
  if (part.tags.size() != part.to.count()) return std::nullopt;
  Positions before = part.to;
  before.clip({0, position});
  return part.tags[before.count()];
}

Positions receivers(const TimetableRelay::Bundle& bundle) {
  Positions all;
  for (const auto& part : bundle.parts) all.add(part.to);
  return all;
}

}  // namespace

TimetableRelay::TimetableRelay(const Tree& tree, Position self, Limits limits, Seals seals,
                               std::uint64_t last_id)
    : tree_(tree), self_(self), limits_(limits), seals_(std::move(seals)), last_id_(last_id) {}

// Everything below counts as missing if that takes fewer ranges. Sending a part again is harmless.
TimetableRelay::Ack TimetableRelay::confirmation(std::uint64_t id, const Batch& batch) const {
  if (batch.missing.ranges().size() <= kMostMissing) return {id, true, batch.missing, batch.proof};
  Positions all;
  all.add(tree_.subtree(self_));
  return {id, true, all, 0};
}

// Returns true if everyone whom the ack does not name has proven that it has its part. Only the
// head can say, and it is above all.
bool TimetableRelay::is_proven(const Bundle& bundle, const Ack& ack) const {
  std::uint64_t expected = 0;
  for (const Part& part : bundle.parts) {
    Positions confirmed = part.to;
    for (const PositionRange& range : ack.missing.ranges()) confirmed.remove(range);
    for (const PositionRange& range : confirmed.ranges()) {
      for (Position p = range.begin; p < range.end; ++p) {
        expected ^= seals_.expected(p, part.body);
      }
    }
  }
  return expected == ack.proof;
}

void TimetableRelay::take_own(Batch& batch, const std::vector<Part>& parts,
                              Actions& actions) const {
  for (const Part& part : parts) {
    if (!part.to.contains(self_)) continue;
    if (const auto proof = seals_.accept(part.body, tag_of(part, self_))) {
      batch.proof ^= *proof;
      actions.deliver.push_back(part.body);
    } else {
      batch.missing.add({self_, self_ + 1});
    }
  }
}

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
    actions.acks.push_back({from, confirmation(bundle.id, known->second)});
  } else {
    actions.acks.push_back({from, {bundle.id, false, {}, 0}});
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
  take_own(batches_[key], parts, actions);
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
    actions.acks.push_back({key.first, {key.second, false, {}, 0}});
  }
  end_if_complete(key, actions);
}

void TimetableRelay::send_down(const BatchKey& key, Position child, const std::vector<Part>& parts,
                               TimePoint now, Actions& actions) {
  std::vector<Part> all, some;
  for (const Part& part : parts) {
    PartSplitter(part, limits_.bundle_bytes, all).add(tree_.subtree(child));
  }
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
    close(hop, ack, actions);
  } else if (!std::exchange(hop->second.is_received, true)) {
    // The child repeats on its own now, so its confirmation may take as long as this member's.
    hop->second.tries = std::max(hop->second.tries, 2U);
    hop->second.due = now + limits_.retry * (1 << hop->second.tries);
  }
  return actions;
}

void TimetableRelay::close(std::map<std::uint64_t, Hop>::iterator hop, const Ack& ack,
                           Actions& actions) {
  const Hop closed = std::move(hop->second);
  const BatchKey key = closed.batch;
  hops_.erase(hop);
  const auto batch = batches_.find(key);
  if (batch == batches_.end()) return;
  Positions missing = ack.missing;
  missing.clip(tree_.subtree(closed.to));
  const bool is_head = key.first == self_;
  if (is_head && !is_proven(closed.bundle, ack)) missing = receivers(closed.bundle);
  batch->second.missing.add(missing);
  batch->second.proof ^= ack.proof;
  --batch->second.open;
  end_if_complete(key, actions);
}

void TimetableRelay::end_if_complete(const BatchKey& key, Actions& actions) {
  Batch& batch = batches_[key];
  if (batch.open > 0 || std::exchange(batch.is_over, true)) return;
  if (key.first != self_) {
    actions.acks.push_back({key.first, confirmation(key.second, batch)});
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
      close(hop, {hop->first, true, receivers(hop->second.bundle), 0}, actions);
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
