// Tests FrameReader, with the encoding of the header (wire.cpp).

#include "proto/frames/frame_reader.hpp"

#include "proto/frames/errc.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace score::proto {
namespace {

using base::Result;

std::string header_bytes(FrameHeader header) {
  std::string bytes(kHeaderBytes, '\0');
  encode_header(header, std::as_writable_bytes(std::span(bytes)).first<kHeaderBytes>());
  return bytes;
}

// Returns the reader's result for a whole stream.
Result<std::optional<InFrame>> read_one(std::string_view bytes, Role sender = Role::Node) {
  FrameReader reader;
  reader.feed(bytes);
  return reader.next(sender);
}

TEST(FrameHeader, EncodingIsAsDocumented) {
  FrameHeader header;
  header.type = 0x0201;
  header.length = 0x06050403;
  EXPECT_EQ(header_bytes(header), std::string("SCRD\x01\x00\x01\x02\x03\x04\x05\x06\0\0\0\0", 16));
}

TEST(FrameReader, ReturnsFramesForAnyChunkSize) {
  std::string stream;
  for (std::size_t i = 0; i < 20; ++i) {
    append_frame(stream, FrameType::TaskOutput, std::string(i * 37, 'a'));
  }
  for (std::size_t chunk : {1U, 2U, 15U, 16U, 17U, 1000U, 100'000U}) {
    FrameReader reader;
    std::size_t frames = 0;
    for (std::size_t at = 0; at < stream.size(); at += chunk) {
      reader.feed(std::string_view(stream).substr(at, chunk));
      for (;;) {
        auto frame = reader.next(Role::Node);
        ASSERT_TRUE(frame.has_value()) << frame.error().message();
        if (!*frame) break;
        EXPECT_EQ((*frame)->payload, std::string(frames * 37, 'a'));
        ++frames;
      }
    }
    EXPECT_EQ(frames, 20U) << "chunks of " << chunk;
    EXPECT_TRUE(reader.is_between_frames());
  }
}

TEST(FrameReader, AcceptsAFrameWithoutPayload) {
  auto frame = read_one(encode_frame_bytes(FrameType::ShepherdReady, ""), Role::Shepherd);
  ASSERT_TRUE(frame.has_value() && frame->has_value());
  EXPECT_TRUE((*frame)->payload.empty());
}

TEST(FrameReader, ReportsHowManyBytesItNeeds) {
  FrameReader reader;
  EXPECT_EQ(reader.wanted_bytes(), 16U);
  const std::string bytes = encode_frame_bytes(FrameType::TaskOutput, std::string(100, 'x'));
  reader.feed(bytes.substr(0, 10));
  EXPECT_EQ(reader.wanted_bytes(), 6U);
  EXPECT_FALSE(reader.is_between_frames());
  reader.feed(bytes.substr(10, 36));
  ASSERT_TRUE(reader.next(Role::Node).has_value());
  EXPECT_EQ(reader.wanted_bytes(), 70U);
}

TEST(FrameReader, ChecksTheSenderOfEachFrame) {
  FrameReader reader;
  reader.feed(encode_frame_bytes(FrameType::ClientHello, "") +
              encode_frame_bytes(FrameType::ListJobs, ""));
  ASSERT_TRUE(reader.next(Role::Anonymous).has_value());
  auto frame = reader.next(Role::OtherUser);
  ASSERT_TRUE(frame.has_value() && frame->has_value());
  EXPECT_EQ((*frame)->type, FrameType::ListJobs);
}

TEST(FrameReader, RejectsInvalidHeaders) {
  FrameHeader header;
  header.type = static_cast<std::uint16_t>(FrameType::Heartbeat);
  EXPECT_TRUE(read_one(header_bytes(header)).has_value());

  FrameHeader magic = header;
  magic.magic = 0x20544547;
  EXPECT_TRUE(read_one(header_bytes(magic)).error().is(WireErrc::BadMagic));
  FrameHeader version = header;
  version.version = 2;
  EXPECT_TRUE(read_one(header_bytes(version)).error().is(WireErrc::BadVersion));
  FrameHeader reserved = header;
  reserved.reserved = 1;
  EXPECT_TRUE(read_one(header_bytes(reserved)).error().is(WireErrc::BadFrame));
  FrameHeader unknown = header;
  unknown.type = 60'000;
  EXPECT_TRUE(read_one(header_bytes(unknown)).error().is(WireErrc::UnknownType));
  FrameHeader zero = header;
  zero.type = 0;
  EXPECT_TRUE(read_one(header_bytes(zero)).error().is(WireErrc::UnknownType));
  EXPECT_TRUE(read_one(header_bytes(header), Role::OtherUser).error().is(WireErrc::NotAllowed));
}

TEST(FrameReader, RejectsOversizeFrameBeforeItsPayload) {
  for (const FrameRule& rule : kFrameRules) {
    for (std::size_t i = 0; i < kRoleCount; ++i) {
      const Role role{static_cast<std::uint8_t>(i)};
      FrameHeader header;
      header.type = static_cast<std::uint16_t>(rule.type);
      header.length = rule.max_bytes;
      const auto within = read_one(header_bytes(header), role);
      EXPECT_EQ(within.has_value(), may_open(role, rule.type)) << rule.name;
      header.length = rule.max_bytes + 1;
      const auto beyond = read_one(header_bytes(header), role);
      ASSERT_FALSE(beyond.has_value()) << rule.name;
      const bool may = may_open(role, rule.type);
      EXPECT_TRUE(beyond.error().is(may ? WireErrc::TooLong : WireErrc::NotAllowed));
    }
  }
}

TEST(FrameReader, ErrorIsFinal) {
  FrameReader reader;
  reader.feed("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(reader.next(Role::Node).error().is(WireErrc::BadMagic));
  reader.feed(encode_frame_bytes(FrameType::Heartbeat, ""));
  EXPECT_TRUE(reader.next(Role::Node).error().is(WireErrc::BadMagic));
}

TEST(FrameReader, TruncatedStreamsGiveNoFrame) {
  const std::string bytes = encode_frame_bytes(FrameType::Prepared, "\x08\x01");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    FrameReader reader;
    reader.feed(std::string_view(bytes).substr(0, size));
    auto frame = reader.next(Role::Node);
    ASSERT_TRUE(frame.has_value());
    EXPECT_FALSE(frame->has_value()) << size << " bytes";
    EXPECT_EQ(reader.is_between_frames(), size == 0);
  }
}

TEST(FrameReader, FlippedHeaderBitIsRejectedOrStillValid) {
  const std::string bytes = encode_frame_bytes(FrameType::Prepared, "\x08\x01");
  for (std::size_t bit = 0; bit < kHeaderBytes * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    auto frame = read_one(flipped);
    if (!frame) continue;
    const bool touched_type_or_length = bit / 8 >= 6 && bit / 8 < 12;
    EXPECT_TRUE(touched_type_or_length) << "bit " << bit;
    if (*frame) {
      EXPECT_TRUE(may_open(Role::Node, (*frame)->type));
    }
  }
}

TEST(FrameReader, RandomBytesAreRejectedAtTheFirstHeader) {
  std::mt19937 random(11);
  for (int round = 0; round < 1000; ++round) {
    std::string bytes(64, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    EXPECT_FALSE(read_one(bytes).has_value());
  }
}

TEST(Encode, DoesNotCheckTheLimit) {
  auto frame = read_one(encode_frame_bytes(FrameType::Prepared, std::string(65, 'x')));
  ASSERT_FALSE(frame.has_value());
  EXPECT_TRUE(frame.error().is(WireErrc::TooLong));
  EXPECT_EQ(frame.error().message(), "Prepared of 65 bytes, limit 64: frame too long");
}

}  // namespace
}  // namespace score::proto
