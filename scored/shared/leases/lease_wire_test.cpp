#include "scored/shared/leases/lease_wire.hpp"

#include "proto/convert/random_messages.hpp"
#include "proto/leases_values_test.inc"

#include <gtest/gtest.h>

namespace score::leases {
namespace {

using proto::FrameType;

template <class Message>
proto::InFrame frame_of(const Message& message) {
  return {proto::frame_type<Message>(), message.SerializeAsString()};
}

template <class Message>
class LeaseMessages : public ::testing::Test {};

TYPED_TEST_SUITE(LeaseMessages, proto::leases_messages);

TYPED_TEST(LeaseMessages, ValidMessagesRoundTrip) {
  proto::expect_round_trips<TypeParam>();
}

TYPED_TEST(LeaseMessages, AnyMessageGivesValueOrError) {
  proto::expect_value_or_error<TypeParam>();
}

TEST(LeaseWire, NumbersOutOfRangeAreRefused) {
  wire::LeaseRequest message;
  EXPECT_TRUE(read<wire::LeaseRequest>(frame_of(message)));
  message.set_head(2);
  EXPECT_FALSE(read<wire::LeaseRequest>(frame_of(message)));
  message.set_head(1);
  message.set_term(kMostCount + 1);
  EXPECT_FALSE(read<wire::LeaseRequest>(frame_of(message)));
  message.set_term(kMostCount);
  message.mutable_mark()->set_heads(4);
  EXPECT_EQ(read<wire::LeaseRequest>(frame_of(message)).error().context(),
            "LeaseRequest.mark.heads is 4, must be 0 ... 3");
  EXPECT_FALSE(read<wire::LeaseRequest>({FrameType::LeaseRequest, "\xff\xff\xff"}));
}

TEST(LeaseWire, GrantSurvivesAndOtherTextIsRefused) {
  const StoredGrant grant{Epoch(9), 1, {Epoch(9), 2, 3, {Epoch(8), 4}, {~0ULL, 5}}};
  EXPECT_EQ(*parse_grant(format_grant(grant)), grant);
  const StoredGrant none{Epoch(0), std::nullopt, {}};
  EXPECT_EQ(*parse_grant(format_grant(none)), none);
  for (const char* text :
       {"", "1", "1 0 1 1 1", "1 2 3 4 5 6 7 8 9", "1 0 3 4 4 1 1 1 1", "x 0 1 1 1 1 1 1 1",
        "1 0 1 1 1 1 1 1 1 1", "1 0 1 1 1 x 1 1 1", "99999999999999999999 0 1 1 1 1 1 1 1"}) {
    EXPECT_FALSE(parse_grant(text)) << text;
  }
}

}  // namespace
}  // namespace score::leases
