// Two heads that reach each other only by etcd, which is slow, loses messages and carries out
// requests late. Processes stop and restart. See docs/adr/0138.
#include "scored/head/etcd/etcd_witness.hpp"

#include "gang/leadership/leadership.hpp"
#include "scored/shared/leases/lease_wire.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <random>

namespace score::head::etcd {
namespace {

constexpr TimePoint kStart(1h);
constexpr Duration kLease = gang::LeaseTiming().lease;

KeyState key_with(std::uint64_t revision, std::optional<gang::HeadIndex> holder, Epoch term) {
  gang::LogMark mark;
  mark.term = Epoch(2);
  mark.version = 1;
  mark.heads = 3;
  return {revision, leases::format_grant({term, holder, mark})};
}

gang::LeaseRequest wish(gang::HeadIndex head, std::uint64_t term) {
  gang::LeaseRequest request;
  request.head = head;
  request.term = Epoch(term);
  request.wants = true;
  return request;
}

TEST(EtcdWitness, OtherHeadWaitsFromTheLastRenewal) {
  EtcdWitness witness(kLease);
  ASSERT_TRUE(witness.found(key_with(5, 0, Epoch(4)), kStart));
  EXPECT_FALSE(witness.propose(wish(1, 5), kStart + kLease - 1ms));
  ASSERT_TRUE(witness.found(key_with(5, 0, Epoch(4)), kStart + 1s)) << "the same revision";
  EXPECT_TRUE(witness.propose(wish(1, 5), kStart + kLease));
  ASSERT_TRUE(witness.found(key_with(6, 0, Epoch(4)), kStart + 2s)) << "a renewal";
  EXPECT_FALSE(witness.propose(wish(1, 5), kStart + 2s + kLease - 1ms));
  EXPECT_TRUE(witness.propose(wish(1, 5), kStart + 2s + kLease));
}

TEST(EtcdWitness, HolderRenewsAtTheRevisionItStored) {
  EtcdWitness witness(kLease);
  ASSERT_TRUE(witness.found(key_with(5, 0, Epoch(4)), kStart));
  const auto first = witness.propose(wish(0, 4), kStart);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->revision, 5U);
  EXPECT_TRUE(witness.stored(*first, 9).granted);
  EXPECT_EQ(witness.propose(wish(0, 4), kStart)->revision, 9U);
}

TEST(EtcdWitness, AnswerWithoutChangeGrantsNothing) {
  EtcdWitness witness(kLease);
  ASSERT_TRUE(witness.found(key_with(5, 0, Epoch(4)), kStart));
  EXPECT_FALSE(witness.answer(wish(0, 4), kStart).granted);
  EXPECT_TRUE(witness.answer(wish(0, 4), kStart).is_free);
  EXPECT_FALSE(witness.answer(wish(1, 5), kStart).is_free);
}

TEST(EtcdWitness, EmptyKeyCannotVouch) {
  EtcdWitness witness(kLease);
  ASSERT_TRUE(witness.found({}, kStart));
  EXPECT_EQ(witness.answer(wish(0, 2), kStart + kLease).mark.term, Epoch());
  EXPECT_EQ(witness.propose(wish(0, 2), kStart + kLease)->revision, 0U);
}

TEST(EtcdWitness, StrangeValueIsRefused) {
  EtcdWitness witness(kLease);
  ASSERT_TRUE(witness.found(key_with(5, 0, Epoch(4)), kStart));
  EXPECT_FALSE(witness.found({6, "someone's"}, kStart));
  EXPECT_FALSE(witness.is_known());
}

// ---- two heads
// -----------------------------------------------------------------------------------

class World {
 public:
  explicit World(std::uint64_t seed) : chance_(seed) {
    for (gang::HeadIndex i = 0; i < 2; ++i) boot(i);
    at(100ms, [this] { ship(); });
    at(1s, [this] { harm(); });
  }

  void run(Duration duration) {
    for (const TimePoint end = now_ + duration; !events_.empty() && now_ < end;) {
      auto event = events_.extract(events_.begin());
      now_ = event.key();
      event.mapped()();
      check();
    }
  }

  int elections = 0;
  std::uint64_t acknowledged = 0;

 private:
  struct Head {
    std::optional<gang::Leadership> leadership;
    EtcdWitness witness{kLease};
    std::optional<gang::LeaseRequest> waiting;
    gang::LogPosition disk;
    Epoch term;
    std::uint64_t life = 0;     // changes with each restart
    std::uint64_t request = 0;  // in flight
    TimePoint stopped_until{};
  };

  Duration any(Duration most) {
    return Duration(std::uniform_int_distribution<Duration::rep>(0, most.count())(chance_));
  }

  bool is_rare(int of) { return std::uniform_int_distribution<int>(1, of)(chance_) == 1; }

  void at(Duration later, std::function<void()> what) { events_.emplace(now_ + later, what); }

  // Runs in the head's process: later if it is stopped, and never if it was killed.
  void in(gang::HeadIndex i, Duration later, std::function<void()> what) {
    at(later, [=, this, life = heads_[i].life] {
      Head& head = heads_[i];
      if (head.life != life) return;
      if (now_ < head.stopped_until) return in(i, head.stopped_until - now_ + any(5ms), what);
      what();
    });
  }

  void boot(gang::HeadIndex i) {
    Head& head = heads_[i];
    ++head.life;
    gang::Leadership::Settings settings;
    settings.self = i;
    settings.witnesses = 1;
    head.leadership.emplace(settings, head.disk, gang::StoredTerms{head.term, {}}, now_);
    head.witness = EtcdWitness(kLease);
    head.waiting.reset();
    in(i, any(500ms), [this, i] { tick(i); });
    in(i, any(100ms), [this, i] { step(i); });
  }

