#include "tests/support/pario/transactions_world.hpp"

#include <algorithm>
#include <utility>

namespace score::pario {

void TransactionsWorld::run(int transactions) {
  for (int i = 0; i < transactions || !clients_.empty(); ++i) {
    if (i < transactions) begin(static_cast<TransactionId>(i) + 1);
    for (int step = 0; step < 5; ++step) {  // several transactions at a time
      disturb();
      if (chance(5)) tick();
      advance();
    }
    ASSERT_LT(i, transactions * 1'000) << "it does not end";
  }
}

void TransactionsWorld::settle() {
  for (int i = 0; i < 200; ++i) {
    heal();
    tick();
    for (int left = 1'000; !messages_.empty() && left > 0; --left) {
      heal();
      advance();
    }
  }
}

void TransactionsWorld::tick() {
  now_ += 500;
  tick_parts();
}

// A client reads some places, writes some of them, and commits as client/transaction.cpp does.
void TransactionsWorld::begin(TransactionId id) {
  if (has_plain_writes() && chance(4)) return begin_plain(id);
  History& history = histories_[id];
  const std::size_t count = 1 + pick(3);
  std::map<std::size_t, Transactions::Stage> stages;
  for (std::size_t i = 0; i < count; ++i) {
    const Key key{pick(kParts), pick(kPlaces)};
    const Extent extent{key.place * kApart, 8};
    Transactions* found = machine(key.part);
    std::uint64_t stamp = 0;
    if (history.reads.contains(key) || found == nullptr) continue;
    if (found->stamp(kFile, {extent}, now_, stamp) != 0) continue;
    history.reads[key] = value(key);
    history.parts.insert(static_cast<std::uint16_t>(key.part));
    Transactions::Stage& stage = stages[key.part];
    stage.id = id;
    stage.reads.push_back({kFile, extent, stamp});
    if (chance(3)) continue;
    history.writes.insert(key);
    stage.writes.push_back({kFile, extent, bytes_of(id)});
  }
  if (stages.empty()) {
    histories_.erase(id);
    return;
  }
  clients_.insert(id);
  group(id, stages.size(), [this, id](int error) { staged(id, error); });
  for (auto& [part, stage] : stages) {
    send(part, [this, id, stage](Transactions& machine, std::uint64_t) {
      const int error = machine.stage(stage, now_);
      arrived(id, error);
    });
  }
}

// The write begins now if no bytes are locked, and is carried out later.
void TransactionsWorld::begin_plain(TransactionId id) {
  const Key key{pick(kParts), pick(kPlaces)};
  Transactions* found = machine(key.part);
  if (found == nullptr) return;
  const std::uint64_t plain = found->begin_plain(kFile, {{key.place * kApart, 8}});
  if (plain == 0) return;
  History& history = histories_[id];
  history.is_plain = true;
  messages_.push_back(
      {key.part,
       [this, key, id, plain, begun = life(key.part)](Transactions&, std::uint64_t) {
         if (life(key.part) != begun) return;  // it was lost with the server
         write(key, id, plain);
       },
       {},
       false});
}

void TransactionsWorld::overwrite(const Key& key, std::uint64_t id) {
  histories_[id].reads[key] = value(key);
  histories_[id].writes.insert(key);
}

void TransactionsWorld::end_plain(const Key& key, std::uint64_t id, std::uint64_t plain) {
  histories_[id].result = 0;
  if (Transactions* found = machine(key.part)) found->end_plain(kFile, plain);
}

std::uint16_t TransactionsWorld::coordinator(TransactionId id) {
  auto at = histories_[id].parts.begin();
  std::advance(at, static_cast<long>(id % histories_[id].parts.size()));
  return *at;
}

void TransactionsWorld::staged(TransactionId id, int error) {
  if (error != 0) return over(id, EAGAIN);
  prepare(id, {coordinator(id)}, [this, id](int failed) {
    const History& history = histories_[id];
    if (history.parts.size() == 1) return over(id, failed == EIO ? EIO : failed);
    if (failed != 0) return undo(id);
    std::vector<std::uint16_t> others;
    for (const std::uint16_t part : history.parts) {
      if (part != coordinator(id)) others.push_back(part);
    }
    prepare(id, others, [this, id](int refused) { refused != 0 ? undo(id) : decide(id); });
  });
}

void TransactionsWorld::prepare(TransactionId id, const std::vector<std::uint16_t>& parts,
                                const std::function<void(int)>& next) {
  group(id, parts.size(), next);
  Transactions::Prepare prepare{.id = id,
                                .stages = 1,
                                .coordinator = coordinator(id),
                                .is_stable = is_stable_,
                                .servers = {},
                                .token = 0};
  prepare.servers.assign(histories_[id].parts.begin(), histories_[id].parts.end());
  for (const std::uint16_t part : parts) {
    ask(part, id, [this, prepare](Transactions& machine, std::uint64_t token) {
      Transactions::Prepare one = prepare;
      one.token = token;
      machine.prepare(one, now_);
    });
  }
}

void TransactionsWorld::decide(TransactionId id) {
  group(id, 1, [this, id](int error) {
    if (error == EIO) return over(id, EIO);
    if (error != 0) return undo(id);
    over(id, 0);
    clients_.insert(id);
    const auto& parts = histories_[id].parts;
    group(id, parts.size() - 1, [this, id](int failed) {
      if (failed != 0) return vanish(id);
      send(coordinator(id), [id](Transactions& machine, std::uint64_t) { machine.end(id); });
      vanish(id);
    });
    finish(id, true);
  });
  ask(coordinator(id), id,
      [this, id](Transactions& machine, std::uint64_t token) { machine.decide(id, token, now_); });
}

void TransactionsWorld::finish(TransactionId id, bool commits) {
  for (const std::uint16_t part : histories_[id].parts) {
    if (commits && part == coordinator(id)) continue;
    ask(part, id, [this, id, commits](Transactions& machine, std::uint64_t token) {
      machine.finish(id, commits, token, now_);
    });
  }
}

void TransactionsWorld::undo(TransactionId id) {
  group(id, histories_[id].parts.size(), [this, id](int) { vanish(id); });
  finish(id, false);
  histories_[id].result = EAGAIN;
}

void TransactionsWorld::over(TransactionId id, int result) {
  histories_[id].result = result;
  vanish(id);
}

void TransactionsWorld::vanish(TransactionId id) {
  clients_.erase(id);
  groups_.erase(id);
}

void TransactionsWorld::arrived(TransactionId id, int error) {
  const auto found = groups_.find(id);
  if (found == groups_.end() || !clients_.contains(id)) return;
  if (chance(100)) return vanish(id);  // the client was killed
  Client& client = found->second;
  if (client.error == 0) client.error = error;
  if (--client.waiting > 0) return;
  const auto next = client.next;
  next(client.error);
}

void TransactionsWorld::send(std::size_t part,
                             std::function<void(Transactions&, std::uint64_t)> deliver) {
  messages_.push_back({part, std::move(deliver), {}, false});
}

void TransactionsWorld::ask(std::size_t part, TransactionId id,
                            std::function<void(Transactions&, std::uint64_t)> deliver) {
  messages_.push_back(
      {part, std::move(deliver), [this, id](int error, Outcome) { arrived(id, error); }, true});
}

// Delivers one of the messages in flight. Some are delivered twice, as after a reconnection.
void TransactionsWorld::advance() {
  now_ += static_cast<std::int64_t>(pick(50));
  if (messages_.empty()) return;
  const std::size_t at = pick(messages_.size());
  const Message message = messages_[at];
  Transactions* found = machine(message.part);
  if (found == nullptr && !(message.has_token && chance(20))) return;  // sent again later
  messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(at));
  if (found == nullptr) {
    return message.answer(EIO, Outcome::Undecided);
  }
  if (!message.has_token) {
    message.deliver(*found, 0);
    return drain(message.part);
  }
  if (chance(20)) {
    message.deliver(*found, next_token_++);
    drain(message.part);
  }
  const std::uint64_t token = next_token_++;
  waiting_[token] = message;
  message.deliver(*found, token);
  drain(message.part);
}

void TransactionsWorld::reply(const Action& action) {
  const auto found = waiting_.find(action.token);
  if (found == waiting_.end()) return;
  const Answer answer = found->second.answer;
  waiting_.erase(found);
  answer(action.error, action.outcome);
}

void TransactionsWorld::ask_or_push(std::size_t part, const Action& action) {
  const TransactionId id = action.id;
  const std::uint16_t to = action.server;
  const bool is_push = action.kind == Action::Kind::Push;
  messages_.push_back(
      {to,
       [this, id, is_push](Transactions& m, std::uint64_t token) {
         is_push ? m.finish(id, true, token, now_) : m.report_outcome(id, token, now_);
       },
       [this, id, part, to, is_push, from = life(part)](int error, Outcome outcome) {
         Transactions* now = machine(part);
         if (error != 0 || now == nullptr || life(part) != from) return;
         is_push ? now->pushed(id, to) : now->learn(id, outcome);
         drain(part);
       },
       true});
}

void TransactionsWorld::lose_requests(std::size_t part) {
  std::vector<Answer> failed;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto next = std::next(at);
    if (at->second.part == part && chance(2)) {  // the connection is established again
      messages_.push_back(at->second);
      waiting_.erase(at);
    } else if (at->second.part == part) {
      failed.push_back(at->second.answer);
      waiting_.erase(at);
    }
    at = next;
  }
  for (const Answer& answer : failed) answer(EIO, Outcome::Undecided);
}

