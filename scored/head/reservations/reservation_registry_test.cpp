#include "scored/head/reservations/reservation_registry.hpp"

#include "base/limits.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

const WallTime kNow = WallTime(24h * 365 * 50);

Booking booking(const std::string& name, std::vector<std::string> nodes, Duration from,
                Duration length) {
  Booking b;
  b.name = name;
  b.nodes = std::move(nodes);
  b.start = kNow + from;
  b.end = b.start + length;
  return b;
}

std::string problem_with(const ReservationRegistry& registry, const Booking& wanted) {
  const auto possible = registry.check(wanted, kNow);
  return possible ? "" : possible.error().context();
}

TEST(ReservationRegistry, RefusesOverlapOnANode) {
  ReservationRegistry registry;
  registry.add(booking("m", {"n1", "n2"}, 1h, 1h));
  EXPECT_EQ(problem_with(registry, booking("x", {"n0"}, 1h, 1h)), "");
  EXPECT_EQ(problem_with(registry, booking("x", {"n1"}, 2h, 1h)), "") << "right after it";
  EXPECT_EQ(problem_with(registry, booking("x", {"n1"}, 0s, 1h)), "") << "right before it";
  EXPECT_EQ(
      problem_with(registry, booking("x", {"n0", "n2"}, 90min, 1h)),
      "reservation m has n2 from " + format_wall(kNow + 1h) + " to " + format_wall(kNow + 2h));
  EXPECT_EQ(problem_with(registry, booking("m", {"n9"}, 1h, 1h)),
            "there is a reservation m already");
}

TEST(ReservationRegistry, RefusesPastTimesAndInvalidLengths) {
  const ReservationRegistry registry;
  EXPECT_EQ(problem_with(registry, booking("x", {"n0"}, -2h, 1h)),
            "the reservation would start at " + format_wall(kNow - 2h) + ", which is past");
  EXPECT_NE(problem_with(registry, booking("x", {"n0"}, -2h, 10h)), "") << "it has begun long ago";
  EXPECT_EQ(problem_with(registry, booking("x", {"n0"}, -5s, 1h)), "")
      << "a command takes some time";
  EXPECT_NE(problem_with(registry, booking("x", {"n0"}, 0s, 1ms)), "");
  EXPECT_NE(problem_with(registry, booking("x", {"n0"}, 0s, limits::kMaxReservation + 1s)), "");
  EXPECT_NE(problem_with(registry, booking("x", {"n0"}, limits::kMaxReservationAhead + 1h, 1h)),
            "");
  Booking last;
  last.start = WallTime(Duration::max() - 1h);
  last.end = WallTime(Duration::max());
  EXPECT_NE(problem_with(registry, last), "");
}

TEST(ReservationRegistry, HasALimit) {
  ReservationRegistry registry;
  for (std::size_t i = 0; i < limits::kMaxReservations; ++i) {
    registry.add(booking(registry.free_name(), {fmt::format("n{}", i)}, 1h, 1h));
  }
  EXPECT_EQ(problem_with(registry, booking("x", {"m"}, 1h, 1h)),
            "there are 1000 reservations already, which is the limit");
}

TEST(ReservationRegistry, DropsEndedReservations) {
  ReservationRegistry registry;
  EXPECT_EQ(registry.next_end(), WallTime());
  registry.add(booking("a", {"n0"}, 0s, 1h));
  registry.add(booking("b", {"n0"}, 1h, 1h));
  EXPECT_EQ(registry.next_end(), kNow + 1h);
  EXPECT_TRUE(registry.take_ended(kNow + 1h - 1ns).empty());
  const auto ended = registry.take_ended(kNow + 1h);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].name, "a");
  EXPECT_EQ(registry.find("a"), nullptr);
  EXPECT_NE(registry.find("b"), nullptr);
  EXPECT_TRUE(registry.remove("b"));
  EXPECT_FALSE(registry.remove("b"));
}

TEST(ReservationRegistry, ReturnsFreeNames) {
  ReservationRegistry registry;
  registry.add(booking("r1", {"n0"}, 0s, 1h));
  EXPECT_EQ(registry.free_name(), "r2");
  EXPECT_EQ(registry.free_name(), "r3");
}

}  // namespace
}  // namespace score::head
