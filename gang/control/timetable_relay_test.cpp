#include "gang/control/timetable_relay.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

namespace score::gang {
namespace {

using namespace std::chrono_literals;
using Part = TimetableRelay::Part;
using Actions = TimetableRelay::Actions;

constexpr TimePoint kStart{1h};

// Stand-ins for the keyed hashes, with which the head and the member p agree about a body.
std::uint64_t seal(Position p, const std::string& body, std::uint64_t kind) {
  return std::hash<std::string>()(body) * 31 + p * kind;
}

constexpr std::uint64_t kTag = 1'000'003, kProof = 7'777'777;

TimetableRelay::Seals seals_of(Position self) {
  return {[self](const std::string& body, std::optional<std::uint64_t> tag) {
            const bool fits = tag == seal(self, body, kTag);
            return fits ? std::optional(seal(self, body, kProof)) : std::nullopt;
          },
          [](Position p, const std::string& body) { return seal(p, body, kProof); }};
}

Part part(PositionRange to, std::string body) {
  Part part;
  part.to.add(to);
  part.body = std::move(body);
  for (Position p = to.begin; p < to.end; ++p) part.tags.push_back(seal(p, part.body, kTag));
  return part;
}

// Members simulates the members of a tree with a network of 50 us per hop.
class Members {
 public:
  Members(std::uint32_t count, std::uint32_t fanout, unsigned loss_percent = 0)
      : tree_(count, fanout), loss_percent_(loss_percent) {
    for (Position p = 0; p < count; ++p) {
      relays_.emplace_back(tree_, p, TimetableRelay::Limits{}, seals_of(p));
    }
    got_.resize(count);
  }

  void publish(std::uint32_t number, const std::vector<Part>& parts) {
    act(0, relays_[0].publish(number, parts, silent_, now_));
    run();
  }

  void kill(Position p) { dead_.insert(p); }

  void set_silent(Position p) { silent_.add({p, p + 1}); }

  [[nodiscard]] const Tree& tree() const { return tree_; }

  // Returns the last part that the member received.
  [[nodiscard]] const std::string& got(Position p) const { return got_[p]; }

  std::map<std::uint32_t, Positions> missing;
  std::vector<std::uint32_t> ended;
  std::size_t sent = 0;
  std::size_t largest = 0;  // bundle, in bytes of bodies and tags
  TimePoint last_delivery{};

 private:
  void act(Position self, const Actions& actions) {
    for (const auto& body : actions.deliver) {
      if (got_[self] != body) last_delivery = now_;
      got_[self] = body;
    }
    for (const auto& [to, bundle] : actions.bundles) {
      std::size_t bytes = 0;
      for (const Part& part : bundle.parts) bytes += part.body.size() + 8 * part.tags.size();
      largest = std::max(largest, bytes);
      send(to, [this, self, to = to, bundle = bundle] {
        act(to, relays_[to].hear(self, bundle, silent_, now_));
      });
    }
    for (const auto& [to, ack] : actions.acks) {
      send(to, [this, self, to = to, ack = ack] { act(to, relays_[to].hear(self, ack, now_)); });
    }
    for (const auto& [number, some] : actions.missing) missing[number] = some;
    ended.insert(ended.end(), actions.ended.begin(), actions.ended.end());
    const auto due = relays_[self].next_deadline();
    if (due) {
      events_.emplace(*due, [this, self] { act(self, relays_[self].advance(now_)); });
    }
  }

  void send(Position to, const std::function<void()>& arrive) {
    ++sent;
    if (chance_() % 100 < loss_percent_ || dead_.contains(to)) return;
    events_.emplace(now_ + 50us, arrive);
    if (chance_() % 20 == 0 && loss_percent_ > 0) events_.emplace(now_ + 90us, arrive);
  }

  void run() {
    while (!events_.empty()) {
      auto event = events_.extract(events_.begin());
      now_ = std::max(now_, event.key());
      event.mapped()();
    }
  }

