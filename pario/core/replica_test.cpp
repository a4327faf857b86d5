#include "pario/core/replica.hpp"

#include "pario/core/range_gate.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <random>
#include <string>

namespace score::pario {
namespace {

using Mode = ReplicaMode;

bool wants(Replica& replica, Replica::Action action) {
  for (const Replica::Action one : replica.take_actions()) {
    if (one == action) return true;
  }
  return false;
}

TEST(Replica, FirstOfTwoNewReplicasLeads) {
  Replica first({}, true);
  Replica second({}, false);
  EXPECT_FALSE(first.serves());
  second.peer_is(first.view());
  EXPECT_FALSE(second.serves());
  first.peer_is(second.view());
  EXPECT_TRUE(first.serves());
  EXPECT_TRUE(wants(first, Replica::Action::Repair));
  second.begin_filling();
  second.filled(2);
  first.repaired(2);
  EXPECT_EQ(first.view(), (ReplicaView{2, Mode::Leading}));
  EXPECT_TRUE(second.follows(2));
  EXPECT_FALSE(second.follows(1));
}

TEST(Replica, FollowerTakesOverWhenAskedAndLeaderLost) {
  Replica follower({5, Mode::Following}, false);
  ASSERT_TRUE(follower.follows(5));
  follower.peer_is_gone();
  EXPECT_FALSE(follower.serves());
  follower.asked();
  EXPECT_TRUE(wants(follower, Replica::Action::Probe));
  follower.peer_is({5, Mode::Leading});
  EXPECT_FALSE(follower.serves());
  follower.asked();
  follower.peer_is_gone();
  EXPECT_TRUE(follower.serves());
  EXPECT_EQ(follower.view(), (ReplicaView{6, Mode::Alone}));
}

TEST(Replica, RestartedFollowerAsksPeerBeforeTakeover) {
  Replica follower({5, Mode::Following}, false);  // the leader may have continued alone
  follower.asked();
  follower.peer_is_gone();
  EXPECT_FALSE(follower.serves());
  follower.peer_is({5, Mode::Empty});  // it has lost everything: this is the remaining data
  EXPECT_TRUE(follower.serves());
}

TEST(Replica, ReturningLeaderAsksPeerFirst) {
  Replica overtaken({5, Mode::Leading}, true);
  EXPECT_FALSE(overtaken.serves());
  overtaken.peer_is_gone();
  EXPECT_FALSE(overtaken.serves()) << "the other one may have led alone before it was lost";
  overtaken.peer_is({6, Mode::Alone});
  EXPECT_EQ(overtaken.view().mode, Mode::Stale);
  Replica in_time({5, Mode::Leading}, true);
  in_time.peer_is({5, Mode::Following});
  EXPECT_TRUE(in_time.serves());
  EXPECT_TRUE(wants(in_time, Replica::Action::Repair)) << "the other one may lack its last changes";
}

TEST(Replica, PausedLeaderAsksPeerWithoutRepair) {
  Replica leader({1, Mode::Alone}, true);
  leader.peer_is({0, Mode::Stale});
  leader.repaired(2);
  ASSERT_TRUE(leader.serves());
  leader.stood_still();
  EXPECT_FALSE(leader.serves());
  static_cast<void>(leader.take_actions());
  leader.peer_is({2, Mode::Following});
  EXPECT_TRUE(leader.serves());
  EXPECT_FALSE(leader.is_repairing());
  leader.stood_still();
  leader.peer_is({3, Mode::Alone});
  EXPECT_FALSE(leader.serves());
  EXPECT_EQ(leader.view().mode, Mode::Stale);
}

TEST(Replica, ReplicaThatLedAloneServesAtOnce) {
  Replica alone({7, Mode::Alone}, false);
  EXPECT_TRUE(alone.serves());
  EXPECT_FALSE(alone.forwards());
  Replica stale({6, Mode::Stale}, true);
  stale.peer_is_gone();
  stale.asked();
  stale.peer_is_gone();
  EXPECT_FALSE(stale.serves());
}

TEST(Replica, ViewsSurvivePacking) {
  ReplicaView found;
  ASSERT_TRUE(unpack(pack({77, Mode::Following}), found));
  EXPECT_EQ(found, (ReplicaView{77, Mode::Following}));
  EXPECT_FALSE(unpack(0xff, found));
  EXPECT_TRUE(unpack(0, found));
}

// Two replicas lose their processes and directories one at a time. The data that a leader
// acknowledged must exist after every take-over.
class Pair {
 public:
  explicit Pair(unsigned seed) : random_(seed) {}

