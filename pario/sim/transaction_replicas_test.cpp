// These tests run transactions on volumes with two replicas, from seeds. Servers are killed between
// any two steps, with or without their directory, while records are on their way to followers,
// while replicas take over and while they are filled. The parts are built from the classes that
// servers use.
#include "pario/core/range_gate.hpp"
#include "pario/core/replica.hpp"
#include "pario/core/safe_actions.hpp"
#include "tests/support/pario/transactions_world.hpp"

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

namespace score::pario {
namespace {

constexpr std::uint64_t kBoot = 1;

// A copy is one of the two replicas of a part. It has state that is lost with the process, and the
// contents of its disk.
struct Copy {
  std::optional<Replica> replica;  // none: the process is not running
  std::unique_ptr<Transactions> machine;
  SafeActions actions;
  RangeGate gate;
  std::uint32_t life = 0;
  std::uint64_t appended = 0;
  std::map<TransactionId, std::vector<RangeGate::Ticket>> written;  // until the follower has it
  std::set<TransactionId> applying;                                 // these wait at the gate
  bool is_leading = false;
  bool is_filling = false;
  std::uint64_t filling_view = 0;

  ReplicaView stored;
  std::vector<std::string> log;
  std::map<std::uint64_t, std::uint64_t> data;
};

struct Item {
  enum class Kind { FillBegin, Record, Write, FillEnd };

  Kind kind = Kind::Record;
  std::uint64_t view = 0;
  std::string record;
  std::uint64_t place = 0;
  std::uint64_t value = 0;
  std::function<void(bool has)> done{};
};

// A stream holds the messages from the leader to the follower, and answers that are in flight.
struct Stream {
  std::size_t leader = 0;
  std::deque<Item> sent;
  std::deque<Item> answered;
};

class Replicas final : public TransactionsWorld {
 public:
  explicit Replicas(unsigned seed) : TransactionsWorld(seed, false) {
    for (std::size_t server = 0; server < kParts; ++server) start(server);
    settle_all();
  }

  void check_copies() {
    for (std::size_t part = 0; part < kParts; ++part) {
      Copy& one = copies_[part][0];
      Copy& other = copies_[part][1];
      for (std::uint64_t place = 0; place < kPlaces; ++place) {
        EXPECT_EQ(one.data[place], other.data[place]) << "part " << part << " place " << place;
      }
      EXPECT_NE(one.replica->serves(), other.replica->serves());
      EXPECT_TRUE(one.replica->forwards() || other.replica->forwards()) << "not repaired";
    }
    EXPECT_GT(takeovers_, 0U);
    EXPECT_GT(repairs_, 3U);
  }

  std::size_t takeovers() const { return takeovers_; }

 private:
  Copy* leader(std::size_t part) {
    Copy* found = nullptr;
    for (Copy& copy : copies_[part]) {
      if (!copy.replica || !copy.replica->serves() || !copy.is_leading) continue;
      EXPECT_EQ(found, nullptr) << "both replicas of part " << part << " serve";
      found = &copy;
    }
    return found;
  }

  Transactions* machine(std::size_t part) override {
    if (Copy* found = leader(part)) return found->machine.get();
    Copy& one = copies_[part][pick(2)];  // a client connects there
    if (one.replica) one.replica->asked();
    settle_all();
    return nullptr;
  }

  std::uint32_t life(std::size_t part) override {
    const Copy* found = leader(part);
    return found != nullptr ? found->life : 0;
  }

  std::uint64_t value(const Key& key) override {
    Copy* found = leader(key.part);
    return found != nullptr ? found->data[key.place] : 0;
  }

  static Extent extent_of(std::uint64_t place) { return {place * kApart, 8}; }

  // --- Plain writes of the leader ---
  void write(const Key& key, std::uint64_t id, std::uint64_t plain) override {
    Copy& copy = *leader(key.part);
    const RangeGate::Ticket ticket = copy.gate.reserve();
    copy.gate.enter(ticket, kFile, extent_of(key.place), [this, &copy, key, id, plain, ticket] {
      let_in(copy, key, id, plain, ticket);
    });
  }