  Tree tree_;
  unsigned loss_percent_;
  std::minstd_rand chance_{1};
  std::vector<TimetableRelay> relays_;
  std::vector<std::string> got_;
  std::set<Position> dead_;
  Positions silent_;
  std::multimap<TimePoint, std::function<void()>> events_;
  TimePoint now_ = kStart;
};

TEST(TimetableRelay, DeliversEachMemberItsPart) {
  Members members(30, 3);
  members.publish(1, {part({1, 12}, "a"), part({12, 25}, "b")});
  for (Position p = 1; p < 30; ++p) {
    EXPECT_EQ(members.got(p), p < 12 ? "a" : p < 25 ? "b" : "") << p;
  }
  EXPECT_EQ(members.ended, std::vector<std::uint32_t>{1});
  EXPECT_TRUE(members.missing.empty());
  EXPECT_EQ(members.last_delivery, kStart + 150us);
}

TEST(TimetableRelay, RepeatsLostBundles) {
  Members members(200, 5, 20);
  for (std::uint32_t number = 1; number <= 200; ++number) {
    members.publish(number, {part({1, 200}, std::to_string(number))});
    const Positions& missing = members.missing[number];
    for (Position p = 1; p < 200; ++p) {
      if (!missing.contains(p)) {
        ASSERT_EQ(members.got(p), std::to_string(number));
      }
    }
  }
  EXPECT_EQ(members.ended.size(), 200U);
}

TEST(TimetableRelay, ReportsMembersBehindADeadOneAsMissing) {
  Members members(30, 3);
  const Position dead = members.tree().children(0)[1];
  members.kill(dead);
  members.publish(1, {part({1, 30}, "a")});
  const PositionRange lost = members.tree().subtree(dead);
  EXPECT_EQ(members.missing[1].ranges(), std::vector<PositionRange>{lost});
  for (Position p = 1; p < 30; ++p) EXPECT_EQ(members.got(p), lost.contains(p) ? "" : "a");
}

TEST(TimetableRelay, UntaggedOrForeignPartsAreNotDelivered) {
  Members members(30, 3);
  Part untagged = part({1, 10}, "a");
  untagged.tags.clear();
  Part foreign = part({10, 20}, "b");
  std::ranges::reverse(foreign.tags);
  members.publish(1, {untagged, foreign, part({20, 30}, "c")});
  for (Position p = 1; p < 30; ++p) EXPECT_EQ(members.got(p), p < 20 ? "" : "c") << p;
  EXPECT_EQ(members.missing[1].ranges(), (std::vector<PositionRange>{{1, 20}}));
}

TEST(TimetableRelay, TaggedPartsAreSplitToFit) {
  Members members(1'000, 2);
  const std::string body(600, 'x');
  members.publish(1, {part({1, 500}, body), part({600, 1'000}, "y")});
  for (Position p = 1; p < 1'000; ++p) {
    EXPECT_EQ(members.got(p), p < 500 ? body : p < 600 ? "" : "y") << p;
  }
  EXPECT_TRUE(members.missing.empty());
  EXPECT_LE(members.largest, TimetableRelay::Limits{}.bundle_bytes);
}

TEST(TimetableRelay, ConfirmationWithoutProofCountsAsMissing) {
  const Tree tree(10, 3);
  const Position child = tree.children(0)[0];
  TimetableRelay head(tree, 0, {}, seals_of(0));
  const auto begun = head.publish(1, {part(tree.subtree(child), "a")}, {}, kStart);
  ASSERT_EQ(begun.bundles.size(), 1U);
  const auto id = begun.bundles[0].second.id;
  const auto ended = head.hear(child, TimetableRelay::Ack{id, true, {}, 12345}, kStart);
  ASSERT_EQ(ended.missing.size(), 1U);
  EXPECT_EQ(ended.missing[0].second.ranges(), std::vector{tree.subtree(child)});
}

TEST(TimetableRelay, BypassesSilentMembers) {
  Members members(30, 3);
  const Position dead = members.tree().children(0)[1];
  members.kill(dead);
  members.set_silent(dead);
  members.publish(1, {part({1, 30}, "a")});
  EXPECT_EQ(members.missing[1].ranges(), (std::vector<PositionRange>{{dead, dead + 1}}));
  for (Position p = 1; p < 30; ++p) EXPECT_EQ(members.got(p), p == dead ? "" : "a");
  EXPECT_EQ(members.last_delivery, kStart + 150us);
}

TEST(TimetableRelay, SplitsBundlesLargerThanOneDatagram) {
  Members members(100, 100);
  std::vector<Part> parts;
  for (Position p = 1; p < 100; ++p) parts.push_back(part({p, p + 1}, std::string(500, 'a')));
  members.publish(1, parts);
  EXPECT_TRUE(members.missing.empty());

  Members small(4, 2);
  small.publish(1, {part({1, 4}, std::string(1'300, 'a')), part({2, 3}, "b")});
  EXPECT_EQ(small.missing[1].ranges(), (std::vector<PositionRange>{{1, 4}}));
  EXPECT_EQ(small.got(2), "b");
}

TEST(TimetableRelay, ManyConcurrentPublicationsAllEnd) {
  const Tree tree(4, 2);
  TimetableRelay head(tree, 0, {}, seals_of(0));
  std::size_t ended = 0;
  for (std::uint32_t number = 0; number < 200; ++number) {
    ended += head.publish(number, {part({1, 4}, "a")}, {}, kStart).ended.size();
  }
  while (const auto due = head.next_deadline()) ended += head.advance(*due).ended.size();
  EXPECT_EQ(ended, 200U);
}

TEST(TimetableRelay, RestartedMemberIsNotTakenForItsPast) {
  const Tree tree(15, 2);
  TimetableRelay below(tree, 2, {}, seals_of(2));
  const auto relayed = [&](std::uint64_t last_id, std::uint64_t from_head, const char* body) {
    TimetableRelay again(tree, 1, {}, seals_of(1), last_id);
    const Actions down = again.hear(0, {from_head, {part({2, 3}, body)}}, {}, kStart);
    return down.bundles.at(0).second;
  };
  const auto before = relayed(1'000, 1, "a");
  EXPECT_EQ(below.hear(1, before, {}, kStart).deliver, std::vector<std::string>{"a"});
  EXPECT_TRUE(below.hear(1, before, {}, kStart).deliver.empty());
  const auto after = relayed(2'000, 2, "b");
  EXPECT_EQ(below.hear(1, after, {}, kStart).deliver, std::vector<std::string>{"b"});
  TimetableRelay again(tree, 1, {}, seals_of(1),
                       3'000);  // does not accept confirmations for its past either
  (void)again.hear(0, {3, {part({2, 3}, "c")}}, {}, kStart);
  EXPECT_TRUE(again.hear(2, TimetableRelay::Ack{after.id, true, {}, 0}, kStart).acks.empty());
}

TEST(TimetableRelay, IgnoresMembersOutsideItsPath) {
  const Tree tree(15, 2);
  TimetableRelay relay(tree, 1, {}, seals_of(1));
  const TimetableRelay::Bundle bundle{7, {part({0, 15}, "a")}};
  for (const Position from : {1U, 2U, 8U, 99U}) {
    const Actions actions = relay.hear(from, bundle, {}, kStart);
    EXPECT_TRUE(actions.deliver.empty() && actions.bundles.empty() && actions.acks.empty());
  }
  const Actions actions = relay.hear(0, bundle, {}, kStart);
  EXPECT_EQ(actions.deliver.size(), 1U);
  EXPECT_EQ(actions.bundles.size(), 2U);  // only its own children
  EXPECT_TRUE(relay.hear(8, TimetableRelay::Ack{1, true, {}, 0}, kStart).acks.empty());
  EXPECT_TRUE(relay.hear(2, TimetableRelay::Ack{99, true, {}, 0}, kStart).acks.empty());
}

}  // namespace
}  // namespace score::gang
