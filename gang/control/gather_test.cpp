#include "gang/control/gather.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>

namespace score::gang {
namespace {

using namespace std::chrono_literals;
using Actions = Gather::Actions;
using Around = Gather::Around;
using Bundle = Gather::Bundle;
using Pace = Gather::Pace;

constexpr TimePoint kStart{1h};

TEST(BlockWindow, TakesEachNumberOnce) {
  BlockWindow window;
  EXPECT_TRUE(window.take(1'000));
  EXPECT_FALSE(window.take(1'000));
  EXPECT_TRUE(window.take(1'002));
  EXPECT_TRUE(window.take(1'001));
  EXPECT_FALSE(window.take(1'001));
  EXPECT_FALSE(window.take(1'000));
  EXPECT_TRUE(window.take(2'000));
  EXPECT_FALSE(window.take(1'002)) << "too old to know";
  EXPECT_TRUE(window.take(2'000 - BlockWindow::kWidth + 1));
  EXPECT_FALSE(window.take(2'000 - BlockWindow::kWidth));
}

// The members of a tree with a network of 50 us per hop. Beats are not
// simulated: a member's way up is its nearest ancestor that lives.
class Members {
 public:
  Members(std::uint32_t count, std::uint32_t fanout, unsigned loss_percent = 0)
      : tree_(count, fanout), loss_percent_(loss_percent) {
    for (Position p = 0; p < count; ++p) {
      gathers_.push_back(std::make_unique<Gather>(tree_, p, Gather::Limits{}));
    }
  }

  std::uint64_t offer(Position from, std::vector<std::string> blocks, Pace pace) {
    const std::uint64_t first = gathers_[from]->next_sequence();
    act(from, gathers_[from]->offer(std::move(blocks), pace, around(from), now_));
    return first;
  }

  void round() {
    for (Position p = 1; p < tree_.size(); ++p) {
      if (!dead_.contains(p)) offer(p, {"a", "b"}, Pace::Collected);
    }
    run();
  }

  void kill(Position p) { dead_.insert(p); }

  void set_cut(bool is_cut) { is_cut_ = is_cut; }

  void run() {
    while (!events_.empty()) {
      const auto event = events_.extract(events_.begin());
      now_ = std::max(now_, event.key());
      event.mapped()();
    }
  }

  [[nodiscard]] Gather& at(Position p) { return *gathers_[p]; }

  [[nodiscard]] TimePoint now() const { return now_; }

  [[nodiscard]] Around around(Position p) const {
    Around made;
    for (const Position above : tree_.ancestors(p)) {
      if (!dead_.contains(above) && !made.up && !is_cut_) made.up = above;
    }
    for (const Position dead : dead_) made.silent.add({dead, dead + 1});
    return made;
  }

  using Name = std::pair<Position, std::uint64_t>;
  std::multiset<Name> delivered;
  std::set<Name> confirmed, failed;
  std::map<Position, std::size_t> heard;  // bundles
  TimePoint last_delivery{};

 private:
  void act(Position self, const Actions& actions) {
    for (const auto& block : actions.deliver) {
      delivered.insert({block.from, block.sequence});
      last_delivery = now_;
    }
    for (const std::uint64_t number : actions.confirmed) confirmed.insert({self, number});
    for (const std::uint64_t number : actions.failed) failed.insert({self, number});
    for (const auto& [to, bundle] : actions.bundles) {
      send(to, [this, self, to = to, bundle = bundle] {
        ++heard[to];
        act(to, gathers_[to]->hear(self, bundle, around(to), now_));
      });
    }
    for (const auto& [to, ack] : actions.acks) {
      send(to, [this, self, to = to, ack = ack] { act(to, gathers_[to]->hear(self, ack, now_)); });
    }
    if (const auto due = gathers_[self]->next_deadline()) {
      events_.emplace(std::max(*due, now_), [this, self] {
        if (!dead_.contains(self)) act(self, gathers_[self]->advance(around(self), now_));
      });
    }
  }

  void send(Position to, const std::function<void()>& arrive) {
    if (chance_() % 100 < loss_percent_) return;
    const auto deliver = [this, to, arrive] {
      if (!dead_.contains(to)) arrive();
    };
    events_.emplace(now_ + 50us, deliver);
    if (chance_() % 10 == 0 && loss_percent_ > 0) events_.emplace(now_ + 70ms, deliver);
  }

  Tree tree_;
  unsigned loss_percent_;
  std::vector<std::unique_ptr<Gather>> gathers_;
  std::set<Position> dead_;
  bool is_cut_ = false;
  std::multimap<TimePoint, std::function<void()>> events_;
  TimePoint now_ = kStart;
  std::mt19937 chance_{7};
};

TEST(Gather, ARoundComesInOneBundlePerChildOfTheHead) {
  Members members(65, 8);
  members.round();
  EXPECT_EQ(members.delivered.size(), 128U);
  EXPECT_EQ(members.confirmed.size(), 128U);
  EXPECT_TRUE(members.failed.empty());
  EXPECT_EQ(members.heard[0], 8U);
  EXPECT_LT(members.last_delivery - kStart, 1ms) << "no member waited for one that had come";
}

TEST(Gather, AMemberThatSaysNothingDelaysTheOthersByTheWindow) {
  Members members(65, 8);
  for (Position p = 1; p < 64; ++p) members.offer(p, {"a"}, Pace::Collected);
  members.run();
  EXPECT_EQ(members.delivered.size(), 63U);
  EXPECT_GE(members.last_delivery - kStart, Gather::Limits().collect);
  EXPECT_LE(members.last_delivery - kStart, Gather::Limits().collect + 1ms);
}

TEST(Gather, ReportsOfOneMomentTravelTogetherAndSoon) {
  Members members(65, 8);
  for (Position p = 1; p < 65; ++p) members.offer(p, {"idle"}, Pace::Soon);
  members.run();
  EXPECT_EQ(members.delivered.size(), 64U);
  EXPECT_EQ(members.heard[0], 8U);
  EXPECT_LE(members.last_delivery - kStart, 3ms);
}

TEST(Gather, BigBlocksAreDividedIntoBundlesThatFit) {
  Members members(17, 16);
  const std::string big(members.at(1).most_block_bytes(), 'x');
  members.offer(1, {big, big, "small"}, Pace::Collected);
  members.offer(2, {big + "x"}, Pace::Collected);
  members.run();
  EXPECT_EQ(members.delivered.size(), 3U);
  EXPECT_EQ(members.failed.size(), 1U) << "too long";
}

TEST(Gather, WithoutAWayUpTheOriginLearnsSoAtOnce) {
  Members members(17, 4);
  members.set_cut(true);
  members.round();
  EXPECT_TRUE(members.delivered.empty());
  EXPECT_EQ(members.failed.size(), 32U);
}

TEST(Gather, AMemberThatDiesWithBlocksOfOthersLosesNone) {
  Members members(65, 4);
  const Position inner = 1;
  for (Position p = 2; p < 17; ++p) members.offer(p, {"a"}, Pace::Collected);
  members.kill(inner);  // with what has just been sent to it
  members.run();
  for (Position p = 2; p < 17; ++p) {
    const Members::Name name{p, 1};
    EXPECT_EQ(members.delivered.count(name) + members.failed.count(name), 1U) << p;
  }
  EXPECT_LE(members.now() - kStart, 300ms);
}

TEST(Gather, OnABadNetworkEachBlockCountsOnceOrItsOriginKnows) {
  Members members(200, 4, 20);
  for (int i = 0; i < 20; ++i) members.round();
  std::size_t lost = 0;
  for (Position p = 1; p < 200; ++p) {
    for (std::uint64_t number = 1; number <= 40; ++number) {
      const Members::Name name{p, number};
      EXPECT_LE(members.delivered.count(name), 1U);
      EXPECT_EQ(members.confirmed.count(name) + members.failed.count(name), 1U);
      EXPECT_GE(members.delivered.count(name), members.confirmed.count(name));
      lost += members.delivered.count(name) == 0;
    }
  }
  EXPECT_LT(lost, 8'000U / 20);
  for (Position p = 0; p < 200; ++p) EXPECT_EQ(members.at(p).bytes_held(), 0U) << p;
}

TEST(Gather, BlocksOfOthersThanThoseBelowTheSenderAreRefused) {
  Members members(65, 4);
  const Tree tree(65, 4);
  const Position other = tree.children(0)[1];
  const auto offer = [&](Position at, Position from, Position origin) {
    Bundle bundle{1, Pace::Collected, true, {{origin, 5, true, "a"}}};
    const auto actions = members.at(at).hear(from, bundle, members.around(at), kStart);
    return actions.deliver.size() + actions.acks.size();
  };
  EXPECT_EQ(offer(0, 1, other), 0U);
  EXPECT_EQ(offer(0, 1, 0), 0U);
  EXPECT_EQ(offer(0, 1, 1'000), 0U);
  EXPECT_EQ(offer(0, 1'000, 1), 0U);
  EXPECT_EQ(offer(1, 0, 1), 0U);
  EXPECT_EQ(offer(1, other, other), 0U);
  EXPECT_EQ(members.at(0).refused(), 4U);
  EXPECT_EQ(members.at(1).refused(), 2U);
  EXPECT_EQ(offer(0, 1, 2), 2U);
}

TEST(Gather, AckOfAStrangerConfirmsNothing) {
  Members members(65, 4);
  const Around around{0, {}};
  const auto sent = members.at(1).offer({"a"}, Pace::Soon, around, kStart);
  const auto late = members.at(1).advance(around, kStart + 1min);
  ASSERT_EQ(sent.bundles.size() + late.bundles.size(), 1U);
  const auto& bundle = sent.bundles.empty() ? late.bundles[0].second : sent.bundles[0].second;
  EXPECT_TRUE(members.at(1).hear(2, Gather::Ack{true, {bundle.id}}, kStart).confirmed.empty());
  EXPECT_TRUE(members.at(1).hear(0, Gather::Ack{true, {bundle.id + 1}}, kStart).confirmed.empty());
  EXPECT_EQ(members.at(1).hear(0, Gather::Ack{true, {bundle.id}}, kStart).confirmed.size(), 1U);
}

TEST(Gather, HoldsNoMoreThanItsLimit) {
  const Tree tree(400, 2);
  Gather::Limits limits;
  limits.most_bytes = 10'000;
  Gather gather(tree, 1, limits);
  const Around around{0, {}};
  const Position child = tree.children(1).front();
  for (std::uint64_t id = 1; id < 100; ++id) {
    Bundle bundle{id, Pace::Collected, true, {{child, id, false, std::string(1'000, 'x')}}};
    (void)gather.hear(child, bundle, around, kStart);
    EXPECT_LE(gather.bytes_held(), limits.most_bytes);
  }
  for (int i = 0; i < 10; ++i) (void)gather.advance(around, kStart + 1s * i);
  EXPECT_EQ(gather.bytes_held(), 0U);
}

}  // namespace
}  // namespace score::gang