  void let_in(Copy& copy, const Key& key, std::uint64_t id, std::uint64_t plain,
              RangeGate::Ticket ticket) {
    overwrite(key, id);
    copy.data[key.place] = id;
    const auto end = [this, &copy, key, id, plain, ticket, life = copy.life] {
      if (copy.life != life) return;
      end_plain(key, id, plain);
      copy.gate.leave(ticket);
    };
    if (!copy.replica->forwards()) return end();
    Item item{.kind = Item::Kind::Write, .view = 0, .record = {}, .place = key.place, .value = id};
    item.done = [this, &copy, end, part = key.part](bool has) {
      if (!has) lose_follower(part, copy);
      if (copy.replica && copy.replica->serves()) end();
    };
    forward(key.part, copy, std::move(item));
  }

  // --- Transactions of the leader, as in server/transaction_requests.cpp ---
  void drain(std::size_t part) override {
    for (Copy& copy : copies_[part]) {
      if (copy.is_leading) drain(part, copy);
    }
    settle_all();
  }

  void drain(std::size_t part, Copy& copy) {
    const std::uint32_t life = copy.life;
    while (copy.life == life && copy.machine) {
      copy.actions.add(copy.machine->take_actions());
      const std::vector<Action> ready = copy.actions.take();
      if (ready.empty()) return;
      for (const Action& action : ready) {
        if (copy.life == life) run_action(part, copy, action);
      }
    }
  }

  void run_action(std::size_t part, Copy& copy, const Action& action) {
    switch (action.kind) {
      case Action::Kind::Append:
        return append(part, copy, action);
      case Action::Kind::Apply:
        return apply(part, copy, action.id);
      case Action::Kind::Reply:
        return reply(action);
      default:
        if (chance(2) || copy.is_leading) ask_or_push(part, action);
    }
  }

  void append(std::size_t part, Copy& copy, const Action& action) {
    copy.log.push_back(action.record);
    const std::uint64_t position = ++copy.appended;
    const bool is_applied = copy.written.contains(action.id);
    if (!copy.actions.has_follower()) {
      if (is_applied) end_applying(copy, action.id);
      return;
    }
    Item item{.kind = Item::Kind::Record, .view = 0, .record = action.record};
    item.done = [=, this, &copy, id = action.id, life = copy.life](bool has) {
      if (copy.life != life) return;
      if (is_applied) end_applying(copy, id);
      if (has) copy.actions.delivered(position);
      drain(part, copy);
      if (!has) lose_follower(part, copy);
    };
    forward(part, copy, std::move(item));
  }

  static void end_applying(Copy& copy, TransactionId id) {
    const auto found = copy.written.extract(id);
    if (found.empty()) return;
    for (const RangeGate::Ticket ticket : found.mapped()) copy.gate.leave(ticket);
  }

  void apply(std::size_t part, Copy& copy, TransactionId id) {
    const TransactionPart* found = copy.machine->part(id);
    if (found == nullptr || !copy.machine->must_apply(id) || copy.applying.contains(id)) return;
    copy.applying.insert(id);
    const auto missing = std::make_shared<std::size_t>(found->writes.size() + 1);
    const auto tickets = std::make_shared<std::vector<RangeGate::Ticket>>();
    const auto enter = [=, this, &copy] {
      if (--*missing > 0) return;
      const std::uint32_t life = copy.life;
      write_all(copy, id);
      copy.applying.erase(id);
      copy.written[id] = *tickets;
      applied(part, id);
      copy.machine->applied(id, kBoot);
      if (copy.life == life) drain(part, copy);
    };
    for (const WriteAccess& write : found->writes) {
      tickets->push_back(copy.gate.reserve());
      copy.gate.enter(tickets->back(), kFile, write.extent, enter);
    }
    enter();
  }

  static void write_all(Copy& copy, TransactionId id) {
    for (const WriteAccess& write : copy.machine->part(id)->writes) {
      std::memcpy(&copy.data[write.extent.offset / kApart], write.data.data(), 8);
    }
  }

  // --- The stream to the follower ---
  void forward(std::size_t part, Copy& copy, Item item) {
    Stream& stream = streams_[part];
    stream.leader = &copy == &copies_[part][0] ? 0 : 1;
    if (item.kind != Item::Kind::FillBegin && item.kind != Item::Kind::FillEnd) {
      item.view = copy.replica->view().number;
    }
    stream.sent.push_back(std::move(item));
  }

