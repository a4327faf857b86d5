#include "pario/core/transactions.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace score::pario {
namespace {

constexpr std::uint64_t kGranule = 512;  // of stamps
constexpr std::size_t kMostGranules = std::size_t{1} << 20;
constexpr std::size_t kMostWatched = 65'536;
constexpr std::uint64_t kMostExactBytes =
    64 * 1024;  // of a change; a larger one counts as a change of the whole file
constexpr std::size_t kMostStages = 4'096;
constexpr std::size_t kAccessBytes = 64;  // approximate cost of one access besides its data
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

// Copies the part without its accesses.
LogRecord record_of(LogRecord::Kind kind, const TransactionPart& part, std::uint64_t boot) {
  LogRecord record{.kind = kind, .part = {}, .boot = boot};
  record.part.id = part.id;
  record.part.coordinator = part.coordinator;
  record.part.is_stable = part.is_stable;
  record.part.servers = part.servers;
  return record;
}

template <typename Access>
void put_before(std::vector<Access>& all, std::vector<Access> first) {
  std::ranges::move(all, std::back_inserter(first));
  all = std::move(first);
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

// Merges the messages in the order in which the client created them, because later writes override
// earlier ones.
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
  if (known.state == State::Prepared && prepare.servers.size() == 1) {
    known.tokens.push_back(prepare.token);  // only its Committed record was lost
    return commit(known, now_ms);
  }
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
    if (is_being_changed(read.file, read.extent)) return EAGAIN;
  }
  for (const WriteAccess& write : part.writes) {
    if (is_held(write.file, write.extent, true, part.id)) return EAGAIN;
    if (is_being_changed(write.file, write.extent)) return EAGAIN;
  }
  return 0;
}

