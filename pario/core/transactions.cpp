#include "pario/core/transactions.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace score::pario {
namespace {

constexpr std::uint64_t kGranule = 512;  // of stamps
constexpr std::size_t kMostStamps = std::size_t{1} << 20;
constexpr std::size_t kMostStages = 4'096;
constexpr std::size_t kAccessBytes = 64;  // about what one costs besides its data
constexpr std::size_t kStageBytes = 1'024;
constexpr std::size_t kMostStagedBytes =
    kMaxTransactionBytes + kMaxAccesses * kAccessBytes + kMostStages * kStageBytes;

bool overlap(const Extent& a, const Extent& b) {
  return a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

std::size_t cost_of(const Transactions::Stage& stage) {
  std::size_t bytes = kStageBytes + (stage.reads.size() + stage.writes.size()) * kAccessBytes;
  for (const WriteAccess& write : stage.writes) bytes += write.data.size();
  return bytes;
}

}  // namespace

int Transactions::stage(Stage stage, std::int64_t now_ms) {
  const std::size_t bytes = cost_of(stage);
  const auto found = known_.find(stage.id);
  if (found != known_.end() && found->second.state != State::Staging) return 0;  // repeated
  if (staged_bytes_ + bytes > kMaxStaged) return EAGAIN;
  Known& known = known_[stage.id];
  known.since_ms = now_ms;
  known.part.id = stage.id;
  if (known.stages.contains(stage.sequence)) return 0;
  if (known.staged_bytes + bytes > kMostStagedBytes) return E2BIG;
  if (known.stages.size() >= kMostStages) return E2BIG;
  known.staged_bytes += bytes;
  staged_bytes_ += bytes;
  const std::uint32_t sequence = stage.sequence;
  known.stages.emplace(sequence, std::move(stage));
  return 0;
}

// The messages in the order in which the client made them: a later write is upon an earlier one.
bool Transactions::merge(Known& known) {
  std::size_t bytes = 0;
  for (auto& [sequence, stage] : known.stages) {
    for (WriteAccess& write : stage.writes) {
      bytes += write.data.size();
      known.part.writes.push_back(std::move(write));
    }
    std::ranges::move(stage.reads, std::back_inserter(known.part.reads));
  }
  known.stages.clear();
  return bytes <= kMaxTransactionBytes && known.part.reads.size() <= kMaxAccesses &&
         known.part.writes.size() <= kMaxAccesses;
}

void Transactions::prepare(const Prepare& prepare, std::int64_t now_ms) {
  const auto place = known_.find(prepare.id);
  if (place == known_.end()) return reply(prepare.token, EAGAIN, false);
  Known& known = place->second;
  if (known.state == State::Committing) return known.tokens.push_back(prepare.token);
  if (known.state != State::Staging) return reply(prepare.token, 0, known.part.is_stable);
  const bool is_whole = known.stages.size() == prepare.stages;
  const bool is_small = merge(known);
  known.part.coordinator = prepare.coordinator;
  known.part.is_stable = prepare.is_stable;
  known.part.servers = prepare.servers;
  if (!is_whole || !is_small || check(known.part) != 0) {
    forget(place);
    return reply(prepare.token, is_small ? EAGAIN : E2BIG, false);
  }
  lock(known.part);
  known.state = State::Prepared;
  known.since_ms = now_ms;
  known.next_try_ms = now_ms + kDoubtMs;
  append(LogRecord::Kind::Prepared, known.part);
  if (prepare.servers.size() > 1) return reply(prepare.token, 0, known.part.is_stable);
  known.tokens.push_back(prepare.token);
  commit(known, now_ms);
}

int Transactions::check(const TransactionPart& part) const {
  for (const ReadAccess& read : part.reads) {
    if (is_changed(read) || is_held(read.file, read.extent, false, part.id)) return EAGAIN;
  }
  for (const WriteAccess& write : part.writes) {
    if (is_held(write.file, write.extent, true, part.id)) return EAGAIN;
  }
  return 0;
}

bool Transactions::is_changed(const ReadAccess& read) const {
  if (read.stamp < (life_ | floor_) || read.stamp > (life_ | clock_)) return true;
  const auto file = changed_.find(read.file);
  if (file == changed_.end()) return false;
  const std::uint64_t end = read.extent.offset + read.extent.length;
  for (std::uint64_t at = read.extent.offset / kGranule; at * kGranule < end; ++at) {
    const auto granule = file->second.find(at);
    if (granule != file->second.end() && (life_ | granule->second) > read.stamp) return true;
  }
  return false;
}

bool Transactions::is_held(FileId file, const Extent& extent, bool for_write,
                           TransactionId by) const {
  const auto found = held_.find(file);
  if (found == held_.end()) return false;
  return std::ranges::any_of(found->second, [&](const Held& held) {
    return held.id != by && (for_write || held.is_write) && overlap(held.extent, extent);
  });
}

void Transactions::lock(const TransactionPart& part) {
  for (const ReadAccess& read : part.reads)
    held_[read.file].push_back({part.id, read.extent, false});
  for (const WriteAccess& write : part.writes) {
    held_[write.file].push_back({part.id, write.extent, true});
  }
}

void Transactions::unlock(const TransactionPart& part) {
  const auto drop = [&](FileId file) {
    const auto found = held_.find(file);
    if (found == held_.end()) return;
    std::erase_if(found->second, [&](const Held& held) { return held.id == part.id; });
    if (found->second.empty()) held_.erase(found);
  };
  for (const ReadAccess& read : part.reads) drop(read.file);
  for (const WriteAccess& write : part.writes) drop(write.file);
}

void Transactions::set_stamps(const TransactionPart& part) {
  ++clock_;
  if (changed_count_ > kMostStamps) {
    changed_.clear();
    changed_count_ = 0;
    floor_ = clock_;
  }
  for (const WriteAccess& write : part.writes) {
    auto& file = changed_[write.file];
    const std::size_t before = file.size();
    const std::uint64_t end = write.extent.offset + write.extent.length;
    for (std::uint64_t at = write.extent.offset / kGranule; at * kGranule < end; ++at) {
      file[at] = clock_;
    }
    changed_count_ += file.size() - before;
  }
}

int Transactions::stamp(FileId file, const std::vector<Extent>& extents,
                        std::uint64_t& stamp) const {
  for (const Extent& extent : extents) {
    if (is_held(file, extent, false, 0)) return EAGAIN;
  }
  stamp = life_ | clock_;
  return 0;
}

void Transactions::decide(TransactionId id, std::uint64_t token, std::int64_t now_ms) {
  const auto place = known_.find(id);
  if (place == known_.end() || place->second.state == State::Staging ||
      place->second.part.coordinator != server_) {
    return reply(token, ECANCELED, false);
  }
  Known& known = place->second;
  if (known.state == State::Committed) return reply(token, 0, known.part.is_stable);
  known.tokens.push_back(token);
  if (known.state == State::Prepared) commit(known, now_ms);
}

void Transactions::commit(Known& known, std::int64_t now_ms) {
  known.state = State::Committing;
  known.since_ms = now_ms;
  known.next_try_ms = now_ms + kDoubtMs;
  if (known.part.coordinator == server_) {
    std::ranges::remove_copy(known.part.servers, std::back_inserter(known.waiting), server_);
  }
  append(LogRecord::Kind::Committed, known.part);
  actions_.push_back(
      {.kind = Action::Kind::Apply, .id = known.part.id, .after_sync = known.part.is_stable});
}

void Transactions::applied(TransactionId id, std::uint64_t boot) {
  const auto place = known_.find(id);
  if (place == known_.end() || place->second.state != State::Committing) return;
  Known& known = place->second;
  set_stamps(known.part);
  unlock(known.part);
  known.state = State::Committed;
  append(LogRecord::Kind::Applied, known.part, boot);
  for (const std::uint64_t token : std::exchange(known.tokens, {})) {
    reply(token, 0, false, Outcome::Committed);
  }
  known.part.reads = {};
  known.part.writes = {};
  // A server in doubt asks the coordinator.
  if (known.part.coordinator != server_) forget(place);
}

void Transactions::finish(TransactionId id, bool commits, std::uint64_t token,
                          std::int64_t now_ms) {
  const auto place = known_.find(id);
  if (place == known_.end()) return reply(token, 0, false);
  Known& known = place->second;
  const bool is_open = known.state == State::Staging || known.state == State::Prepared;
  if (!commits) {
    if (is_open) abort(place);
    return reply(token, 0, false);
  }
  // The coordinator commits by decide() alone.
  if (known.state == State::Staging || known.part.coordinator == server_) {
    return reply(token, known.state == State::Committed ? 0 : EINVAL, false);
  }
  known.tokens.push_back(token);
  if (known.state == State::Prepared) commit(known, now_ms);
}

void Transactions::abort(Place place) {
  Known& known = place->second;
  if (known.state == State::Prepared) {
    unlock(known.part);
    append(LogRecord::Kind::Aborted, known.part);
  }
  forget(place);
}

void Transactions::forget(Place place) {
  staged_bytes_ -= place->second.staged_bytes;
  known_.erase(place);
}

void Transactions::tell_outcome(TransactionId id, std::uint64_t token, std::int64_t) {
  const auto place = known_.find(id);
  if (place == known_.end()) return reply(token, 0, false, Outcome::Aborted);
  Known& known = place->second;
  if (known.state == State::Committed || known.state == State::Committing) {
    // The answer of one that is being committed waits for its record.
    return reply(token, 0, known.part.is_stable, Outcome::Committed);
  }
  if (known.state == State::Prepared && known.part.coordinator != server_) {
    return reply(token, 0, false, Outcome::Undecided);  // this server does not know either
  }
  abort(place);
  reply(token, 0, false, Outcome::Aborted);
}

void Transactions::end(TransactionId id) {
  const auto place = known_.find(id);
  if (place == known_.end() || place->second.state != State::Committed) return;
  place->second.waiting.clear();
  append(LogRecord::Kind::Ended, place->second.part);
}

void Transactions::told(TransactionId id, Outcome outcome) {
  const auto place = known_.find(id);
  if (place == known_.end() || place->second.state != State::Prepared) return;
  if (outcome == Outcome::Committed) commit(place->second, place->second.since_ms);
  if (outcome == Outcome::Aborted) abort(place);
}

void Transactions::pushed(TransactionId id, std::uint16_t server) {
  const auto place = known_.find(id);
  if (place == known_.end() || place->second.state != State::Committed) return;
  if (std::erase(place->second.waiting, server) > 0 && place->second.waiting.empty()) end(id);
}

void Transactions::tick(std::int64_t now_ms) {
  for (auto place = known_.begin(); place != known_.end();) {
    const auto next = std::next(place);
    Known& known = place->second;
    switch (known.state) {
      case State::Staging:
        if (now_ms - known.since_ms > kStagedMs) forget(place);
        break;
      case State::Prepared:
        tick_prepared(place, now_ms);
        break;
      case State::Committing:  // it could not be applied: once more
        if (now_ms < known.next_try_ms) break;
        known.next_try_ms = now_ms + kAskAgainMs;
        actions_.push_back(
            {.kind = Action::Kind::Apply, .id = known.part.id, .after_sync = known.part.is_stable});
        break;
      case State::Committed:
        tick_committed(place, now_ms);
        break;
    }
    place = next;
  }
}

void Transactions::tick_prepared(Place place, std::int64_t now_ms) {
  Known& known = place->second;
  if (now_ms < known.next_try_ms) return;
  known.next_try_ms = now_ms + kAskAgainMs;
  if (known.part.coordinator == server_) return abort(place);  // the client is gone
  actions_.push_back(
      {.kind = Action::Kind::Ask, .id = place->first, .server = known.part.coordinator});
}

void Transactions::tick_committed(Place place, std::int64_t now_ms) {
  Known& known = place->second;
  if (known.waiting.empty()) {
    if (now_ms - known.since_ms > kKeepMs) forget(place);
    return;
  }
  if (now_ms < known.next_try_ms) return;
  known.next_try_ms = now_ms + kAskAgainMs;
  for (const std::uint16_t server : known.waiting) {
    actions_.push_back({.kind = Action::Kind::Push, .id = place->first, .server = server});
  }
}

void Transactions::append(LogRecord::Kind kind, const TransactionPart& part, std::uint64_t boot) {
  const bool is_prepared = kind == LogRecord::Kind::Prepared;
  LogRecord record{.kind = kind, .part = {}, .boot = boot};
  if (is_prepared) {
    record.part = part;
  } else {
    record.part.id = part.id;
    record.part.coordinator = part.coordinator;
    record.part.is_stable = part.is_stable;
    record.part.servers = part.servers;
  }
  actions_.push_back({.kind = Action::Kind::Append, .id = part.id, .record = encode(record)});
}

void Transactions::reply(std::uint64_t token, int error, bool after_sync, Outcome outcome) {
  actions_.push_back({.kind = Action::Kind::Reply,
                      .after_sync = after_sync,
                      .token = token,
                      .error = error,
                      .outcome = outcome});
}

const TransactionPart* Transactions::part(TransactionId id) const {
  const auto place = known_.find(id);
  return place == known_.end() ? nullptr : &place->second.part;
}

bool Transactions::must_apply(TransactionId id) const {
  const auto place = known_.find(id);
  return place != known_.end() && place->second.state == State::Committing;
}

// --- Recovery ---

void Transactions::replay(LogRecord record, std::uint64_t boot) {
  const TransactionId id = record.part.id;
  auto place = known_.find(id);
  if (record.kind == LogRecord::Kind::Prepared) {
    Known& known = known_[id];
    known = {};
    known.state = State::Prepared;
    known.part = std::move(record.part);
    return;
  }
  if (record.kind == LogRecord::Kind::Committed) {
    const bool has_writes = place != known_.end();
    Known& known = known_[id];
    if (!has_writes) known.part = std::move(record.part);
    known.state = has_writes ? State::Committing : State::Committed;
    known.waiting.clear();
    if (known.part.coordinator == server_) {
      std::ranges::remove_copy(known.part.servers, std::back_inserter(known.waiting), server_);
    }
    if (has_writes) order_.push_back(id);
    return;
  }
  if (place == known_.end()) return;
  if (record.kind == LogRecord::Kind::Aborted) known_.erase(place);
  if (record.kind == LogRecord::Kind::Ended) place->second.waiting.clear();
  if (record.kind == LogRecord::Kind::Applied && record.boot == boot) {
    place->second.state = State::Committed;
    place->second.part.reads = {};
    place->second.part.writes = {};
  }
}

std::vector<TransactionId> Transactions::recovered(std::int64_t now_ms) {
  std::vector<TransactionId> redo;
  for (const TransactionId id : std::exchange(order_, {})) {
    const auto place = known_.find(id);
    if (place != known_.end() && place->second.state == State::Committing) redo.push_back(id);
  }
  for (auto place = known_.begin(); place != known_.end();) {
    const auto next = std::next(place);
    Known& known = place->second;
    known.since_ms = now_ms;
    known.next_try_ms = now_ms + kAskAgainMs;
    if (known.state == State::Committed) {
      if (known.part.coordinator != server_) known_.erase(place);
    } else {
      lock(known.part);
    }
    place = next;
  }
  return redo;
}

std::string Transactions::compacted() const {
  std::string log;
  for (const auto& [id, known] : known_) {
    if (known.state == State::Staging) continue;
    LogRecord record{.kind = LogRecord::Kind::Prepared, .part = known.part, .boot = 0};
    if (known.state != State::Committed) log += encode(record);
    if (known.state == State::Prepared) continue;
    record.kind = LogRecord::Kind::Committed;
    log += encode(record);
    record.kind = LogRecord::Kind::Ended;
    if (known.waiting.empty()) log += encode(record);
  }
  return log;
}

}  // namespace score::pario
