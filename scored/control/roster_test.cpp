#include "scored/control/roster.hpp"

#include <gtest/gtest.h>

#include <string>

namespace score::control {
namespace {

Roster some_roster() {
  return {
      3, 0xabc, {{{{0, 0, 0, 0, 1, 2}}, {}}, {{{10, 0, 0, 1, 3, 4}}, {{10, 0, 0, 1, 5, 6}}}, {}}};
}

TEST(Roster, SurvivesTheWire) {
  const auto again = from_wire(to_wire(some_roster()));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, some_roster());
  EXPECT_TRUE(again->has(0));
  EXPECT_TRUE(again->has(1));
  EXPECT_FALSE(again->has(2));
  EXPECT_FALSE(again->has(3));
  EXPECT_TRUE(from_wire(to_wire(Roster()))) << "no daemon is in the network";
  Roster wide = some_roster();
  wide.fanout = 64;
  EXPECT_EQ(from_wire(to_wire(wide))->fanout, 64U);
  auto older = to_wire(some_roster());
  older.clear_fanout();
  EXPECT_EQ(from_wire(older)->fanout, gang::Tree::kDefaultFanout);
}

TEST(Roster, WrongSizesAreRefused) {
  auto message = to_wire(some_roster());
  message.mutable_addresses()->pop_back();
  EXPECT_FALSE(from_wire(message));
  message = to_wire(some_roster());
  message.mutable_meeting_addresses()->append(6, 'x');
  EXPECT_FALSE(from_wire(message));
  message = to_wire(some_roster());
  message.set_fanout(UINT32_MAX);
  EXPECT_FALSE(from_wire(message));
  message.clear_fanout();
  message.set_key(0);
  EXPECT_FALSE(from_wire(message));
  message.set_key(1);
  message.set_addresses(std::string(6 * 20'000, 'x'));
  message.set_meeting_addresses(message.addresses());
  EXPECT_FALSE(from_wire(message)) << "more nodes than there may be";
}

TEST(Roster, OfferHasOneAddressOrNone) {
  const MemberAddress address{{{10, 0, 0, 1, 3, 4}}, {{10, 0, 0, 1, 5, 6}}};
  EXPECT_EQ(*from_wire(to_wire(address)), address);
  EXPECT_FALSE(from_wire(to_wire(MemberAddress()))->is_member());
  wire::ControlOffer message;
  message.set_address("12345");
  EXPECT_FALSE(from_wire(message));
  message.set_address("");
  message.set_meeting_address("1234567");
  EXPECT_FALSE(from_wire(message));
}

}  // namespace
}  // namespace score::control