bool Transactions::is_changed(const ReadAccess& read) const {
  const auto found = watched_.find(read.file);
  if (found == watched_.end()) return true;
  const Watched& file = found->second;
  if (read.stamp < (life_ | file.since) || read.stamp > (life_ | clock_)) return true;
  if ((life_ | file.whole) > read.stamp) return true;
  const std::uint64_t end = read.extent.offset + read.extent.length;
  for (std::uint64_t at = read.extent.offset / kGranule; at * kGranule < end; ++at) {
    const auto granule = file.granules.find(at);
    if (granule != file.granules.end() && (life_ | granule->second) > read.stamp) return true;
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

bool Transactions::is_being_changed(FileId file, const Extent& extent) const {
  const auto found = plain_.find(file);
  if (found == plain_.end()) return false;
  return std::ranges::any_of(found->second, [&](const Plain& plain) {
    return std::ranges::any_of(plain.extents,
                               [&](const Extent& one) { return overlap(one, extent); });
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
  has_unlocked_ = true;
  const auto drop = [&](FileId file) {
    const auto found = held_.find(file);
    if (found == held_.end()) return;
    std::erase_if(found->second, [&](const Held& held) { return held.id == part.id; });
    if (found->second.empty()) held_.erase(found);
  };
  for (const ReadAccess& read : part.reads) drop(read.file);
  for (const WriteAccess& write : part.writes) drop(write.file);
}

// Changes of a file that no transaction reads need not be recorded.
void Transactions::set_stamps(FileId id, const Extent& extent) {
  const auto found = watched_.find(id);
  if (found == watched_.end()) return;
  Watched& file = found->second;
  if (extent.length > kMostExactBytes) {
    file.whole = clock_;
    return;
  }
  const std::size_t before = file.granules.size();
  const std::uint64_t end = extent.offset + extent.length;
  for (std::uint64_t at = extent.offset / kGranule; at * kGranule < end; ++at) {
    file.granules[at] = clock_;
  }
  granule_count_ += file.granules.size() - before;
  if (granule_count_ <= kMostGranules) return;
  watched_.clear();
  granule_count_ = 0;
}

int Transactions::stamp(FileId file, const std::vector<Extent>& extents, std::int64_t now_ms,
                        std::uint64_t& stamp) {
  if (watched_.size() >= kMostWatched && !watched_.contains(file)) {
    watched_.clear();
    granule_count_ = 0;
  }
  const auto [place, is_new] = watched_.try_emplace(file);
  if (is_new) place->second.since = ++clock_;
  place->second.read_ms = now_ms;
  for (const Extent& extent : extents) {
    if (is_held(file, extent, false, 0) || is_being_changed(file, extent)) return EAGAIN;
  }
  stamp = life_ | clock_;
  return 0;
}

// --- Plain changes ---

std::uint64_t Transactions::begin_plain(FileId file, const std::vector<Extent>& extents) {
  for (const Extent& extent : extents) {
    if (is_held(file, extent, true, 0)) return 0;
  }
  plain_[file].push_back({++last_plain_, extents});
  return last_plain_;
}

void Transactions::end_plain(FileId file, std::uint64_t number) {
  const auto found = plain_.find(file);
  if (found == plain_.end()) return;
  std::vector<Plain>& all = found->second;
  const auto place = std::ranges::find(all, number, &Plain::number);
  if (place == all.end()) return;
  ++clock_;
  for (const Extent& extent : place->extents) set_stamps(file, extent);
  all.erase(place);
  if (all.empty()) plain_.erase(found);
}

void Transactions::file_changed(FileId file) {
  const auto found = watched_.find(file);
  if (found != watched_.end()) found->second.whole = ++clock_;
}

bool Transactions::is_in_use(FileId file, std::int64_t now_ms) const {
  const auto found = watched_.find(file);
  return found != watched_.end() && now_ms - found->second.read_ms < kNoLeaseMs;
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
  known.order = ++commits_;
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
  ++clock_;
  for (const WriteAccess& write : known.part.writes) set_stamps(write.file, write.extent);
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
  // The coordinator uses only decide() to commit.
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

void Transactions::report_outcome(TransactionId id, std::uint64_t token, std::int64_t) {
  const auto place = known_.find(id);
  if (place == known_.end()) return reply(token, 0, false, Outcome::Aborted);
  Known& known = place->second;
  if (known.state == State::Committed || known.state == State::Committing) {
    // The answer waits for the record of a transaction that is being committed.
    return reply(token, 0, known.part.is_stable, Outcome::Committed);
  }
  if (known.state == State::Prepared && known.part.coordinator != server_) {
    return reply(token, 0, false, Outcome::Undecided);  // this server does not know it either
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

void Transactions::learn(TransactionId id, Outcome outcome) {
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
  std::erase_if(watched_, [&](const auto& entry) {
    const bool is_over = now_ms - entry.second.read_ms > kWatchMs;
    if (is_over) granule_count_ -= entry.second.granules.size();
    return is_over;
  });
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
      case State::Committing:  // it could not be applied; try again
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
  if (known.part.coordinator == server_) return abort(place);  // the client has disconnected
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
  const auto add = [&](std::string record) {
    actions_.push_back({.kind = Action::Kind::Append, .id = part.id, .record = std::move(record)});
  };
  if (kind == LogRecord::Kind::Prepared) {
    for (std::string& record : encode_prepared(part)) add(std::move(record));
    return;
  }
  add(encode(record_of(kind, part, boot)));
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
  if (record.kind == LogRecord::Kind::Accesses || record.kind == LogRecord::Kind::Prepared) {
    Known& known = known_[id];
    if (known.state != State::Staging) known = {};  // a repeated record
    put_before(record.part.reads, std::move(known.part.reads));
    put_before(record.part.writes, std::move(known.part.writes));
    known.part = std::move(record.part);
    if (record.kind == LogRecord::Kind::Prepared) known.state = State::Prepared;
    return;
  }
  if (record.kind == LogRecord::Kind::Committed) {
    const bool has_writes = place != known_.end();
    if (!has_writes && record.part.coordinator != server_) return;  // the transaction is finished
    Known& known = known_[id];
    if (!has_writes) known.part = std::move(record.part);
    known.state = has_writes ? State::Committing : State::Committed;
    known.order = ++commits_;
    known.waiting.clear();
    if (known.part.coordinator == server_) {
      std::ranges::remove_copy(known.part.servers, std::back_inserter(known.waiting), server_);
    }
    return;
  }
  if (place == known_.end()) return;
  if (record.kind == LogRecord::Kind::Aborted) known_.erase(place);
  if (record.kind == LogRecord::Kind::Ended) place->second.waiting.clear();
  // These writes must not be applied again over plain changes that were made since.
  if (record.kind == LogRecord::Kind::Flushed) {
    std::erase_if(place->second.part.writes,
                  [&record](const WriteAccess& write) { return write.file == record.file; });
  }
  if (record.kind != LogRecord::Kind::Applied || record.boot != boot) return;
  if (place->second.part.coordinator != server_) {
    known_.erase(place);
    return;
  }
  place->second.state = State::Committed;
  place->second.part.reads = {};
  place->second.part.writes = {};
}

// Returns the transactions in the order of their commits.
std::vector<const Transactions::Known*> Transactions::committing() const {
  std::vector<const Known*> found;
  for (const auto& [id, known] : known_) {
    if (known.state == State::Committing) found.push_back(&known);
  }
  std::ranges::sort(found, {}, &Known::order);
  return found;
}

void Transactions::recovered(std::int64_t now_ms) {
  for (const Known* known : committing()) {
    actions_.push_back(
        {.kind = Action::Kind::Apply, .id = known->part.id, .after_sync = known->part.is_stable});
  }
  for (auto place = known_.begin(); place != known_.end();) {
    const auto next = std::next(place);
    Known& known = place->second;
    known.since_ms = now_ms;
    known.next_try_ms = now_ms + kAskAgainMs;
    if (known.state == State::Staging) {
      known_.erase(place);  // its Prepared record was never written
    } else if (known.state == State::Committed) {
      if (known.part.coordinator != server_) known_.erase(place);
    } else {
      lock(known.part);
    }
    place = next;
  }
}

void Transactions::tick_replayed(std::int64_t now_ms) {
  for (auto place = known_.begin(); place != known_.end();) {
    Known& known = place->second;
    const bool is_over = known.state == State::Committed && known.waiting.empty();
    if (is_over && known.since_ms == 0) known.since_ms = now_ms;
    place = is_over && now_ms - known.since_ms > kKeepMs ? known_.erase(place) : std::next(place);
  }
}

std::vector<std::string> Transactions::records() const {
  std::vector<std::string> log;
  for (const auto& [id, known] : known_) {
    if (known.state == State::Prepared || known.state == State::Committing) {
      std::ranges::move(encode_prepared(known.part), std::back_inserter(log));
    }
    if (known.state != State::Committed) continue;
    log.push_back(encode(record_of(LogRecord::Kind::Committed, known.part, 0)));
    if (!known.waiting.empty()) continue;
    log.push_back(encode(record_of(LogRecord::Kind::Ended, known.part, 0)));
  }
  for (const Known* known : committing()) {
    log.push_back(encode(record_of(LogRecord::Kind::Committed, known->part, 0)));
    if (known->part.coordinator != server_ || !known->waiting.empty()) continue;
    log.push_back(encode(record_of(LogRecord::Kind::Ended, known->part, 0)));
  }
  return log;
}

std::string Transactions::compacted() const {
  std::string log;
  for (const std::string& record : records()) log += record;
  return log;
}

}  // namespace score::pario