  void tick(gang::HeadIndex i) {
    perform(i, heads_[i].leadership->tick(now_));
    in(i, std::max(heads_[i].leadership->next_deadline() - now_, Duration(1ms)),
       [this, i] { tick(i); });
  }

  void perform(gang::HeadIndex i, const gang::LeadershipActions& actions) {
    Head& head = heads_[i];
    for (const auto& action : actions) {
      if (const auto* ask = std::get_if<gang::AskWitnesses>(&action)) head.waiting = ask->request;
      if (const auto* store = std::get_if<gang::StoreTerm>(&action)) {
        head.term = store->term;
        in(i, any(20ms), [this, i, term = store->term] {
          perform(i, heads_[i].leadership->term_stored(term, now_));
        });
      }
      if (const auto* charge = std::get_if<gang::TakeCharge>(&action)) {
        EXPECT_GE(head.disk, acknowledged_) << "an acknowledged change is lost";
        head.disk = {charge->term, 0};
        ++elections;
      }
    }
  }

  // Does what EtcdLease::run() does.
  void step(gang::HeadIndex i) {
    Head& head = heads_[i];
    std::optional<EtcdWitness::Proposal> proposal;
    const auto request = std::exchange(head.waiting, std::nullopt);
    if (request && head.witness.is_known()) proposal = head.witness.propose(*request, now_);
    const std::uint64_t number = ++head.request;
    in(i, 700ms, [this, i, number] { again(i, number); });
    at(delay(), [=, this] {
      if (is_rare(20)) return;
      KeyState found = key_;
      bool is_stored = false;
      if (proposal && proposal->revision == key_.revision) {
        found = key_ = {key_.revision + 1 + static_cast<unsigned>(is_rare(3)), proposal->value};
        is_stored = true;
      }
      if (!is_rare(20))
        in(i, delay(), [=, this] { answered(i, number, request, proposal, is_stored, found); });
    });
  }

  void again(gang::HeadIndex i, std::uint64_t number) {
    if (heads_[i].request == number) step(i);
  }

  void answered(gang::HeadIndex i, std::uint64_t number,
                const std::optional<gang::LeaseRequest>& request,
                const std::optional<EtcdWitness::Proposal>& proposal, bool is_stored,
                const KeyState& found) {
    Head& head = heads_[i];
    if (head.request != number) return;
    std::optional<gang::LeaseReply> reply;
    if (is_stored) {
      reply = head.witness.stored(*proposal, found.revision);
    } else {
      ASSERT_TRUE(head.witness.found(found, now_));
      if (request && proposal) head.waiting = request;  // it tries again
      if (request && !proposal) reply = head.witness.answer(*request, now_);
    }
    if (reply) perform(i, head.leadership->witness_replied(0, *reply, now_));
    const bool is_busy = head.waiting.has_value();
    ++head.request;
    in(i, is_busy ? Duration(1ms) : any(100ms), [this, i] { step(i); });
  }

  Duration delay() { return is_rare(15) ? any(4s) : any(30ms); }

  // The head in charge makes a change, and the other one stores its log if it is reached.
  void ship() {
    for (gang::HeadIndex i = 0; i < 2; ++i) {
      Head& leader = heads_[i];
      Head& follower = heads_[1 - i];
      if (now_ < leader.stopped_until || !leader.leadership->is_in_charge(now_)) continue;
      ++leader.disk.sequence;
      perform(i, leader.leadership->committed(leader.disk.sequence, now_));
      const bool is_there = now_ >= follower.stopped_until && now_ >= cut_until_ &&
                            follower.leadership->role() == gang::LeadershipRole::Follower;
      if (is_there) {
        follower.disk = leader.disk;
        follower.leadership->stored(follower.disk);
        perform(i, leader.leadership->follower_current(leader.disk.sequence, now_));
      } else {
        perform(i, leader.leadership->follower_lost(now_));
      }
      const std::uint64_t reached = leader.leadership->acknowledged(now_);
      if (reached > 0) acknowledged_ = std::max(acknowledged_, {leader.disk.term, reached});
      acknowledged = std::max(acknowledged, acknowledged_.sequence);
    }
    at(50ms, [this] { ship(); });
  }

  void harm() {
    const gang::HeadIndex i = is_rare(2) ? 0 : 1;
    switch (std::uniform_int_distribution<int>(0, 3)(chance_)) {
      case 0:
        heads_[i].stopped_until = now_ + any(6s);
        break;
      case 1:
        if (now_ >= heads_[i].stopped_until) boot(i);
        break;
      case 2:
        cut_until_ = now_ + any(4s);
        break;
      default:
        break;
    }
    at(1s + any(5s), [this] { harm(); });
  }

  // A stopped process answers nothing, but it must not go on as the head in charge either.
  void check() {
    const bool both =
        heads_[0].leadership->is_in_charge(now_) && heads_[1].leadership->is_in_charge(now_);
    EXPECT_FALSE(both) << "both heads are in charge";
  }

  std::mt19937_64 chance_;
  TimePoint now_ = kStart;
  std::multimap<TimePoint, std::function<void()>> events_;
  std::array<Head, 2> heads_;
  KeyState key_ = key_with(1, std::nullopt, Epoch(0));
  gang::LogPosition acknowledged_;
  TimePoint cut_until_{};
};

TEST(EtcdWitness, TwoHeadsNeverLeadAtOnce) {
  int elections = 0;
  for (std::uint64_t seed = 1; seed <= 100 && !testing::Test::HasFailure(); ++seed) {
    World world(seed);
    SCOPED_TRACE(seed);
    world.run(120s);
    elections += world.elections;
    EXPECT_GT(world.acknowledged, 0U);
  }
  EXPECT_GT(elections, 500);
}

}  // namespace
}  // namespace score::head::etcd