// --- The oracle ---

void TransactionsWorld::check() {
  check_whole();
  find_plain();
  check_order();
  for (std::size_t part = 0; part < kParts; ++part) {
    std::uint64_t stamp = 0;
    ASSERT_NE(machine(part), nullptr) << "no replica serves part " << part;
    EXPECT_EQ(machine(part)->stamp(kFile, {{0, kPlaces * kApart}}, now_, stamp), 0)
        << "part " << part << " still holds locks";
  }
  EXPECT_GT(committed_.size(), histories_.size() / 10);
}

void TransactionsWorld::check_whole() {
  for (const auto& [id, history] : histories_) {
    if (history.is_plain) continue;
    std::size_t count = 0;
    for (const std::uint16_t part : history.parts) count += applied_.contains({part, id}) ? 1 : 0;
    EXPECT_TRUE(count == 0 || count == history.parts.size()) << "in part: " << id;
    if (history.result == 0) {
      EXPECT_EQ(count, history.parts.size()) << "lost: " << id;
    }
    if (history.result == EAGAIN) {
      EXPECT_EQ(count, 0U) << "done, though refused: " << id;
    }
    if (count > 0) committed_.insert(id);
  }
}

// If the server of a plain write was killed, the write counts if any client has seen it.
void TransactionsWorld::find_plain() {
  std::set<TransactionId> seen;
  for (std::size_t part = 0; part < kParts; ++part) {
    for (std::uint64_t place = 0; place < kPlaces; ++place) seen.insert(value({part, place}));
  }
  for (const auto& [id, history] : histories_) {
    if (history.is_plain && history.result == 0) committed_.insert(id);
  }
  for (std::size_t before = 0; before != committed_.size();) {
    before = committed_.size();
    for (const TransactionId id : committed_) {
      for (const auto& [key, version] : histories_[id].reads) seen.insert(version);
    }
    for (const TransactionId id : seen) {
      if (histories_.contains(id) && histories_[id].is_plain) committed_.insert(id);
    }
  }
}

