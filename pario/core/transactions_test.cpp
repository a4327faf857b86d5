// The state machine of two-phase commit: single rules, and whole clusters from seeds whose clients
// vanish and whose servers are killed and lose power, with an oracle of atomicity and of the order.
#include "pario/core/transactions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>

namespace score::pario {
namespace {

using Action = Transactions::Action;

constexpr FileId kFile = 1 << kHomeBits;

std::string bytes_of(std::uint64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// One server, driven by hand.
struct Single {
  Transactions machine{0, 1};
  std::int64_t now = 0;

  Transactions::Stage write_of(TransactionId id, std::uint64_t offset) {
    return {id, 0, {}, {{kFile, {offset, 8}, bytes_of(id)}}};
  }

  int prepare(TransactionId id, std::vector<std::uint16_t> servers, std::uint32_t stages = 1) {
    machine.prepare({.id = id,
                     .stages = stages,
                     .coordinator = servers.front(),
                     .is_stable = false,
                     .servers = servers,
                     .token = id},
                    now);
    return drain(id);
  }

  // Does what the machine asks for; the error of the reply to `token`, or -1.
  int drain(std::uint64_t token) {
    int error = -1;
    for (auto actions = machine.take_actions(); !actions.empty();
         actions = machine.take_actions()) {
      for (const Action& action : actions) {
        if (action.kind == Action::Kind::Apply) machine.applied(action.id, 1);
        if (action.kind == Action::Kind::Reply && action.token == token) error = action.error;
      }
    }
    return error;
  }
};

TEST(Transactions, AReadThatWasOverwrittenIsInConflict) {
  Single one;
  std::uint64_t stamp = 0;
  ASSERT_EQ(one.machine.stamp(kFile, {{0, 8}}, stamp), 0);
  ASSERT_EQ(one.machine.stage(one.write_of(1, 0), 0), 0);
  EXPECT_EQ(one.prepare(1, {0}), 0);
  ASSERT_EQ(one.machine.stage({2, 0, {{kFile, {0, 8}, stamp}}, {}}, 0), 0);
  EXPECT_EQ(one.prepare(2, {0}), EAGAIN);
  ASSERT_EQ(one.machine.stage({3, 0, {{kFile, {4096, 8}, stamp}}, {}}, 0), 0);
  EXPECT_EQ(one.prepare(3, {0}), 0) << "what another place of the file had then is still so";
}

TEST(Transactions, AStampOfAnotherLifeIsRefused) {
  Single one;
  Transactions before(0, 2);
  std::uint64_t stamp = 0;
  ASSERT_EQ(before.stamp(kFile, {{0, 8}}, stamp), 0);
  ASSERT_EQ(one.machine.stage({2, 0, {{kFile, {0, 8}, stamp}}, {}}, 0), 0);
  EXPECT_EQ(one.prepare(2, {0}), EAGAIN);
}

TEST(Transactions, APreparedWriteLocksUntilTheClientIsGivenUp) {
  Single one;
  ASSERT_EQ(one.machine.stage(one.write_of(1, 0), 0), 0);
  EXPECT_EQ(one.prepare(1, {0, 1}), 0);
  std::uint64_t stamp = 0;
  EXPECT_EQ(one.machine.stamp(kFile, {{0, 8}}, stamp), EAGAIN);
  ASSERT_EQ(one.machine.stage(one.write_of(2, 0), 0), 0);
  EXPECT_EQ(one.prepare(2, {0, 1}), EAGAIN);
  one.machine.tick(kDoubtMs + 1);
  EXPECT_EQ(one.machine.stamp(kFile, {{0, 8}}, stamp), 0);
  one.machine.decide(1, 1, one.now);
  EXPECT_EQ(one.drain(1), ECANCELED) << "it was given up for good";
}

TEST(Transactions, AMessageThatIsMissingIsAConflict) {
  Single one;
  ASSERT_EQ(one.machine.stage(one.write_of(1, 0), 0), 0);
  ASSERT_EQ(one.machine.stage(one.write_of(1, 0), 0), 0) << "repeated";
  EXPECT_EQ(one.prepare(1, {0}, 2), EAGAIN);
}

TEST(Transactions, HostileOrdersAreErrors) {
  Single one;
  one.machine.decide(5, 5, 0);
  EXPECT_EQ(one.drain(5), ECANCELED);
  ASSERT_EQ(one.machine.stage(one.write_of(1, 0), 0), 0);
  one.machine.finish(1, true, 1, 0);
  EXPECT_EQ(one.drain(1), EINVAL) << "not prepared";
  EXPECT_EQ(one.prepare(1, {0, 1}), 0);
  one.machine.finish(1, true, 1, 0);
  EXPECT_EQ(one.drain(1), EINVAL) << "the coordinator is told by decide()";
  ASSERT_EQ(one.machine.stage({9, 0, {}, {{kFile, {0, 1}, "x"}}}, 0), 0);
  int error = 0;
  const std::string large(1 << 20, 'x');
  for (std::uint32_t i = 1; error == 0 && i < 1000; ++i) {
    error = one.machine.stage({9, i, {}, {{kFile, {0, large.size()}, large}}}, 0);
  }
  EXPECT_EQ(error, E2BIG);
}

// --- Whole clusters ---

constexpr std::size_t kServers = 3;
constexpr std::uint64_t kPlaces = 3;  // per server
constexpr std::uint64_t kApart = 4096;

struct Key {
  std::size_t server = 0;
  std::uint64_t place = 0;

  friend auto operator<=>(const Key&, const Key&) = default;
};

struct SimServer {
  std::unique_ptr<Transactions> machine;
  std::vector<std::string> log;
  std::size_t synced = 0;                          // records that survive a loss of power
  std::map<std::uint64_t, std::uint64_t> data;     // as processes see it
  std::map<std::uint64_t, std::uint64_t> on_disk;  // what a loss of power leaves
  std::uint64_t boot = 1;
  std::set<TransactionId> applied;
};

// What a client knows of a transaction. Each written value is the transaction's own id.
struct History {
  std::map<Key, std::uint64_t> reads;
  std::set<Key> writes;
  std::set<std::uint16_t> servers;
  int result = -1;  // errno; -1: the client vanished, EIO: it does not know
};

class Cluster {
 public:
  Cluster(unsigned seed, bool loses_power) : random_(seed), loses_power_(loses_power) {
    for (std::size_t i = 0; i < kServers; ++i) restart(i);
  }

  void run(int transactions) {
    for (int i = 0; i < transactions || !clients_.empty(); ++i) {
      if (i < transactions) begin(static_cast<TransactionId>(i) + 1);
      for (int step = 0; step < 5; ++step) {  // several transactions at a time
        if (chance(60)) crash(pick(kServers));
        if (chance(5)) tick();
        advance();
      }
    }
    for (int i = 0; i < 200; ++i) {  // all work again
      tick();
      while (!messages_.empty()) advance();
    }
  }

  void check() {
    std::map<Key, std::map<std::uint64_t, TransactionId>> overwritten_by;
    for (const auto& [id, history] : histories_) {
      std::size_t count = 0;
      for (const std::uint16_t server : history.servers) {
        count += servers_[server].applied.contains(id) ? 1 : 0;
      }
      EXPECT_TRUE(count == 0 || count == history.servers.size()) << "in part: " << id;
      if (history.result == 0) {
        EXPECT_EQ(count, history.servers.size()) << "lost: " << id;
      }
      if (history.result == EAGAIN) {
        EXPECT_EQ(count, 0U) << "done, though refused: " << id;
      }
      if (count > 0) committed_.insert(id);
    }
    check_order();
    for (std::size_t i = 0; i < kServers; ++i) {
      std::uint64_t stamp = 0;
      EXPECT_EQ(servers_[i].machine->stamp(kFile, {{0, kPlaces * kApart}}, stamp), 0)
          << "server " << i << " still holds locks";
    }
    EXPECT_GT(committed_.size(), histories_.size() / 10);
  }

 private:
  using Answer = std::function<void(int error, Outcome outcome)>;

  struct Message {
    std::size_t server = 0;
    std::function<void(Transactions&, std::uint64_t token)> deliver;
    Answer answer;
    bool has_token = true;
  };

  struct Client {
    std::size_t waiting = 0;
    int error = 0;
    std::function<void(int)> next;
  };

  std::size_t pick(std::size_t count) { return random_() % count; }

  bool chance(unsigned one_of) { return random_() % one_of == 0; }

  // A client reads some places, writes some of them, and commits as client/transaction.cpp does.
  void begin(TransactionId id) {
    History& history = histories_[id];
    const std::size_t count = 1 + pick(3);
    std::map<std::size_t, Transactions::Stage> stages;
    for (std::size_t i = 0; i < count; ++i) {
      const Key key{pick(kServers), pick(kPlaces)};
      SimServer& server = servers_[key.server];
      const Extent extent{key.place * kApart, 8};
      std::uint64_t stamp = 0;
      if (history.reads.contains(key)) continue;
      if (server.machine->stamp(kFile, {extent}, stamp) != 0) continue;
      history.reads[key] = server.data[key.place];
      history.servers.insert(static_cast<std::uint16_t>(key.server));
      Transactions::Stage& stage = stages[key.server];
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
    for (auto& [server, stage] : stages) {
      send(server, [this, id, stage](Transactions& machine, std::uint64_t) {
        const int error = machine.stage(stage, now_);
        arrived(id, error);
      });
    }
  }

  std::uint16_t coordinator(TransactionId id) {
    auto at = histories_[id].servers.begin();
    std::advance(at, static_cast<long>(id % histories_[id].servers.size()));
    return *at;
  }

  void staged(TransactionId id, int error) {
    if (error != 0) return over(id, EAGAIN);
    prepare(id, {coordinator(id)}, [this, id](int failed) {
      const History& history = histories_[id];
      if (history.servers.size() == 1) return over(id, failed == EIO ? EIO : failed);
      if (failed != 0) return undo(id);
      std::vector<std::uint16_t> others;
      for (const std::uint16_t server : history.servers) {
        if (server != coordinator(id)) others.push_back(server);
      }
      prepare(id, others, [this, id](int refused) { refused != 0 ? undo(id) : decide(id); });
    });
  }

  void prepare(TransactionId id, const std::vector<std::uint16_t>& servers,
               const std::function<void(int)>& next) {
    group(id, servers.size(), next);
    Transactions::Prepare prepare{.id = id,
                                  .stages = 1,
                                  .coordinator = coordinator(id),
                                  .is_stable = loses_power_,
                                  .servers = {},
                                  .token = 0};
    prepare.servers.assign(histories_[id].servers.begin(), histories_[id].servers.end());
    for (const std::uint16_t server : servers) {
      ask(server, id, [this, prepare](Transactions& machine, std::uint64_t token) {
        Transactions::Prepare one = prepare;
        one.token = token;
        machine.prepare(one, now_);
      });
    }
  }

  void decide(TransactionId id) {
    group(id, 1, [this, id](int error) {
      if (error == EIO) return over(id, EIO);
      if (error != 0) return undo(id);
      over(id, 0);
      clients_.insert(id);
      const auto& servers = histories_[id].servers;
      group(id, servers.size() - 1, [this, id](int failed) {
        if (failed != 0) return vanish(id);
        send(coordinator(id), [id](Transactions& machine, std::uint64_t) { machine.end(id); });
        vanish(id);
      });
      finish(id, true);
    });
    ask(coordinator(id), id, [this, id](Transactions& machine, std::uint64_t token) {
      machine.decide(id, token, now_);
    });
  }

  void finish(TransactionId id, bool commits) {
    for (const std::uint16_t server : histories_[id].servers) {
      if (commits && server == coordinator(id)) continue;
      ask(server, id, [this, id, commits](Transactions& machine, std::uint64_t token) {
        machine.finish(id, commits, token, now_);
      });
    }
  }

  void undo(TransactionId id) {
    group(id, histories_[id].servers.size(), [this, id](int) { vanish(id); });
    finish(id, false);
    histories_[id].result = EAGAIN;
  }

  void over(TransactionId id, int result) {
    histories_[id].result = result;
    vanish(id);
  }

  void vanish(TransactionId id) {
    clients_.erase(id);
    groups_.erase(id);
  }

  void group(TransactionId id, std::size_t count, std::function<void(int)> next) {
    groups_[id] = {count, 0, std::move(next)};
  }

  void arrived(TransactionId id, int error) {
    const auto found = groups_.find(id);
    if (found == groups_.end() || !clients_.contains(id)) return;
    if (chance(100)) return vanish(id);  // the client was killed
    Client& client = found->second;
    if (client.error == 0) client.error = error;
    if (--client.waiting > 0) return;
    const auto next = client.next;
    next(client.error);
  }

  void send(std::size_t server, std::function<void(Transactions&, std::uint64_t)> deliver) {
    messages_.push_back({server, std::move(deliver), {}, false});
  }

  void ask(std::size_t server, TransactionId id,
           std::function<void(Transactions&, std::uint64_t)> deliver) {
    messages_.push_back(
        {server, std::move(deliver), [this, id](int error, Outcome) { arrived(id, error); }, true});
  }

  // Delivers one of the messages on their way. Some are delivered twice, as after a reconnection.
  void advance() {
    now_ += static_cast<std::int64_t>(pick(50));
    if (messages_.empty()) return;
    const std::size_t at = pick(messages_.size());
    const Message message = messages_[at];
    messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(at));
    Transactions& machine = *servers_[message.server].machine;
    if (!message.has_token) {
      message.deliver(machine, 0);
      return drain(message.server);
    }
    if (chance(20)) {
      message.deliver(machine, next_token_++);
      drain(message.server);
    }
    const std::uint64_t token = next_token_++;
    waiting_[token] = message;
    message.deliver(machine, token);
    drain(message.server);
  }

  void drain(std::size_t number) {
    SimServer& server = servers_[number];
    for (auto actions = server.machine->take_actions(); !actions.empty();
         actions = server.machine->take_actions()) {
      for (const Action& action : actions) {
        if (action.after_sync) server.synced = server.log.size();
        run(number, action);
      }
    }
  }

  void run(std::size_t number, const Action& action) {
    SimServer& server = servers_[number];
    if (action.kind == Action::Kind::Append) server.log.push_back(action.record);
    if (action.kind == Action::Kind::Apply) apply(server, action.id);
    if (action.kind == Action::Kind::Reply) {
      const auto found = waiting_.find(action.token);
      if (found == waiting_.end()) return;
      const Answer answer = found->second.answer;
      waiting_.erase(found);
      answer(action.error, action.outcome);
    }
    if (action.kind == Action::Kind::Ask) {
      const TransactionId id = action.id;
      messages_.push_back(
          {action.server,
           [this, id](Transactions& m, std::uint64_t token) { m.tell_outcome(id, token, now_); },
           [this, id, number](int error, Outcome outcome) {
             if (error != 0) return;
             servers_[number].machine->told(id, outcome);
             drain(number);
           },
           true});
    }
    if (action.kind == Action::Kind::Push) {
      const TransactionId id = action.id;
      const std::uint16_t to = action.server;
      messages_.push_back(
          {to,
           [this, id](Transactions& m, std::uint64_t token) { m.finish(id, true, token, now_); },
           [this, id, number, to](int error, Outcome) {
             if (error != 0) return;
             servers_[number].machine->pushed(id, to);
             drain(number);
           },
           true});
    }
  }

  void apply(SimServer& server, TransactionId id) {
    const TransactionPart* part = server.machine->part(id);
    if (part == nullptr || !server.machine->must_apply(id)) return;
    for (const WriteAccess& write : part->writes) {
      std::memcpy(&server.data[write.extent.offset / kApart], write.data.data(), 8);
    }
    server.applied.insert(id);
    server.machine->applied(id, server.boot);
  }

  void crash(std::size_t number) {
    SimServer& server = servers_[number];
    if (loses_power_) {
      const std::size_t kept = server.synced + pick(server.log.size() - server.synced + 1);
      server.log.resize(kept);
      server.data = server.on_disk;
      ++server.boot;
    }
    // Those that wait for an answer ask again, or give up.
    for (auto at = waiting_.begin(); at != waiting_.end();) {
      const auto next = std::next(at);
      if (at->second.server == number && chance(2)) {  // the connection is made again
        messages_.push_back(at->second);
        waiting_.erase(at);
      } else if (at->second.server == number) {
        const Answer answer = at->second.answer;
        waiting_.erase(at);
        answer(EIO, Outcome::Undecided);
      }
      at = next;
    }
    restart(number);
  }

  void restart(std::size_t number) {
    SimServer& server = servers_[number];
    server.machine = std::make_unique<Transactions>(static_cast<std::uint16_t>(number), ++lives_);
    for (const std::string& bytes : server.log) {
      LogRecord record;
      ASSERT_GT(decode(bytes, record), 0U);
      server.machine->replay(record, server.boot);
    }
    for (const TransactionId id : server.machine->recovered(now_)) apply(server, id);
    drain(number);
    if (!chance(2)) return;
    const std::string compacted = server.machine->compacted();
    server.log.clear();
    for (std::string_view rest = compacted; !rest.empty();) {
      LogRecord record;
      const std::size_t length = decode(rest, record);
      ASSERT_GT(length, 0U);
      server.log.emplace_back(rest.substr(0, length));
      rest.remove_prefix(length);
    }
    server.synced = server.log.size();
    server.on_disk = server.data;
  }

  void tick() {
    now_ += 500;
    for (std::size_t i = 0; i < kServers; ++i) {
      servers_[i].machine->tick(now_);
      drain(i);
    }
  }

  // Every written value was read before it was overwritten, so the versions of a place form a
  // chain. Edges: who wrote what I read; who overwrote what I read. No cycle: there is an order.
  void check_order() {
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
          EXPECT_TRUE(committed_.contains(version)) << "read what never was";
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
    for (std::size_t server = 0; server < kServers; ++server) {
      for (std::uint64_t place = 0; place < kPlaces; ++place) {
        std::uint64_t last = 0;
        for (auto at = next.find({Key{server, place}, last}); at != next.end();
             at = next.find({Key{server, place}, last})) {
          last = at->second;
        }
        EXPECT_EQ(servers_[server].data[place], last) << "the last version is not the one there";
      }
    }
  }

  std::mt19937 random_;
  bool loses_power_;
  std::int64_t now_ = 0;
  std::uint32_t lives_ = 0;
  std::uint64_t next_token_ = 1;
  std::array<SimServer, kServers> servers_;
  std::vector<Message> messages_;
  std::map<std::uint64_t, Message> waiting_;
  std::map<TransactionId, Client> groups_;
  std::set<TransactionId> clients_;
  std::map<TransactionId, History> histories_;
  std::set<TransactionId> committed_;
};

class Seeds : public testing::TestWithParam<unsigned> {};

TEST_P(Seeds, KilledServersAndClientsLeaveWholeTransactionsInOneOrder) {
  Cluster cluster(GetParam(), false);
  cluster.run(200);
  cluster.check();
}

TEST_P(Seeds, StableTransactionsSurviveALossOfPower) {
  Cluster cluster(GetParam() + 1000, true);
  cluster.run(200);
  cluster.check();
}

INSTANTIATE_TEST_SUITE_P(Transactions, Seeds, testing::Range(0U, 100U));

}  // namespace
}  // namespace score::pario
