// These tests run transactions on volumes with one copy: clients vanish, servers are killed or lose
// power.
#include "pario/core/unflushed.hpp"
#include "tests/support/pario/transactions_world.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <list>
#include <map>
#include <memory>

namespace score::pario {
namespace {

// A plain write and the fsync that makes it safe consist of steps, as in the server. A loss of
// power may occur between any two steps.
struct SimSync {
  enum class Step { Begins, IsInFile, IsLogged, IsSafe };

  std::uint64_t place = 0;
  std::uint64_t id = 0;
  std::uint64_t plain = 0;
  Step step = Step::Begins;
  bool is_early = false;  // the file reaches the disk at the beginning of the fsync, or at its end
  std::vector<TransactionId> flushed{};
};

struct SimServer {
  std::unique_ptr<Transactions> machine;
  std::vector<std::string> log;
  std::size_t synced = 0;                          // records that survive a loss of power
  std::map<std::uint64_t, std::uint64_t> data;     // as seen by processes
  std::map<std::uint64_t, std::uint64_t> on_disk;  // remains after a loss of power
  Unflushed unflushed;
  std::list<SimSync> syncs;
  std::uint64_t boot = 1;
  std::uint32_t life = 0;
};

// A cluster has one server per part, which is killed, or loses power.
class Cluster final : public TransactionsWorld {
 public:
  Cluster(unsigned seed, bool loses_power)
      : TransactionsWorld(seed, loses_power), loses_power_(loses_power) {
    for (std::size_t i = 0; i < kParts; ++i) restart(i);
  }

 private:
  Transactions* machine(std::size_t part) override { return servers_[part].machine.get(); }

  std::uint32_t life(std::size_t part) override { return servers_[part].life; }

  std::uint64_t value(const Key& key) override { return servers_[key.part].data[key.place]; }

  void write(const Key& key, std::uint64_t id, std::uint64_t plain) override {
    overwrite(key, id);
    SimServer& server = servers_[key.part];
    server.data[key.place] = id;
    if (!loses_power_) return end_plain(key, id, plain);
    server.syncs.push_back({.place = key.place, .id = id, .plain = plain, .is_early = chance(2)});
  }

  bool has_plain_writes() const override { return true; }

  void disturb() override {
    if (chance(60)) crash(pick(kParts));
    const std::size_t part = pick(kParts);
    auto& syncs = servers_[part].syncs;
    if (!syncs.empty()) step(part, std::next(syncs.begin(), static_cast<long>(pick(syncs.size()))));
  }

  void step(std::size_t part, std::list<SimSync>::iterator at) {
    SimServer& server = servers_[part];
    switch (at->step) {
      case SimSync::Step::Begins:
        at->flushed = server.unflushed.of(kFile);
        if (at->is_early) server.on_disk = server.data;
        at->step = SimSync::Step::IsInFile;
        return;
      case SimSync::Step::IsInFile:
        if (!at->is_early) server.on_disk = server.data;
        append_flushed(server, at->flushed);
        at->step = SimSync::Step::IsLogged;
        return;
      case SimSync::Step::IsLogged:
        server.synced = server.log.size();
        server.unflushed.flushed(kFile, at->flushed);
        at->step = SimSync::Step::IsSafe;
        return;
      case SimSync::Step::IsSafe:
        end_plain({part, at->place}, at->id, at->plain);
        server.syncs.erase(at);
    }
  }

  static void append_flushed(SimServer& server, const std::vector<TransactionId>& ids) {
    std::string_view left;
    const std::string records = Unflushed::records(kFile, ids);
    LogRecord record;
    for (left = records; !left.empty(); left.remove_prefix(decode(left, record))) {
      server.log.emplace_back(left.substr(0, decode(left, record)));
    }
  }

  void tick_parts() override {
    for (std::size_t i = 0; i < kParts; ++i) {
      servers_[i].machine->tick(now());
      drain(i);
      auto& syncs = servers_[i].syncs;
      for (auto at = syncs.begin(); at != syncs.end();) step(i, at++);
    }
  }

  void drain(std::size_t number) override {
    SimServer& server = servers_[number];
    for (auto actions = server.machine->take_actions(); !actions.empty();
         actions = server.machine->take_actions()) {
      for (const Action& action : actions) {
        if (action.after_sync) server.synced = server.log.size();
        run_action(number, action);
      }
    }
  }

  void run_action(std::size_t number, const Action& action) {
    SimServer& server = servers_[number];
    switch (action.kind) {
      case Action::Kind::Append:
        return server.log.push_back(action.record);
      case Action::Kind::Apply:
        return apply(number, action.id);
      case Action::Kind::Reply:
        return reply(action);
      default:
        return ask_or_push(number, action);
    }
  }

  void apply(std::size_t number, TransactionId id) {
    SimServer& server = servers_[number];
    const TransactionPart* part = server.machine->part(id);
    if (part == nullptr || !server.machine->must_apply(id)) return;
    for (const WriteAccess& write : part->writes) {
      std::memcpy(&server.data[write.extent.offset / kApart], write.data.data(), 8);
    }
    applied(number, id);
    server.unflushed.applied(*part);
    server.machine->applied(id, server.boot);
  }

  void crash(std::size_t number) {
    SimServer& server = servers_[number];
    if (loses_power_) {
      const std::size_t kept = server.synced + pick(server.log.size() - server.synced + 1);
      server.log.resize(kept);
      for (const auto& [place, value] : server.data) {  // the kernel writes at any time
        if (chance(4)) server.on_disk[place] = value;
      }
      server.data = server.on_disk;
      server.syncs.clear();
      server.unflushed.clear();
      ++server.boot;
    }
    lose_requests(number);
    restart(number);
  }

  void restart(std::size_t number) {
    SimServer& server = servers_[number];
    server.life = ++lives_;
    server.machine = std::make_unique<Transactions>(static_cast<std::uint16_t>(number), lives_);
    for (const std::string& bytes : server.log) {
      LogRecord record;
      ASSERT_GT(decode(bytes, record), 0U);
      server.machine->replay(record, server.boot);
    }
    server.machine->recovered(now());
    drain(number);
    if (!chance(2)) return;
    server.log = server.machine->records();
    server.synced = server.log.size();
    server.on_disk = server.data;
    server.unflushed.clear();
  }

  bool loses_power_;
  std::uint32_t lives_ = 0;
  std::array<SimServer, kParts> servers_;
};

class Seeds : public testing::TestWithParam<unsigned> {};

TEST_P(Seeds, TransactionsSurviveKilledServersAndClients) {
  Cluster cluster(GetParam(), false);
  cluster.run(200);
  cluster.settle();
  cluster.check();
}

TEST_P(Seeds, StableTransactionsAndSyncedWritesSurvivePowerLoss) {
  Cluster cluster(GetParam() + 1000, true);
  cluster.run(200);
  cluster.settle();
  cluster.check();
}

INSTANTIATE_TEST_SUITE_P(Transactions, Seeds, testing::Range(0U, 100U));

}  // namespace
}  // namespace score::pario
