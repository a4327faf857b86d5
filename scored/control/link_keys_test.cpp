#include "scored/control/link_keys.hpp"

#include "proto/control.pb.h"
#include "scored/control/control_message.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace score::control {
namespace {

constexpr LinkKey kSecret{3, 4};
constexpr std::array<std::byte, 5> kBytes{std::byte{1}, std::byte{2}, std::byte{3}};

// With a fan-out of 2, rank 1 is above 2 and 3, and rank 4 above 5 and 6.
Roster roster_of_seven() {
  Roster roster{1, 2, {}, 2};
  for (std::uint8_t i = 1; i <= 7; ++i) roster.members.push_back({{{0, 0, 0, 0, 0, i}}, {}, true});
  return roster;
}

class Links : public testing::Test {
 protected:
  LinkKeys of(std::uint32_t rank) const { return RosterKeys(roster_, kSecret).of(rank); }

  Roster roster_ = roster_of_seven();
};

TEST_F(Links, BothEndsAgreeAboutEachDirection) {
  const LinkKeys head = of(0), inner = of(1), leaf = of(3);
  EXPECT_EQ(head.tag_to(3, kBytes), leaf.tag_from(0, kBytes));
  EXPECT_EQ(leaf.tag_to(0, kBytes), head.tag_from(3, kBytes));
  EXPECT_EQ(inner.tag_to(3, kBytes), leaf.tag_from(1, kBytes));
  EXPECT_NE(leaf.tag_to(1, kBytes), leaf.tag_from(1, kBytes));
  EXPECT_NE(leaf.tag_to(1, kBytes), leaf.tag_to(0, kBytes));
}

TEST_F(Links, OnlyMembersAboveAndBelowHaveKeys) {
  for (const auto& [rank, linked] : std::vector<std::pair<std::uint32_t, std::vector<bool>>>{
           {0, {false, true, true, true, true, true, true}},
           {1, {true, false, true, true, false, false, false}},
           {3, {true, true, false, false, false, false, false}},
           {6, {true, false, false, false, true, false, false}}}) {
    for (std::uint32_t other = 0; other < 7; ++other) {
      EXPECT_EQ(of(rank).has(other), linked[other]) << rank << " and " << other;
    }
  }
}

TEST_F(Links, NoOtherMemberHasKeyOfLink) {
  const std::uint64_t tag = of(0).tag_to(3, kBytes);
  for (const std::uint32_t thief : {1U, 2U, 4U}) {
    const LinkKeys keys = of(thief);
    for (std::uint32_t rank = 0; rank < 7; ++rank) {
      EXPECT_NE(keys.tag_to(rank, kBytes), tag) << thief;
      EXPECT_NE(keys.tag_from(rank, kBytes), tag) << thief;
    }
  }
}

TEST_F(Links, NewSecretMakesOldTagsWrong) {
  EXPECT_NE(of(0).tag_to(3, kBytes), RosterKeys(roster_, {3, 5}).of(3).tag_from(0, kBytes));
}

TEST_F(Links, OlderMembersHaveNoKeys) {
  roster_.members[1].signs = false;
  EXPECT_FALSE(of(0).has(1));
  EXPECT_FALSE(of(3).has(1));
  EXPECT_TRUE(of(3).has(0));
  EXPECT_EQ(of(3).tag_to(1, kBytes), 0U);
  EXPECT_EQ(of(3).tag_from(1, kBytes), 0U);
}

TEST_F(Links, OrderAndReceiptOfATimetableDiffer) {
  const proto::Digest digest = proto::digest_of("a");
  EXPECT_NE(order_of(digest), receipt_of(digest));
  EXPECT_NE(order_of(digest), order_of(proto::digest_of("b")));
}

TEST_F(Links, KeysSurviveTheWire) {
  const auto again = from_wire(of(1).to_wire(9));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->to_wire(9).SerializeAsString(), of(1).to_wire(9).SerializeAsString());
  EXPECT_EQ(again->tag_from(3, kBytes), of(3).tag_to(1, kBytes));
}

TEST_F(Links, MalformedKeysAreRefused) {
  for (int fault = 0; fault < 4; ++fault) {
    wire::ControlKeys message = of(1).to_wire(9);
    if (fault == 0) message.mutable_own()->pop_back();
    if (fault == 1) message.mutable_keys()->pop_back();
    if (fault == 2) message.add_ranks(9);
    if (fault == 3) message.set_ranks(1, message.ranks(0));
    EXPECT_FALSE(from_wire(message)) << fault;
  }
}

TEST(ControlTag, IsTheLastFieldOfItsMessage) {
  wire::ControlAnswer answer;
  answer.set_node_sent_ns(5);
  std::string bytes(sizeof(MessageHeader), '\0');
  bytes += answer.SerializeAsString();
  std::vector<std::byte> datagram(bytes.size() + kTagBytes);
  std::memcpy(datagram.data(), bytes.data(), bytes.size());
  EXPECT_FALSE(read_tag(std::span(datagram).first(bytes.size())));
  write_tag(77, std::span(datagram).last(kTagBytes));
  EXPECT_EQ(read_tag(datagram), 77U);
  wire::ControlAnswer read;
  ASSERT_TRUE(read.ParseFromArray(datagram.data() + sizeof(MessageHeader),
                                  static_cast<int>(datagram.size() - sizeof(MessageHeader))));
  EXPECT_EQ(read.tag(), 77U);
  EXPECT_EQ(read.node_sent_ns(), 5);
}

}  // namespace
}  // namespace score::control
