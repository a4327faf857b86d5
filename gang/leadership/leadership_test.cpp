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

  void start(HeadIndex head, LogPosition position, Override by = Override::None,
             std::optional<StoredTerms> terms = std::nullopt) {
    Leadership::Settings settings;
    settings.self = head;
    settings.witnesses = kNodes;
    settings.override_by = by;
    heads_[head] = {};
    heads_[head].leadership = std::make_unique<Leadership>(
        settings, position, terms.value_or(StoredTerms{position.term, Epoch()}), now_);
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
      perform(head, heads_[head].leadership->witness_replied(i, reply, now_));
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
    perform(0, head(0).committed(sequence, now_));
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
  EXPECT_EQ(head(0).why_not(now_), "the witnesses do not know that its state is complete");
  start(0, {Epoch(3), 10}, Override::OtherIsLost);
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
  perform(0, head(0).committed(1, now_));
  EXPECT_EQ(head(0).acknowledged(now_), 0U);
  perform(0, head(0).follower_stored(1, now_));
  EXPECT_EQ(head(0).acknowledged(now_), 1U);
  perform(0, head(0).committed(2, now_));
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
  perform(0, head(0).committed(1, now_));
  perform(0, head(0).follower_stored(1, now_));
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
  perform(0, head(0).witness_replied(0, lie, now_));
  perform(0, head(0).witness_replied(99, lie, now_));
  EXPECT_EQ(head(0).term(), Epoch(3));
  lie.term = Epoch(9);
  lie.sent = now_ + 1h;
  perform(0, head(0).witness_replied(0, lie, now_));
  EXPECT_EQ(head(0).term(), Epoch(3)) << "an answer to a question of the future";
}

// Both heads lose power; the follower comes back first, with its disk of an earlier day.
TEST_F(LeadershipTest, OlderCopyOfADiskNeverLeadsAlone) {
  elect_first();
  const LogPosition older = head(1).position();
  for (std::uint64_t change = 1; change <= 5; ++change) {
    perform(0, head(0).committed(change, now_));
    head(1).stored(head(0).position());
    perform(0, head(0).follower_stored(change, now_));
    ASSERT_EQ(head(0).acknowledged(now_), change);
  }
  const LogPosition newer = head(0).position();
  stop(0);
  stop(1);
  start(1, older);
  run(60s);
  EXPECT_FALSE(leads(1));
  EXPECT_EQ(head(1).why_not(now_),
            "it lacks changes: its state ends at change 0 of term 4, the cluster's at change 5 of "
            "term 4; start the other head, or this one with --recover to lose them");
  start(1, older, Override::OtherIsLost);
  run(60s);
  EXPECT_FALSE(leads(1)) << "--take-charge does not permit a known loss";
  start(0, newer);
  run(10s);
  EXPECT_TRUE(leads(0)) << "the one that has them";
}

TEST_F(LeadershipTest, TwoOlderCopiesLeadOnlyWithRecover) {
  elect_first();
  const LogPosition older = head(0).position();
  commit_alone(5);
  ASSERT_EQ(head(0).acknowledged(now_), 5U);
  is_linked_ = true;
  stop(0);
  stop(1);
  start(0, older);
  start(1, older);
  run(60s);
  EXPECT_FALSE(leads(0) || leads(1)) << "both lack what the witnesses know";
  EXPECT_TRUE(head(0).is_behind());
  start(0, older, Override::AcceptsLoss);
  run(10s);
  EXPECT_TRUE(leads(0));
}

TEST_F(LeadershipTest, HeadsNeverShareATerm) {
  for (HeadIndex one = 0; one < kHeads; ++one) {
    start(one, {Epoch(3), 10}, Override::AcceptsLoss);
    for (int round = 0; round < 4; ++round) {
      run(10s);
      ASSERT_TRUE(leads(one));
      EXPECT_EQ(head(one).term().value() % kHeads, one);
      start(one, {head(one).term(), 1}, Override::AcceptsLoss);
    }
    stop(one);
  }
}

TEST_F(LeadershipTest, RestartedHeadKeepsItsVote) {
  start(1, LogPosition{Epoch(3), 10}, Override::None, StoredTerms{Epoch(4), Epoch(4)});
  LeaseRequest request{0, Epoch(2), true, {}, {Epoch(3), 10}, now_};
  EXPECT_FALSE(head(1).answer(request, now_).granted) << "an earlier term";
  request.term = Epoch(4);
  EXPECT_TRUE(head(1).answer(request, now_).granted) << "the one that it voted for";
  run(3s);
  for (const LeadershipAction& action : head(1).tick(now_)) {
    const auto* stores = std::get_if<StoreTerm>(&action);
    EXPECT_TRUE(stores == nullptr || stores->term > Epoch(4));
  }
}

// It has led in a later term, of which the other head, whose clock stood still, does not know.
TEST_F(LeadershipTest, FormerLeaderGrantsNoTermBeforeItsLog) {
  start(1, LogPosition{Epoch(5), 1}, Override::None, StoredTerms{Epoch(5), Epoch(4)});
  const LeaseRequest request{0, Epoch(4), true, {}, {Epoch(4), 10}, now_};
  EXPECT_FALSE(head(1).answer(request, now_).granted);
}

// A stopped machine's clock stops, so the head believes in its leases when it continues.
TEST_F(LeadershipTest, HeadWithStoppedClockAcknowledgesNothingNew) {
  elect_first();
  perform(0, head(0).committed(1, now_));
  const auto stopped = std::move(heads_[0].leadership);
  const TimePoint before = now_;
  head(1).other_gone();
  run(10s);
  ASSERT_TRUE(leads(1));
  Leadership& old = *stopped;
  ASSERT_TRUE(old.is_in_charge(before));
  static_cast<void>(old.committed(2, before));
  const auto asked = old.tick(before + 300ms);
  const LeaseRequest& request = std::get<AskWitnesses>(asked.front()).request;
  for (std::size_t i = 0; i < kNodes; ++i) {
    const LeaseReply reply = nodes_[i].answer(request, now_);
    EXPECT_FALSE(reply.granted);
    static_cast<void>(old.witness_replied(i, reply, before + 300ms));
  }
  EXPECT_EQ(old.acknowledged(before + 300ms), 0U);
}

TEST_F(LeadershipTest, AcknowledgesWithoutWitnessesWhenFollowerHasIt) {
  elect_first();
  perform(0, head(0).committed(1, now_));
  perform(0, head(0).follower_stored(1, now_));
  EXPECT_EQ(head(0).acknowledged(now_), 1U);
  reaches_[0] = {};
  perform(0, head(0).committed(2, now_));
  perform(0, head(0).follower_stored(2, now_));
  EXPECT_EQ(head(0).acknowledged(now_), 1U) << "the witnesses should note it";
  run(4s);
  EXPECT_FALSE(head(0).has_witnesses(now_));
  EXPECT_EQ(head(0).acknowledged(now_), 2U);
}

// One of three witnesses was told last that only the other head has everything.
TEST_F(LeadershipTest, LateMarkOfOneWitnessBlocksNothing) {
  elect_first();
  reaches_[0] = {true, false, false};
  perform(0, head(0).follower_lost(now_));
  stop(0);
  run(10s);
  EXPECT_TRUE(leads(1));
}

TEST_F(LeadershipTest, FormerLeaderFollowsTheNewOne) {
  elect_first();
  perform(0, head(0).committed(7, now_));  // never acknowledged or shipped
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