  void run() {
    for (int step = 0; step < 400; ++step) {
      const std::size_t one = random_() % 2;
      switch (random_() % 10) {
        case 0:
          lose(one);
          break;
        case 1:
        case 2:
          start(one);
          break;
        case 3:
          if (nodes_[one].replica) nodes_[one].replica->asked();
          break;
        default:
          write(one);
      }
      for (std::size_t i = 0; i < 2; ++i) settle(i);
    }
    start(0);
    start(1);
    for (int round = 0; round < 20; ++round) {
      for (std::size_t i = 0; i < 2; ++i) {
        if (nodes_[i].replica) nodes_[i].replica->tick();
        settle(i);
      }
    }
    EXPECT_TRUE(serves(0) != serves(1));
    EXPECT_EQ(nodes_[0].data, acknowledged_);
    EXPECT_EQ(nodes_[1].data, acknowledged_);
  }

 private:
  struct Node {
    std::optional<Replica> replica;
    ReplicaView stored;
    int data = 0;
  };

  bool serves(std::size_t i) { return nodes_[i].replica && nodes_[i].replica->serves(); }

  // Loses one only while the other one has all data, so that there is one loss at a time.
  void lose(std::size_t i) {
    Node& other = nodes_[1 - i];
    const bool is_safe = other.replica && other.data == acknowledged_ &&
                         (other.replica->serves() || other.replica->follows(other.stored.number));
    if (!nodes_[i].replica || !is_safe) return;
    nodes_[i].replica.reset();
    if (random_() % 3 == 0) nodes_[i] = {};
    if (other.replica->forwards()) {
      other.replica->follower_is_lost();
    } else {
      other.replica->asked();
    }
    settle(1 - i);
  }

  void start(std::size_t i) {
    if (!nodes_[i].replica) nodes_[i].replica.emplace(nodes_[i].stored, i == 0);
  }

  void write(std::size_t i) {
    if (!serves(i)) return;
    Node& other = nodes_[1 - i];
    ASSERT_EQ(nodes_[i].data, acknowledged_) << "serves without acknowledged data";
    ++nodes_[i].data;
    if (nodes_[i].replica->forwards()) {
      if (other.replica && other.replica->follows(nodes_[i].stored.number)) {
        other.data = nodes_[i].data;
      } else {
        nodes_[i].replica->follower_is_lost();
        settle(i);
      }
    }
    acknowledged_ = nodes_[i].data;
  }

  void settle(std::size_t i) {
    if (!nodes_[i].replica) return;
    Node& node = nodes_[i];
    Node& other = nodes_[1 - i];
    node.replica->tick();
    for (auto actions = node.replica->take_actions(); !actions.empty();
         actions = node.replica->take_actions()) {
      for (const Replica::Action action : actions) {
        if (action == Replica::Action::Store) node.stored = node.replica->view();
        if (action == Replica::Action::Probe) probe(i);
        if (action == Replica::Action::Repair && other.replica) {
          other.replica->begin_filling();
          other.stored = other.replica->view();
          other.data = node.data;
          other.replica->filled(node.replica->view().number + 1);
          other.stored = other.replica->view();
          node.replica->repaired(node.replica->view().number + 1);
        } else if (action == Replica::Action::Repair) {
          node.replica->follower_is_lost();
        }
      }
      if (++turns_ > 100'000) return;
    }
  }

  void probe(std::size_t i) {
    Node& other = nodes_[1 - i];
    if (!other.replica) return nodes_[i].replica->peer_is_gone();
    other.replica->peer_is(nodes_[i].replica->view());
    for (const Replica::Action action : other.replica->take_actions()) {
      if (action == Replica::Action::Store) other.stored = other.replica->view();
      if (action == Replica::Action::Repair) other.replica->follower_is_lost();
    }
    nodes_[i].replica->peer_is(other.replica->view());
  }

  std::mt19937 random_;
  std::array<Node, 2> nodes_;
  int acknowledged_ = 0;
  int turns_ = 0;
};

class Pairs : public testing::TestWithParam<unsigned> {};

TEST_P(Pairs, LossOfOneReplicaKeepsAcknowledgedData) {
  Pair(GetParam()).run();
}

INSTANTIATE_TEST_SUITE_P(Replica, Pairs, testing::Range(0U, 200U));

TEST(RangeGate, OverlappingChangesRunInOrder) {
  RangeGate gate;
  std::string order;
  const auto enter = [&](const Extent& extent, char name) {
    const RangeGate::Ticket ticket = gate.reserve();
    gate.enter(ticket, 5, extent, [&order, name] { order += name; });
    return ticket;
  };
  const auto a = enter({0, 10}, 'a');
  const auto b = enter({5, 10}, 'b');
  const auto c = enter({20, 10}, 'c');
  const auto d = enter({0, kMaxOffset}, 'd');
  const auto e = enter({40, 10}, 'e');
  EXPECT_EQ(order, "ac");
  gate.leave(a);
  EXPECT_EQ(order, "acb");
  gate.leave(c);
  gate.leave(b);
  EXPECT_EQ(order, "acbd") << "e came after d and waits for it";
  gate.leave(d);
  EXPECT_EQ(order, "acbde");
  gate.leave(e);
  gate.leave(e);
  EXPECT_TRUE(gate.is_empty());
}

}  // namespace
}  // namespace score::pario
