#include "scored/head/reservations/booking.hpp"

#include "base/limits.hpp"
#include "proto/client.pb.h"

#include <gtest/gtest.h>

namespace score::head {
namespace {

wire::Reservation message() {
  wire::Reservation m;
  m.set_name("course");
  m.add_nodes("node[00-02]");
  m.add_nodes("node01");
  m.set_start_wall_ns(1'000);
  m.set_end_wall_ns(2'000);
  m.add_users("alice");
  m.add_users("alice");
  m.add_user_ids(1000);
  m.add_accounts("physics");
  m.set_reason("teaching\x1b[31m");
  return m;
}

std::string problem(void (*change)(wire::Reservation&)) {
  wire::Reservation m = message();
  change(m);
  const auto read = read_booking(m);
  return read ? "" : read.error().context();
}

TEST(Booking, IsReadWithItsHostLists) {
  const auto read = read_booking(message());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->nodes, (std::vector<std::string>{"node00", "node01", "node02"}));
  EXPECT_EQ(read->users, std::vector<std::string>{"alice"});
  EXPECT_EQ(read->user_ids, std::vector{UserId(1000)});
  EXPECT_EQ(read->reason.find('\x1b'), std::string::npos);
}

TEST(Booking, IsTheSameAfterTheStore) {
  const auto read = read_booking(message());
  ASSERT_TRUE(read);
  const auto again = unpack_booking(pack_booking(*read));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *read);
  EXPECT_FALSE(unpack_booking("\xff\xff"));
}

TEST(Booking, RefusesInvalidReservations) {
  EXPECT_EQ(problem([](auto& m) { m.clear_nodes(); }), "name at least one node");
  EXPECT_NE(problem([](auto& m) { m.add_nodes("node[0-99999]"); }), "");
  EXPECT_NE(problem([](auto& m) { m.add_nodes("no de"); }), "");
  EXPECT_EQ(problem([](auto& m) { m.set_end_wall_ns(1'000); }), "the end is not after the start");
  EXPECT_EQ(problem([](auto& m) { m.set_start_wall_ns(-1); }), "a time before 1970");
  EXPECT_EQ(problem([](auto& m) { m.set_name("../x"); }).substr(0, 15), "'../x' is not a");
  EXPECT_EQ(problem([](auto& m) { m.add_users("a b"); }), "'a b' is not a user name");
  EXPECT_EQ(problem([](auto& m) { m.add_users(""); }), "'' is not a user name");
  EXPECT_EQ(problem([](auto& m) { m.add_accounts("-x"); }), "'-x' is not an account name");
  EXPECT_EQ(problem([](auto& m) {
              for (std::size_t i = 0; i < limits::kMaxReservationUsers; ++i) m.add_users("u");
            }),
            "1002 users; a reservation can have 1000 at most");
}

TEST(Booking, DescribesItself) {
  Booking booking;
  booking.nodes = {"node00", "node01"};
  const std::string times =
      "from " + format_wall(booking.start) + " to " + format_wall(booking.end);
  EXPECT_EQ(describe(booking), "node[00-01] " + times + " for maintenance");
  booking.users = {"alice", "bob"};
  booking.accounts = {"physics"};
  EXPECT_EQ(describe(booking), "node[00-01] " + times + " for alice, bob, account physics");
}

}  // namespace
}  // namespace score::head
