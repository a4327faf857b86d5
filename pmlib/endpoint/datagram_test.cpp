// These tests check datagrams: one buffer to many ranks, outside of the go-back-N.
#include "tests/support/pmlib/test_job.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace score::pm {
namespace {

using Over = TestJob::Over;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

class Datagrams : public testing::TestWithParam<Over> {};

INSTANTIATE_TEST_SUITE_P(Devices, Datagrams, testing::Values(Over::Shmem, Over::Udp),
                         [](const auto& parameter) {
                           return parameter.param == Over::Shmem ? "Shmem" : "Udp";
                         });

TEST_P(Datagrams, OneBufferReachesEachRankOnce) {
  TestJob job(GetParam(), 4);
  const std::array<std::uint32_t, 3> ranks{1, 2, 3};
  for (const std::size_t length : {0u, 20u, 1000u}) {
    const std::string text(length, 'd');
    int error = EAGAIN;
    job.run_until([&] { return (error = job[0].send_datagram(ranks, bytes_of(text))) != EAGAIN; });
    ASSERT_EQ(error, 0);
    for (const std::uint32_t rank : ranks) {
      ReceivedMessage message;
      job.run_until([&] { return job[rank].receive(message) == 0; });
      EXPECT_EQ(message.kind, FrameKind::Datagram);
      EXPECT_EQ(message.source, 0u);
      EXPECT_EQ(message.bytes.size(), length);
      EXPECT_TRUE(std::ranges::equal(message.bytes, bytes_of(text)));
      job[rank].release(message);
    }
  }
  EXPECT_EQ(job[0].counters().datagrams_sent, 9u);
  EXPECT_EQ(job[2].counters().datagrams_received, 3u);
}

TEST_P(Datagrams, DatagramsAreNoMessagesAndKeepMessageOrder) {
  TestJob job(GetParam(), 2);
  const std::array<std::uint32_t, 1> to{1};
  job.send(0, 1, "first");
  ASSERT_EQ(job[0].send_datagram(to, bytes_of("between")), 0);
  job.send(0, 1, "second");
  EXPECT_EQ(job.receive(1), "first");
  EXPECT_EQ(job.receive(1), "between");
  EXPECT_EQ(job.receive(1), "second");
  EXPECT_EQ(job[0].counters().messages_sent, 2u);
  EXPECT_EQ(job[1].counters().messages_received, 2u);
  EXPECT_EQ(job[1].counters().bytes_received, 11u);
  job.run_until([&] { return job[0].is_quiet() && job[1].is_quiet(); });
}

TEST_P(Datagrams, BadLengthOrRankSendsNothing) {
  TestJob job(GetParam(), 2);
  const std::array<std::uint32_t, 2> wrong{1, 2};
  EXPECT_EQ(job[0].send_datagram(wrong, bytes_of("x")), EINVAL);
  const std::array<std::uint32_t, 1> right{1};
  const std::string long_text(job[0].message_bytes(1) + 1, 'l');
  EXPECT_EQ(job[0].send_datagram(right, bytes_of(long_text)), EMSGSIZE);
  EXPECT_EQ(job[0].send_datagram({}, bytes_of("x")), 0);
  EXPECT_EQ(job[0].counters().datagrams_sent, 0u);
  job[1].progress();
  ReceivedMessage message;
  EXPECT_EQ(job[1].receive(message), EAGAIN);
}

TEST(DatagramsOverFrames, DatagramsDoNotChangePeerState) {
  TestJob job(Over::Udp, 2);
  std::array<PeerState, 2> before{};
  for (std::uint32_t i = 0; i < 2; ++i) before[i] = job[i].segment().peer(1 - i);
  const std::array<std::uint32_t, 1> to{1};
  ASSERT_EQ(job[0].send_datagram(to, bytes_of("alone")), 0);
  EXPECT_EQ(job.receive(1), "alone");
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(std::memcmp(&before[i], &job[i].segment().peer(1 - i), sizeof(PeerState)), 0);
    std::int64_t timeout_us = 0;
    ASSERT_EQ(job[i].before_select(timeout_us), 0);
    EXPECT_EQ(timeout_us, -1) << "no timer runs";
    job[i].after_select();
  }
}

TEST(DatagramsOverFrames, DatagramsWithoutBufferAreDroppedAndCounted) {
  TestJob job(Over::Udp, 2);
  const std::uint32_t buffers = job[1].segment().geometry().receive_buffers;
  const std::array<std::uint32_t, 1> to{1};
  for (std::uint32_t i = 0; i < buffers + 5; ++i) {
    ASSERT_EQ(job[0].send_datagram(to, bytes_of(std::to_string(i))), 0);
    // Datagrams are sent one at a time, so that none is lost in the socket.
    const std::uint64_t seen = job[1].counters().frames_received;
    job.run_until([&] { return job[1].counters().frames_received > seen; });
  }
  EXPECT_EQ(job[1].counters().datagrams_dropped, 5u);
  for (std::uint32_t i = 0; i < buffers; ++i) EXPECT_EQ(job.receive(1), std::to_string(i));
  job.send(0, 1, "a message");
  EXPECT_EQ(job.receive(1), "a message");
}

}  // namespace
}  // namespace score::pm