  void deliver(std::size_t part) {
    Stream& stream = streams_[part];
    if (!stream.answered.empty() && chance(2)) return end_item(part, true);
    if (stream.sent.empty()) return;
    Copy& copy = copies_[part][1 - stream.leader];
    if (!copy.replica) {
      if (chance(3)) break_stream(part);
      return;
    }
    Item item = std::move(stream.sent.front());
    stream.sent.pop_front();
    const bool has = take_item(part, copy, item);
    stream.answered.push_back(std::move(item));
    if (has) return;
    while (!stream.answered.empty()) end_item(part, stream.answered.size() > 1);
    break_stream(part);
  }

  void end_item(std::size_t part, bool has) {
    Item item = std::move(streams_[part].answered.front());
    streams_[part].answered.pop_front();
    item.done(has);
    settle_all();
  }

  // The connection breaks, so all requests in flight fail.
  void break_stream(std::size_t part) {
    Stream& stream = streams_[part];
    std::deque<Item> failed = std::exchange(stream.answered, {});
    for (Item& item : std::exchange(stream.sent, {})) failed.push_back(std::move(item));
    for (const Item& item : failed) item.done(false);
    settle_all();
  }

  bool take_item(std::size_t part, Copy& copy, const Item& item) {
    if (item.kind == Item::Kind::FillBegin) {
      if (copy.replica->serves() && copy.replica->view().number >= item.view) return false;
      copy.replica->begin_filling();
      settle_all();
      copy.is_filling = true;
      copy.filling_view = item.view;
      new_machine(part, copy);
      copy.log.clear();
      if (chance(2)) copy.data.clear();
      return true;
    }
    if (item.kind == Item::Kind::FillEnd) {
      if (!std::exchange(copy.is_filling, false)) return false;
      copy.replica->filled(item.view);
      settle_all();
      return true;
    }
    const bool follows =
        copy.is_filling ? item.view == copy.filling_view : copy.replica->follows(item.view);
    if (!follows) return false;
    if (item.kind == Item::Kind::Write) {
      copy.data[item.place] = item.value;
      return true;
    }
    LogRecord record;
    EXPECT_EQ(decode(item.record, record), item.record.size());
    if (record.kind == LogRecord::Kind::Applied && copy.machine->must_apply(record.part.id)) {
      write_all(copy, record.part.id);
    }
    copy.log.push_back(item.record);
    copy.machine->replay(std::move(record), kBoot);
    if (chance(50)) copy.log = copy.machine->records();
    return true;
  }

  // --- Replicas, as in server/replication.cpp ---
  void lose_follower(std::size_t part, Copy& copy) {
    if (!copy.replica) return;
    if (copy.replica->view().mode == ReplicaMode::Leading && other(part, copy).replica) {
      copy.replica->stood_still();  // the follower has refused a request: who leads?
      probe(part, copy);
      if (!copy.replica->serves()) return;
    }
    copy.replica->follower_is_lost();
    settle_all();
  }

  Copy& other(std::size_t part, const Copy& copy) {
    return copies_[part][&copy == &copies_[part][0] ? 1 : 0];
  }

  void probe(std::size_t part, Copy& copy) {
    Copy& peer = other(part, copy);
    if (!peer.replica) return copy.replica->peer_is_gone();
    peer.replica->peer_is(copy.replica->view());
    copy.replica->peer_is(peer.replica->view());
  }

  void settle_all() {
    if (is_settling_) return;
    is_settling_ = true;
    for (bool is_new = true; std::exchange(is_new, false);) {
      for (std::size_t part = 0; part < kParts; ++part) {
        for (Copy& copy : copies_[part]) is_new = settle_one(part, copy) || is_new;
      }
    }
    is_settling_ = false;
  }

  bool settle_one(std::size_t part, Copy& copy) {
    if (!copy.replica) return false;
    const auto actions = copy.replica->take_actions();
    for (const Replica::Action action : actions) {
      if (action == Replica::Action::Store) copy.stored = copy.replica->view();
      settle_transactions(part, copy);
      if (action == Replica::Action::Probe) probe(part, copy);
      if (action == Replica::Action::Repair) repair(part, copy);
    }
    settle_transactions(part, copy);
    return !actions.empty();
  }

