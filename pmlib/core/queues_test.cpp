#include "pmlib/core/queues.hpp"

#include "pmlib/core/segment.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <random>
#include <unistd.h>

namespace score::pm {
namespace {

std::unique_ptr<MappedSegment> make(std::uint32_t size = 4) {
  int error = 0;
  auto segment =
      MappedSegment::create({.size = size}, {.key = 5, .generation = 2, .rank = 1}, error);
  EXPECT_EQ(error, 0);
  return segment;
}

TEST(Queues, NewContextHasNone) {
  QueueSummary queues;
  queues.received = 7;
  ASSERT_EQ(read_queues(make()->fd(), queues), 0);
  EXPECT_EQ(queues.received, 0U);
  EXPECT_TRUE(queues.received_from.empty());
  EXPECT_TRUE(queues.sending_to.empty());
}

TEST(Queues, SendersAndReceiversAreNamed) {
  const auto segment = make(100);
  SegmentHeader& h = segment->segment().header();
  h.delivered.head = 3;
  segment->segment().received(3) = {.source = 2, .next = 5};
  segment->segment().received(5) = {.source = 2};
  h.inbox_head = 510;
  h.inbox_tail = 513;
  for (const std::uint32_t place : {510U, 511U, 0U}) segment->segment().inbox(place).source = 0;
  segment->segment().peer(99).head = 1;
  QueueSummary queues;
  ASSERT_EQ(read_queues(segment->fd(), queues), 0);
  EXPECT_EQ(queues.received, 5U);
  EXPECT_EQ(queues.received_from, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(queues.sending_to, std::vector<std::uint32_t>{99});
}

TEST(Queues, ChainWithoutEndIsCutOff) {
  const auto segment = make();
  SegmentHeader& h = segment->segment().header();
  h.delivered.head = 3;
  segment->segment().received(3) = {.source = 77, .next = 3};
  h.inbox_tail = 0xffff'ffff;
  QueueSummary queues;
  ASSERT_EQ(read_queues(segment->fd(), queues), 0);
  EXPECT_LE(queues.received, h.geometry.receive_buffers + h.geometry.inbox_entries);
  EXPECT_EQ(queues.received_from, std::vector<std::uint32_t>{0}) << "there is no rank 77";
}

TEST(Queues, WhatIsNoContextIsRefused) {
  QueueSummary queues;
  EXPECT_EQ(read_queues(-1, queues), EINVAL);
  const auto segment = make();
  segment->segment().header().geometry.size = 0x7fff'ffff;
  EXPECT_EQ(read_queues(segment->fd(), queues), EINVAL);
}

TEST(Queues, RandomBytesCauseOnlyWrongNumbers) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const auto segment = make();
    auto bytes = segment->segment().bytes();
    for (int i = 0; i < 400; ++i) bytes[64 + random() % (bytes.size() - 64)] = std::byte(random());
    QueueSummary queues;
    if (read_queues(segment->fd(), queues) != 0) continue;
    for (const std::uint32_t rank : queues.sending_to) EXPECT_LT(rank, 65'536U);
  }
}

}  // namespace
}  // namespace score::pm
