#include "scored/shared/leases/lease_wire.hpp"

#include <gtest/gtest.h>

namespace score::leases {
namespace {

using proto::FrameType;

template <class Message>
proto::InFrame frame_of(const Message& message) {
  return {proto::frame_type<Message>(), message.SerializeAsString()};
}

gang::LeaseRequest request() {
  gang::LeaseRequest out;
  out.head = 1;
  out.term = Epoch(7);
  out.wants = true;
  out.mark = {Epoch(7), 3, 2};
  out.position = {Epoch(7), 99};
  out.sent = TimePoint(Duration(12'345));
  return out;
}

TEST(LeaseWire, RequestSurvives) {
  const auto read = read_request(frame_of(to_wire(request())));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->head, 1U);
  EXPECT_EQ(read->term, Epoch(7));
  EXPECT_TRUE(read->wants);
  EXPECT_EQ(read->mark, (gang::LogMark{Epoch(7), 3, 2}));
  EXPECT_EQ(read->position, (gang::LogPosition{Epoch(7), 99}));
  EXPECT_EQ(read->sent, TimePoint(Duration(12'345)));
}

TEST(LeaseWire, ReplySurvives) {
  gang::LeaseReply reply;
  reply.granted = true;
  reply.is_free = true;
  reply.term = Epoch(8);
  reply.asked = Epoch(7);
  reply.mark = {Epoch(6), 1, 1};
  reply.position = {Epoch(5), 4};
  reply.sent = TimePoint(Duration(1));
  const auto read = read_reply(frame_of(to_wire(reply)));
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->granted && read->is_free);
  EXPECT_EQ(read->term, Epoch(8));
  EXPECT_EQ(read->asked, Epoch(7));
  EXPECT_EQ(read->mark, reply.mark);
  EXPECT_EQ(read->position, reply.position);
}

TEST(LeaseWire, NumbersOutOfRangeAreRefused) {
  auto message = to_wire(request());
  message.set_head(2);
  EXPECT_FALSE(read_request(frame_of(message)));
  message = to_wire(request());
  message.set_term(~std::uint64_t{0});
  EXPECT_FALSE(read_request(frame_of(message)));
  message = to_wire(request());
  message.mutable_mark()->set_heads(4);
  EXPECT_FALSE(read_request(frame_of(message)));
  EXPECT_FALSE(read_request({FrameType::LeaseRequest, "\xff\xff\xff"}));
}

TEST(LeaseWire, GrantSurvivesAndOtherTextIsRefused) {
  const StoredGrant grant{Epoch(9), 1, {Epoch(9), 2, 3}};
  EXPECT_EQ(*parse_grant(format_grant(grant)), grant);
  const StoredGrant none{Epoch(0), std::nullopt, {}};
  EXPECT_EQ(*parse_grant(format_grant(none)), none);
  for (const char* text : {"", "1", "1 2 3 4 5", "1 0 3 4 4", "x 0 1 1 1", "1 0 1 1 1 1",
                           "99999999999999999999 0 1 1 1"}) {
    EXPECT_FALSE(parse_grant(text)) << text;
  }
}

}  // namespace
}  // namespace score::leases