  void settle_transactions(std::size_t part, Copy& copy) {
    if (copy.replica->serves()) {
      if (!copy.is_leading) {
        copy.is_leading = true;
        if (copy.life > kParts * 2) ++takeovers_;
        copy.machine->recovered(now());
        drain(part, copy);
      }
      if (!copy.replica->forwards() && copy.actions.has_follower()) {
        copy.actions.set_follower(false);
        drain(part, copy);
      }
    } else if (copy.is_leading && copy.replica->view().mode != ReplicaMode::Leading) {
      new_machine(part, copy);
      lose_requests(part);
    }
  }

  void new_machine(std::size_t part, Copy& copy) {
    copy.life = ++lives_;
    copy.machine = std::make_unique<Transactions>(static_cast<std::uint16_t>(part), lives_);
    copy.actions = {};
    copy.appended = 0;
    copy.applying.clear();
    copy.written.clear();
    copy.gate = {};
    copy.is_leading = false;
  }

  void repair(std::size_t part, Copy& copy) {
    break_stream(part);
    if (!copy.replica || !copy.replica->is_repairing()) return;
    Item begin{.kind = Item::Kind::FillBegin, .view = copy.replica->view().number, .record = {}};
    begin.done = [this, part, &copy](bool has) {
      if (!has) lose_follower(part, copy);
    };
    forward(part, copy, begin);
    copy.actions.set_follower(true);
    for (std::string& record : copy.machine->records()) {
      Item item{.kind = Item::Kind::Record, .view = 0, .record = std::move(record)};
      item.done = begin.done;
      forward(part, copy, std::move(item));
    }
    copy_place(part, copy, 0);
  }

  // Copies one place after the other, through the gate.
  void copy_place(std::size_t part, Copy& copy, std::uint64_t place) {
    if (place == kPlaces) return end_repair(part, copy);
    const RangeGate::Ticket ticket = copy.gate.reserve();
    copy.gate.enter(ticket, kFile, extent_of(place), [=, this, &copy] {
      Item item{.kind = Item::Kind::Write,
                .view = 0,
                .record = {},
                .place = place,
                .value = copy.data[place]};
      item.done = [=, this, &copy, life = copy.life](bool has) {
        if (copy.life != life) return;
        copy.gate.leave(ticket);
        if (!has) return lose_follower(part, copy);
        if (copy.replica->is_repairing()) copy_place(part, copy, place + 1);
      };
      forward(part, copy, std::move(item));
    });
  }

  void end_repair(std::size_t part, Copy& copy) {
    const std::uint64_t number = copy.replica->view().number + 1;
    copy.replica->repaired(number);
    settle_all();
    Item end{.kind = Item::Kind::FillEnd, .view = number, .record = {}};
    end.done = [this, part, &copy, life = copy.life](bool has) {
      if (copy.life != life) return;
      if (!has) return lose_follower(part, copy);
      ++repairs_;
    };
    forward(part, copy, std::move(end));
  }

  // --- Faults ---
  std::array<std::pair<std::size_t, std::size_t>, 2> copies_of(std::size_t server) const {
    return {{{server, 0}, {(server + kParts - 1) % kParts, 1}}};
  }

  void start(std::size_t server) {
    for (const auto& [part, index] : copies_of(server)) {
      Copy& copy = copies_[part][index];
      if (copy.replica) continue;
      copy.replica.emplace(copy.stored, index == 0);
      new_machine(part, copy);
      copy.is_filling = false;
      for (const std::string& bytes : copy.log) {
        LogRecord record;
        ASSERT_GT(decode(bytes, record), 0U);
        copy.machine->replay(std::move(record), kBoot);
      }
    }
  }

