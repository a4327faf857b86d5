// These tests drive two heads and their witnesses by hand; tests/sim/heads_sim_test.cpp runs them
// under faults.
#include "gang/leadership/leadership.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace score::gang {
namespace {

using namespace std::chrono_literals;

class LeadershipTest : public testing::Test {
 protected:
  struct One {
    std::unique_ptr<Leadership> leadership;
    bool is_reachable = true;  // by the other head
    std::vector<Epoch> charges;
    std::vector<std::string> stood_down;
  };

  static constexpr std::size_t kNodes = 3;

  void start(HeadIndex head, LogPosition position, bool is_forced = false) {
    Leadership::Settings settings;
    settings.self = head;
    settings.nodes = kNodes;
    settings.is_forced = is_forced;
    heads_[head] = {};
    heads_[head].leadership = std::make_unique<Leadership>(settings, position, position.term, now_);
  }

  void stop(HeadIndex head) {
    heads_[head].leadership.reset();
    if (Leadership* other = heads_[other_head(head)].leadership.get()) other->other_gone();
  }

  void perform(HeadIndex head, LeadershipActions actions) {
    for (const auto& action : actions) {
      One& self = heads_[head];
      if (const auto* stores = std::get_if<StoreTerm>(&action)) {
        perform(head, self.leadership->term_stored(stores->term, now_));
      } else if (const auto* takes = std::get_if<TakeCharge>(&action)) {
        self.charges.push_back(takes->term);
      } else if (const auto* down = std::get_if<StandDown>(&action)) {
        self.stood_down.push_back(down->why);
      } else if (const auto* asks = std::get_if<AskWitnesses>(&action)) {
        ask(head, asks->request);
      }
    }
  }

  void ask(HeadIndex head, const LeaseRequest& request) {
    for (std::size_t i = 0; i < kNodes; ++i) {
      if (!reaches_[head][i]) continue;
      const LeaseReply reply = nodes_[i].answer(request, now_);
      perform(head, heads_[head].leadership->node_replied(i, reply, now_));
    }
    One& other = heads_[other_head(head)];
    if (!other.leadership || !is_linked_) return;
    const LeaseReply reply = other.leadership->answer(request, now_);
    perform(head, heads_[head].leadership->other_replied(reply, now_));
  }

  void run(Duration time) {
    for (const TimePoint end = now_ + time; now_ < end; now_ += 50ms) {
      for (HeadIndex head = 0; head < kHeads; ++head) {
        if (heads_[head].leadership) perform(head, heads_[head].leadership->tick(now_));
      }
    }
  }

  [[nodiscard]] bool leads(HeadIndex head) const {
    return heads_[head].leadership && heads_[head].leadership->is_in_charge(now_);
  }

  Leadership& head(HeadIndex i) { return *heads_[i].leadership; }

  // Lets the first head continue without the second, which then lacks this entry.
  void commit_alone(std::uint64_t sequence) {
    is_linked_ = false;
    head(1).other_gone();
    perform(0, head(0).follower_lost(now_));
    run(2s);
    head(0).committed(sequence);
  }

  // Starts both heads, makes the first lead, and gives the second the whole log.
  void elect_first() {
    start(0, {Epoch(3), 10});
    start(1, {Epoch(3), 10});
    run(6s);
    ASSERT_TRUE(leads(0));
    head(1).stored(head(0).position());
    perform(0, head(0).follower_current(0, now_));
    run(1s);
  }

