// Transactions on volumes with one copy: clients vanish, servers are killed or lose power.
#include "pario/sim/transactions_world.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>

namespace score::pario {
namespace {

struct SimServer {
  std::unique_ptr<Transactions> machine;
  std::vector<std::string> log;
  std::size_t synced = 0;                          // records that survive a loss of power
  std::map<std::uint64_t, std::uint64_t> data;     // as processes see it
  std::map<std::uint64_t, std::uint64_t> on_disk;  // what a loss of power leaves
  std::uint64_t boot = 1;
  std::uint32_t life = 0;
};

// One server per part, which is killed, or loses power.
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
    servers_[key.part].data[key.place] = id;
    end_plain(key, id, plain);
  }

  void disturb() override {
    if (chance(60)) crash(pick(kParts));
  }

  void tick_parts() override {
    for (std::size_t i = 0; i < kParts; ++i) {
      servers_[i].machine->tick(now());
      drain(i);
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
  }

  bool loses_power_;
  std::uint32_t lives_ = 0;
  std::array<SimServer, kParts> servers_;
};

class Seeds : public testing::TestWithParam<unsigned> {};

TEST_P(Seeds, KilledServersAndClientsLeaveWholeTransactionsInOneOrder) {
  Cluster cluster(GetParam(), false);
  cluster.run(200);
  cluster.settle();
  cluster.check();
}

TEST_P(Seeds, StableTransactionsSurviveALossOfPower) {
  Cluster cluster(GetParam() + 1000, true);
  cluster.run(200);
  cluster.settle();
  cluster.check();
}

INSTANTIATE_TEST_SUITE_P(Transactions, Seeds, testing::Range(0U, 100U));

}  // namespace
}  // namespace score::pario