  // Returns true if all acknowledged data is on the other server too.
  bool can_lose(std::size_t server) {
    for (const auto& [part, index] : copies_of(server)) {
      const Copy& copy = copies_[part][index];
      const Copy& peer = copies_[part][1 - index];
      if (!peer.replica) return false;
      const bool follows = copy.stored.mode == ReplicaMode::Leading &&
                           peer.stored.mode == ReplicaMode::Following &&
                           copy.stored.number == peer.stored.number;
      if (!peer.replica->serves() && !follows) return false;
    }
    return true;
  }

  void kill(std::size_t server, bool with_directory) {
    for (const auto& [part, index] : copies_of(server)) {
      Copy& copy = copies_[part][index];
      Stream& stream = streams_[part];
      const bool was_leading = copy.is_leading;
      copy.replica.reset();
      new_machine(part, copy);
      if (with_directory) {
        copy.stored = {};
        copy.log.clear();
        copy.data.clear();
      }
      if (stream.leader == index) {
        stream = {.leader = index, .sent = {}, .answered = {}};
      } else {  // unanswered messages are sent again if it returns soon
        while (!stream.answered.empty()) {
          stream.sent.push_front(std::move(stream.answered.back()));
          stream.answered.pop_back();
        }
      }
      if (was_leading) lose_requests(part);
    }
  }

  void disturb() override {
    for (std::size_t part = 0; part < kParts; ++part) deliver(part);
    for (std::size_t server = 0; server < kParts; ++server) {
      const bool is_up = copies_[server][0].replica.has_value();
      if (!is_up && chance(10)) start(server);
      if (is_up && chance(150)) kill(server, can_lose(server) && chance(2));
    }
    settle_all();
  }

  void heal() override {
    for (std::size_t server = 0; server < kParts; ++server) start(server);
    for (int i = 0; i < 5; ++i) {
      for (std::size_t part = 0; part < kParts; ++part) deliver(part);
    }
    settle_all();
  }

  void tick_parts() override {
    for (std::size_t part = 0; part < kParts; ++part) {
      for (Copy& copy : copies_[part]) {
        if (!copy.replica) continue;
        copy.replica->tick();
        if (copy.is_leading) {
          copy.machine->tick(now());
          drain(part, copy);
        } else {
          copy.machine->tick_replayed(now());
        }
      }
    }
    settle_all();
  }

  std::uint32_t lives_ = 0;
  std::size_t takeovers_ = 0;
  std::size_t repairs_ = 0;
  bool is_settling_ = false;
  std::array<std::array<Copy, 2>, kParts> copies_;
  std::array<Stream, kParts> streams_;
};

class ReplicaSeeds : public testing::TestWithParam<unsigned> {};

TEST_P(ReplicaSeeds, TransactionsSurviveKilledAndLostServers) {
  Replicas replicas(GetParam());
  replicas.run(200);
  replicas.settle();
  replicas.check();
  replicas.check_copies();
}

INSTANTIATE_TEST_SUITE_P(Transactions, ReplicaSeeds, testing::Range(0U, 100U));

TEST(SafeActions, WaitForTheDiskAndForTheFollower) {
  using Kind = Transactions::Action::Kind;
  SafeActions actions;
  const auto kinds = [&actions] {
    std::string found;
    for (const auto& action : actions.take()) {
      found += action.kind == Kind::Append ? 'a' : action.after_sync ? 's' : 'r';
    }
    return found;
  };
  actions.add(
      {{.kind = Kind::Append}, {.kind = Kind::Reply}, {.kind = Kind::Reply, .after_sync = true}});
  EXPECT_EQ(kinds(), "ar");
  EXPECT_TRUE(actions.waits_for_disk());
  actions.synced(1);
  EXPECT_EQ(kinds(), "s");
  actions.set_follower(true);
  actions.add(
      {{.kind = Kind::Append}, {.kind = Kind::Reply, .after_sync = true}, {.kind = Kind::Reply}});
  EXPECT_EQ(kinds(), "a");
  actions.synced(2);
  EXPECT_EQ(kinds(), "");
  actions.delivered(2);
  EXPECT_EQ(kinds(), "sr");
  actions.add({{.kind = Kind::Append}, {.kind = Kind::Reply}});
  EXPECT_EQ(kinds(), "a");
  actions.set_follower(false);
  EXPECT_EQ(kinds(), "r") << "the other replica is lost";
}

}  // namespace
}  // namespace score::pario
