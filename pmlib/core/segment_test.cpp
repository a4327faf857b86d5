#include "pmlib/core/segment.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <random>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace score::pm {
namespace {

constexpr SegmentIdentity kIdentity{.key = 5, .generation = 2, .rank = 1, .channel = 6};

std::unique_ptr<MappedSegment> make(Geometry geometry = {.size = 4}) {
  int error = 0;
  auto segment = MappedSegment::create(geometry, kIdentity, error);
  EXPECT_EQ(error, 0);
  return segment;
}

// Takes the first free descriptor and makes it the only one queued for peer 1.
SendDescriptor& queue_descriptor(const Segment& s) {
  SendDescriptor& d = s.descriptor(s.header().free_descriptor);
  PeerState& peer = s.peer(1);
  peer.head = peer.tail = std::exchange(s.header().free_descriptor, d.next);
  --s.header().free_descriptors;
  return d;
}

TEST(SegmentLayout, PeersCost64BytesAndBuffersHalfMegabyte) {
  const auto small = SegmentLayout::of({.size = 1000});
  const auto large = SegmentLayout::of({.size = 2000});
  ASSERT_TRUE(small && large);
  EXPECT_LE(large->descriptors - small->descriptors, 1000u * 64);
  EXPECT_LE(small->total - small->descriptors, 512u * 1024);
}

TEST(SegmentLayout, RefusesNumbersOutsideLimits) {
  const Geometry good{.size = 4};
  ASSERT_TRUE(SegmentLayout::of(good));
  for (auto member : {&Geometry::size, &Geometry::payload_bytes, &Geometry::send_buffers,
                      &Geometry::receive_buffers, &Geometry::descriptors, &Geometry::regions,
                      &Geometry::operations, &Geometry::inbox_entries, &Geometry::pool_buffers,
                      &Geometry::pool_buffer_bytes}) {
    for (const std::uint32_t bad : {0u, 0xffffffffu, 0x80000000u}) {
      Geometry g = good;
      g.*member = bad;
      EXPECT_FALSE(SegmentLayout::of(g));
    }
  }
}

TEST(Segment, NewSegmentIsValidImage) {
  const auto segment = make();
  EXPECT_EQ(validate_image(segment->segment().bytes()), 0);
}

TEST(Segment, CanBeAttachedThroughItsDescriptor) {
  const auto segment = make();
  segment->segment().peer(3).address.bytes[0] = 42;
  int error = 0;
  const auto again = MappedSegment::attach(dup(segment->fd()), error);
  ASSERT_TRUE(again) << error;
  EXPECT_EQ(again->segment().peer(3).address.bytes[0], 42);
  EXPECT_EQ(again->segment().header().rank, 1u);
}

TEST(Segment, CannotBeTruncatedUnderItsReaders) {
  const auto segment = make();
  EXPECT_NE(ftruncate(segment->fd(), 0), 0);
}

TEST(Segment, SummaryOfOtherFileFails) {
  SegmentSummary summary;
  const int empty = memfd_create("empty", 0);
  EXPECT_EQ(read_summary(empty, summary), EINVAL);
  EXPECT_NE(read_summary(-1, summary), 0);
  const auto segment = make();
  segment->segment().header().geometry.size = 0x7fffffff;
  EXPECT_EQ(read_summary(segment->fd(), summary), EINVAL);
  int error = 0;
  EXPECT_FALSE(MappedSegment::attach(empty, error));
  EXPECT_EQ(error, EINVAL);
}

TEST(Segment, FramesSentToEachRankAreRead) {
  const auto segment = make();
  segment->segment().peer(2).send.max_sent = 0xffffffff;
  segment->segment().peer(3).send.max_sent = 8;
  std::array<std::uint32_t, 4> frames{9, 9, 9, 9};
  ASSERT_EQ(read_frames_to(segment->fd(), frames), 0);
  EXPECT_EQ(frames, (std::array<std::uint32_t, 4>{0, 0, 0xffffffff, 8}));
}

TEST(Segment, FramesOfDifferentJobAreRefused) {
  const auto segment = make();
  std::array<std::uint32_t, 5> others{};
  EXPECT_EQ(read_frames_to(segment->fd(), others), EINVAL);
  EXPECT_EQ(read_frames_to(segment->fd(), std::span(others).first(3)), EINVAL);
  EXPECT_NE(read_frames_to(-1, std::span(others).first(4)), 0);
  std::vector<std::uint32_t> many(1'000);
  segment->segment().header().geometry.size = 1'000;  // a false claim of the owner
  EXPECT_EQ(read_frames_to(segment->fd(), many), EINVAL);
}

TEST(Segment, FramesSentToManyRanksAreRead) {
  const auto segment = make({.size = 1'000});
  for (std::uint32_t rank = 0; rank < 1'000; ++rank) {
    segment->segment().peer(rank).send.max_sent = rank * 3;
  }
  std::vector<std::uint32_t> frames(1'000);
  ASSERT_EQ(read_frames_to(segment->fd(), frames), 0);
  for (std::uint32_t rank = 0; rank < 1'000; ++rank) EXPECT_EQ(frames[rank], rank * 3);
}

TEST(Segment, WaitingEndsSoonAfterLastSleep) {
  const auto segment = make();
  SegmentHeader& h = segment->segment().header();
  h.state = ContextState::Waits;
  SegmentSummary summary;
  ASSERT_EQ(read_summary(segment->fd(), summary), 0);
  EXPECT_FALSE(summary.waits) << "it may be anywhere by now";
  h.sleeping = 1;
  ASSERT_EQ(read_summary(segment->fd(), summary), 0);
  EXPECT_TRUE(summary.waits);
  h.sleeping = 0;
  h.rested_us = ~std::uint64_t{0} >> 1;  // a time in the future
  ASSERT_EQ(read_summary(segment->fd(), summary), 0);
  EXPECT_FALSE(summary.waits);
}

TEST(Segment, WaitNoteIsNeverReadInPart) {
  const auto segment = make();
  WaitNote note;
  const WaitNote written{{"MPI_Recv"}, 2, 77, 1024};
  segment->segment().write_wait_note(written);
  ASSERT_EQ(read_wait_note(segment->fd(), note), 0);
  EXPECT_EQ(note, written);
  segment->segment().header().wait.version = 7;  // the owner has stopped in the middle
  EXPECT_EQ(read_wait_note(segment->fd(), note), EAGAIN);
  segment->segment().write_wait_note({{"a\nb"}, 4, -7, 1});
  ASSERT_EQ(read_wait_note(segment->fd(), note), 0);
  EXPECT_EQ(note, (WaitNote{{"a"}, WaitNote::kAny, WaitNote::kAny, 1})) << "no rank 4 of 4";
  EXPECT_NE(read_wait_note(-1, note), 0);
}

TEST(Segment, SummaryShowsStateOfOwner) {
  const auto segment = make();
  segment->segment().header().state = ContextState::Rests;
  segment->segment().header().counters.messages_sent = 17;
  SegmentSummary summary;
  ASSERT_EQ(read_summary(segment->fd(), summary), 0);
  EXPECT_TRUE(summary.idle);
  EXPECT_FALSE(summary.waits);
  segment->segment().header().state = ContextState::Waits;
  segment->segment().header().sleeping = 1;
  ASSERT_EQ(read_summary(segment->fd(), summary), 0);
  EXPECT_TRUE(summary.idle && summary.waits);
  segment->segment().header().state = static_cast<ContextState>(7);
  ASSERT_EQ(read_summary(segment->fd(), summary), 0);
  EXPECT_FALSE(summary.idle || summary.waits);
  EXPECT_EQ(summary.counters.messages_sent, 17u);
  EXPECT_EQ(summary.size, 4u);
  EXPECT_EQ(summary.channel, 6u);
}

TEST(Segment, StoppedTimeIsReadBack) {
  const auto segment = make();
  const StoppedTime written{150, 2};
  ASSERT_EQ(pwrite(segment->fd(), &written, kStoppedTimeBytes, kStoppedTimeAt),
            static_cast<ssize_t>(kStoppedTimeBytes));
  EXPECT_EQ(segment->segment().header().stopped_us.load(), 150u);
  EXPECT_EQ(segment->segment().header().resumes.load(), 2u);
  StoppedTime read;
  ASSERT_EQ(read_stopped_time(segment->fd(), read), 0);
  EXPECT_EQ(read.microseconds, 150u);
  EXPECT_EQ(read.times, 2u);
  const int empty = memfd_create("empty", MFD_CLOEXEC);
  EXPECT_EQ(read_stopped_time(empty, read), EINVAL);
  close(empty);
}

TEST(Segment, RestoreKeepsIdentityOfTarget) {
  const auto from = make();
  const auto to = make();
  from->segment().header().counters.bytes_sent = 99;
  from->segment().header().generation = 1;
  from->segment().peer(2).receive.recv = 1234;
  from->segment().peer(2).address.bytes[0] = 1;
  to->segment().peer(2).address.bytes[0] = 2;
  from->segment().header().stopped_us = 7;
  to->segment().header().stopped_us = 8;
  to->segment().header().resumes = 3;
  ASSERT_EQ(restore_image(to->segment(), from->segment().bytes()), 0);
  EXPECT_EQ(to->segment().header().generation, 2u);
  EXPECT_EQ(to->segment().header().counters.bytes_sent, 99u);
  EXPECT_EQ(to->segment().peer(2).receive.recv, 1234u);
  EXPECT_EQ(to->segment().peer(2).address.bytes[0], 2);
  EXPECT_EQ(to->segment().header().stopped_us.load(), 8u);
  EXPECT_EQ(to->segment().header().resumes.load(), 3u);
}

TEST(Segment, RestoreRefusesDifferentGeometry) {
  const auto from = make({.size = 5});
  const auto to = make();
  const std::vector<std::byte> before(to->segment().bytes().begin(), to->segment().bytes().end());
  EXPECT_EQ(restore_image(to->segment(), from->segment().bytes()), EINVAL);
  EXPECT_EQ(std::memcmp(before.data(), to->segment().bytes().data(), before.size()), 0);
}

TEST(Segment, BrokenListsAndIndicesAreRefused) {
  auto expect_invalid = [](auto break_it) {
    const auto segment = make();
    break_it(segment->segment());
    EXPECT_EQ(validate_image(segment->segment().bytes()), EINVAL);
  };
  expect_invalid([](const Segment& s) { s.header().free_descriptor = 5000; });
  expect_invalid([](const Segment& s) { s.descriptor(3).next = 1; });
  expect_invalid([](const Segment& s) { s.header().free_receive_buffer = 64; });
  expect_invalid([](const Segment& s) { s.header().delivered.head = 0; });
  expect_invalid([](const Segment& s) { s.peer(1).head = 3; });
  expect_invalid([](const Segment& s) { s.peer(1).send.queued += 1; });
  expect_invalid([](const Segment& s) { s.peer(1).send.max_sent += 9000; });
  expect_invalid([](const Segment& s) { s.header().room.used = 9; });
  expect_invalid([](const Segment& s) { s.header().room.promised = 1; });
  expect_invalid([](const Segment& s) { s.operation(0).peer = 4; });
  expect_invalid([](const Segment& s) { s.set(PeerSetId::Ready).insert(60); });
  expect_invalid([](const Segment& s) { s.region(0) = {~0ull - 5, 100, 1, 1, 0}; });
  expect_invalid([](const Segment& s) { s.header().rank = 4; });
}

TEST(Segment, OpDoneCarriesNoBytesAndValidRegion) {
  const auto segment = make();
  const Segment& s = segment->segment();
  SendDescriptor& d = queue_descriptor(s);
  PeerState& peer = s.peer(1);
  d = SendDescriptor();
  d.kind = FrameKind::OpDone;
  d.first = ++peer.send.queued;
  ASSERT_EQ(validate_image(s.bytes()), 0);
  d.local_region = s.geometry().regions;
  EXPECT_EQ(validate_image(s.bytes()), EINVAL);
  d.local_region = 0;
  d.length = 8;
  EXPECT_EQ(validate_image(s.bytes()), EINVAL);
  d.buffer = std::exchange(s.header().free_send_buffer, kNoIndex);
  EXPECT_EQ(validate_image(s.bytes()), EINVAL);
}

TEST(Segment, MemoryInPartsNeedsRegionAndMatchingFrames) {
  const auto segment = make();
  const Segment& s = segment->segment();
  SendDescriptor& d = queue_descriptor(s);
  PeerState& peer = s.peer(1);
  s.region(2) = {4096, 10'000, 1, 1, 0};
  SendDescriptor good;
  good.kind = FrameKind::Message;
  good.first = peer.send.queued + 1;
  good.length = 9'000;
  good.frames = 7;  // 1408 bytes each
  good.local_region = 2;
  good.local_offset = 1'000;
  peer.send.queued += good.frames;
  d = good;
  ASSERT_EQ(validate_image(s.bytes()), 0);
  const auto expect_invalid = [&](auto break_it) {
    d = good;
    break_it(d);
    EXPECT_EQ(validate_image(s.bytes()), EINVAL);
  };
  expect_invalid([&](SendDescriptor& bad) { bad.local_region = s.geometry().regions; });
  expect_invalid([](SendDescriptor& bad) { bad.local_region = 1; });
  expect_invalid([](SendDescriptor& bad) { bad.local_offset = 1'001; });
  expect_invalid([](SendDescriptor& bad) { bad.length = 8'448; });  // needs only six frames
  expect_invalid([](SendDescriptor& bad) { bad.length = 0xffffffff; });
  expect_invalid([](SendDescriptor& bad) { bad.kind = FrameKind::Large; });
  expect_invalid(
      [&](SendDescriptor& bad) { bad.op = static_cast<std::uint16_t>(s.geometry().operations); });
}

TEST(Segment, ValidationSurvivesRandomDamage) {
  // Validation must end and touch only the image for any bytes; asan checks this.
  std::mt19937_64 random(7);
  const auto segment = make({.size = 2,
                             .send_buffers = 4,
                             .receive_buffers = 4,
                             .descriptors = 4,
                             .inbox_entries = 8,
                             .pool_buffers = 1,
                             .pool_buffer_bytes = 256});
  const auto bytes = segment->segment().bytes();
  const std::vector<std::byte> good(bytes.begin(), bytes.end());
  for (int i = 0; i < 3000; ++i) {
    std::memcpy(bytes.data(), good.data(), good.size());
    for (int k = 0; k < 8; ++k) bytes[random() % 8192] = static_cast<std::byte>(random());
    validate_image(bytes);
    SegmentSummary summary;
    read_summary(segment->fd(), summary);
    std::array<std::uint32_t, 4> frames{};
    read_frames_to(segment->fd(), frames);
  }
}

}  // namespace
}  // namespace score::pm