  TimePoint now_{std::chrono::hours(1)};
  std::array<One, kHeads> heads_;
  std::array<std::array<bool, kNodes>, kHeads> reaches_{{{true, true, true}, {true, true, true}}};
  bool is_linked_ = true;
  std::array<Witness, kNodes> nodes_{Witness({}, LeaseTiming{}.lease, now_ - 1h),
                                     Witness({}, LeaseTiming{}.lease, now_ - 1h),
                                     Witness({}, LeaseTiming{}.lease, now_ - 1h)};
};

TEST_F(LeadershipTest, HeadWithLongerLogLeads) {
  start(0, {Epoch(3), 9});
  start(1, {Epoch(3), 10});
  run(10s);
  EXPECT_TRUE(leads(1));
  EXPECT_FALSE(leads(0));
  EXPECT_GT(head(1).term(), Epoch(3));
}

TEST_F(LeadershipTest, FirstHeadLeadsIfLogsAreEqual) {
  start(0, {Epoch(3), 10});
  start(1, {Epoch(3), 10});
  run(10s);
  EXPECT_TRUE(leads(0));
  EXPECT_EQ(heads_[0].charges.size(), 1U);
}

TEST_F(LeadershipTest, SingleHeadNeedsNodesThatKnowAMark) {
  start(0, {Epoch(3), 10});
  run(60s);
  EXPECT_FALSE(leads(0)) << "the other one may have a longer log";
  EXPECT_EQ(head(0).why_not(now_), "the nodes do not know that its state is complete");
  start(0, {Epoch(3), 10}, true);
  run(10s);
  EXPECT_TRUE(leads(0)) << "--take-charge";
}

TEST_F(LeadershipTest, CurrentFollowerTakesOverWithinFiveSeconds) {
  elect_first();
  const Epoch before = head(0).term();
  stop(0);
  run(5s);
  EXPECT_TRUE(leads(1));
  EXPECT_GT(head(1).term(), before);
}

TEST_F(LeadershipTest, FollowerThatLacksChangesNeverTakesOver) {
  elect_first();
  commit_alone(5);
  EXPECT_EQ(head(0).acknowledged(now_), 5U) << "the nodes have noted that the other one lacks it";
  stop(0);
  run(60s);
  EXPECT_FALSE(leads(1));
  start(0, {head(1).term(), 5});
  run(10s);
  EXPECT_TRUE(leads(0)) << "the one that has it";
}

TEST_F(LeadershipTest, AcknowledgesOnlyAfterFollowerOrNodesKnow) {
  elect_first();
  head(0).committed(1);
  EXPECT_EQ(head(0).acknowledged(now_), 0U);
  head(0).follower_stored(1);
  EXPECT_EQ(head(0).acknowledged(now_), 1U);
  head(0).committed(2);
  reaches_[0] = {true, false, false};  // a minority
  perform(0, head(0).follower_lost(now_));
  EXPECT_EQ(head(0).acknowledged(now_), 1U);
  run(1s);
  EXPECT_EQ(head(0).acknowledged(now_), 1U);
  reaches_[0] = {true, true, false};
  run(1s);
  EXPECT_EQ(head(0).acknowledged(now_), 2U);
}

// Copying the log takes time, in which the head in charge acknowledges more.
TEST_F(LeadershipTest, FollowerIsCurrentWithAllAcknowledgedChanges) {
  elect_first();
  commit_alone(5);
  ASSERT_EQ(head(0).acknowledged(now_), 5U);
  is_linked_ = true;
  run(1s);
  head(1).stored({head(0).term(), 4});
  perform(0, head(0).follower_current(4, now_));
  EXPECT_FALSE(head(0).has_current_follower());
  run(2s);
  stop(0);
  run(60s);
  EXPECT_FALSE(leads(1)) << "it lacks the fifth change";
  start(0, {head(1).term(), 5});
  run(10s);
  EXPECT_TRUE(leads(0));
}

TEST_F(LeadershipTest, LeaderWithoutWitnessesStandsDownBeforeTakeover) {
  elect_first();
  is_linked_ = false;
  reaches_[0] = {false, false, false};
  head(0).other_gone();
  head(1).other_gone();
  for (int i = 0; i < 200; ++i) {
    run(50ms);
    EXPECT_FALSE(leads(0) && leads(1));
  }
  EXPECT_TRUE(leads(1));
  EXPECT_EQ(heads_[0].stood_down.size(), 1U);
}

// Most nodes may be off; the other head is a sufficient witness.
TEST_F(LeadershipTest, TwoHeadsNeedNoNodes) {
  reaches_ = {};
  start(0, {Epoch(3), 10});
  start(1, {Epoch(3), 10});
  run(10s);
  EXPECT_TRUE(leads(0));
  perform(0, head(0).follower_current(0, now_));
  head(0).committed(1);
  head(0).follower_stored(1);
  EXPECT_EQ(head(0).acknowledged(now_), 1U);
  stop(1);
  run(5s);
  EXPECT_FALSE(leads(0)) << "alone, without a majority of the nodes";
}

TEST_F(LeadershipTest, LyingWitnessDoesNotUseUpTerms) {
  start(0, {Epoch(3), 10});
  LeaseReply lie;
  lie.term = Epoch(std::uint64_t{1} << 59U);
  lie.sent = now_;
  perform(0, head(0).node_replied(0, lie, now_));
  perform(0, head(0).node_replied(99, lie, now_));
  EXPECT_EQ(head(0).term(), Epoch(3));
}

TEST_F(LeadershipTest, FormerLeaderFollowsTheNewOne) {
  elect_first();
  head(0).committed(7);  // never acknowledged or shipped
  const LogPosition longer = head(0).position();
  stop(0);
  run(5s);
  ASSERT_TRUE(leads(1));
  start(0, longer);
  run(10s);
  EXPECT_TRUE(leads(1));
  EXPECT_TRUE(heads_[0].charges.empty());
  EXPECT_EQ(head(0).why_not(now_), "follows the other head");
}

}  // namespace
}  // namespace score::gang