// Every written value was read before it was overwritten, so the versions of a place form a chain.
// An edge leads from the writer of a version to its readers, and from the readers to the
// transaction that overwrote it. If there is no cycle, there is an order.
void TransactionsWorld::check_order() {
  std::map<std::pair<Key, std::uint64_t>, TransactionId> next;
  for (const TransactionId id : committed_) {
    for (const Key& key : histories_[id].writes) {
      const auto [at, is_new] = next.emplace(std::pair(key, histories_[id].reads[key]), id);
      EXPECT_TRUE(is_new) << id << " and " << at->second << " overwrote the same version";
    }
  }
  std::map<TransactionId, std::set<TransactionId>> after;
  for (const TransactionId id : committed_) {
    for (const auto& [key, version] : histories_[id].reads) {
      if (version != 0 && version != id) after[version].insert(id);
      const auto later = next.find({key, version});
      if (later != next.end() && later->second != id) after[id].insert(later->second);
      if (version != 0) {
        EXPECT_TRUE(committed_.contains(version)) << id << " read what never was: " << version;
      }
    }
  }
  std::map<TransactionId, int> colour;
  const std::function<bool(TransactionId)> has_cycle = [&](TransactionId id) {
    colour[id] = 1;
    for (const TransactionId to : after[id]) {
      if (colour[to] == 1 || (colour[to] == 0 && has_cycle(to))) return true;
    }
    colour[id] = 2;
    return false;
  };
  for (const TransactionId id : committed_) {
    EXPECT_FALSE(colour[id] == 0 && has_cycle(id)) << "no serial order";
  }
  check_last(next);
}

void TransactionsWorld::check_last(
    const std::map<std::pair<Key, std::uint64_t>, TransactionId>& next) {
  for (std::size_t part = 0; part < kParts; ++part) {
    for (std::uint64_t place = 0; place < kPlaces; ++place) {
      const Key key{part, place};
      std::uint64_t last = 0;
      for (auto at = next.find({key, last}); at != next.end(); at = next.find({key, last})) {
        last = at->second;
      }
      EXPECT_EQ(value(key), last) << "the last version is not the one there";
    }
  }
}

}  // namespace score::pario
