#include "gang/state/calendar.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kNow{1h};

Reservation course() {
  return {"course",     {NodeId{1}, NodeId{2}}, kNow + 10min,
          kNow + 20min, {UserId{1000}},         {"teaching"}};
}

Occupant job_of(UserId user, std::optional<Duration> bound = std::nullopt) {
  return {"", user, "", bound};
}

NodeTable three_nodes() {
  NodeTable nodes{ClusterConfig{}};
  for (std::uint32_t id = 0; id < 3; ++id) {
    EXPECT_TRUE(nodes.add(NodeId{id}, fmt::format("node{}", id)));
  }
  return nodes;
}

Calendar with(std::vector<Reservation> all, TimePoint now = kNow) {
  Calendar calendar;
  calendar.set(std::move(all), three_nodes());
  calendar.advance(now);
  return calendar;
}

TEST(Calendar, KeepsOutJobsThatReachAReservation) {
  const Calendar calendar = with({course()});
  EXPECT_TRUE(calendar.may_use(job_of(UserId{1000}, 10min), 1));
  EXPECT_FALSE(calendar.may_use(job_of(UserId{1000}, 10min + 1ns), 1));
  EXPECT_FALSE(calendar.may_use(job_of(UserId{1000}), 1)) << "no limit";
  EXPECT_TRUE(calendar.may_use(job_of(UserId{1000}), 0)) << "another node";
  EXPECT_TRUE(calendar.may_use(job_of(UserId{1000}), 9999));
}

TEST(Calendar, AdmitsJobsThatRequestItWhileInForce) {
  Calendar calendar = with({course()});
  Occupant alice = job_of(UserId{1000});
  alice.reservation = "course";
  Occupant bob = job_of(UserId{1001});
  bob.reservation = "course";
  Occupant teacher = bob;
  teacher.account = "teaching";
  EXPECT_FALSE(calendar.may_use(alice, 1)) << "it has not begun";
  EXPECT_TRUE(calendar.advance(kNow + 10min));
  EXPECT_TRUE(calendar.may_use(alice, 1));
  EXPECT_TRUE(calendar.may_use(teacher, 2));
  EXPECT_FALSE(calendar.may_use(bob, 1));
  EXPECT_FALSE(calendar.may_use(alice, 0)) << "not a node of it";
  EXPECT_FALSE(calendar.may_use(job_of(UserId{1000}, 1s), 1)) << "did not ask for it";
  EXPECT_EQ(calendar.on(1)->name, "course");
  EXPECT_EQ(calendar.on(0), nullptr);
  EXPECT_FALSE(calendar.advance(kNow + 15min));
  EXPECT_TRUE(calendar.advance(kNow + 20min));
  EXPECT_FALSE(calendar.may_use(alice, 1)) << "it has ended";
  EXPECT_TRUE(calendar.may_use(job_of(UserId{1001}), 1));
  EXPECT_EQ(calendar.find("course"), nullptr);
}

TEST(Calendar, MaintenanceIsForNoOne) {
  const Calendar calendar = with({{"m", {NodeId{0}}, kNow, kNow + 1h, {}, {}}});
  Occupant root = job_of(UserId{0}, 1s);
  EXPECT_FALSE(calendar.may_use(root, 0));
  root.reservation = "m";
  EXPECT_FALSE(calendar.may_use(root, 0));
}

TEST(Calendar, ReservedJobMustEndBeforeNextReservation) {
  const Calendar calendar =
      with({course(), {"m", {NodeId{1}}, kNow + 15min, kNow + 30min, {}, {}}}, kNow + 10min);
  Occupant alice = job_of(UserId{1000}, 6min);
  alice.reservation = "course";
  EXPECT_FALSE(calendar.may_use(alice, 1));
  EXPECT_TRUE(calendar.may_use(alice, 2));
  EXPECT_EQ(calendar.blocking(alice, 1)->name, "m");
}

TEST(Calendar, ReturnsNextChange) {
  Calendar calendar;
  EXPECT_FALSE(calendar.advance(kNow));
  EXPECT_FALSE(calendar.next_change());
  calendar.set({course()}, three_nodes());
  EXPECT_EQ(calendar.next_change(), kNow + 10min);
  EXPECT_TRUE(calendar.advance(kNow)) << "it was set";
  EXPECT_TRUE(calendar.advance(kNow + 1h)) << "begun and ended";
  EXPECT_FALSE(calendar.next_change());
}

TEST(Calendar, LongestTimeOfJobIncludesItsTurns) {
  base::ResourceRequest request;
  EXPECT_FALSE(longest_of(request, 8));
  request.scheduled_limit = 1min;
  EXPECT_EQ(longest_of(request, 8), 8min);
  request.wall_limit = 5min;
  EXPECT_EQ(longest_of(request, 8), 5min);
  request.wall_limit = Duration::zero();
  request.scheduled_limit = Duration::max();
  EXPECT_EQ(longest_of(request, 8), Duration::max());
}

}  // namespace
}  // namespace score::gang
