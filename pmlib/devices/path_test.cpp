// These tests check how the size that a path carries is found, lost and found again. The first ones
// check the decisions alone, the others run two channels over a simulated path.
#include "pmlib/channel/channel.hpp"
#include "pmlib/devices/path_device.hpp"
#include "pmlib/devices/path_size.hpp"
#include "pmlib/wire/frame_fields.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

namespace score::pm {
namespace {

constexpr std::size_t kFloor = 1472, kCeiling = 9000;

// Asked is a peer that answers, over a path that carries `mtu` bytes.
class Asked {
 public:
  PathSize size{{kFloor, kCeiling}};
  std::size_t mtu = kCeiling;
  bool is_away = false;
  unsigned probes = 0;
  std::set<unsigned> lost;  // numbers of the lost probes, counted from 0

  void turns(Microseconds us) {
    for (const Microseconds end = now_ + us; !time_reached(now_, end); now_ += 1000) {
      const auto probe = size.on_turn(now_);
      if (probe.bytes == 0) continue;
      const bool arrives = probe.bytes <= mtu && lost.erase(probes) == 0;
      ++probes;
      if (is_away) continue;
      if (arrives) size.on_answer(probe.number, now_ + 100);
      size.on_answer(probe.number + 1, now_ + 120);
    }
  }

 private:
  Microseconds now_ = 0u - 3'000'000;  // time wraps during the test
};

TEST(PathSize, LargestSizeIsProbedFirst) {
  Asked path;
  EXPECT_EQ(path.size.limit(), kFloor);
  path.turns(5000);
  EXPECT_EQ(path.size.limit(), kCeiling);
  path.turns(200'000'000);
  EXPECT_EQ(path.probes, 1u);
}

TEST(PathSize, PassingSizeIsFoundWithinFewBytes) {
  for (const std::size_t mtu : {1472u, 1500u, 4000u, 4352u, 8999u}) {
    Asked path;
    path.mtu = mtu;
    path.turns(3'000'000);
    EXPECT_LE(path.size.limit(), mtu);
    EXPECT_GE(path.size.limit() + 16, mtu);
    EXPECT_LT(path.probes, 40u);
    const unsigned probes = path.probes;
    path.turns(50'000'000);
    EXPECT_EQ(path.probes, probes) << "the search has an end";
  }
}

TEST(PathSize, SomeLostProbesAreNoLimit) {
  Asked path;
  path.lost = {0, 1};
  path.turns(200'000);
  EXPECT_EQ(path.size.limit(), kCeiling);
}

TEST(PathSize, SilentPeerDoesNotChangeSize) {
  Asked path;
  path.is_away = true;
  path.turns(100'000'000);
  EXPECT_EQ(path.size.limit(), kFloor);
  EXPECT_LT(path.probes, 120u) << "asked ever more seldom";
  path.is_away = false;
  path.turns(1'100'000);
  EXPECT_EQ(path.size.limit(), kCeiling);
}

TEST(PathSize, OldAnswersAreIgnored) {
  PathSize size({kFloor, kCeiling});
  const auto first = size.on_turn(1000);
  size.on_answer(first.number - 2, 1100);
  size.on_answer(first.number + 2, 1100);
  EXPECT_EQ(size.limit(), kFloor);
}

TEST(PathSize, SuspicionKeepsFramesSmallUntilProbePasses) {
  Asked path;
  path.turns(5000);
  path.size.on_suspicion();
  EXPECT_EQ(path.size.limit(), kFloor);
  path.turns(5000);
  EXPECT_EQ(path.size.limit(), kCeiling) << "the path was not to blame";
  path.mtu = 2000;
  path.size.on_suspicion();
  path.turns(3'000'000);
  EXPECT_LE(path.size.limit(), 2000u);
  EXPECT_GE(path.size.limit() + 16, 2000u);
}

TEST(PathSize, ImprovedPathIsFoundAfterMinute) {
  Asked path;
  path.mtu = 2000;
  path.turns(3'000'000);
  path.mtu = kCeiling;
  path.turns(30'000'000);
  EXPECT_LE(path.size.limit(), 2000u);
  path.turns(40'000'000);
  EXPECT_GE(path.size.limit() + 16, kCeiling);
}

// --- over a path -------------------------------------------------------------------------------

struct Path {
  std::size_t mtu = 9000;                                       // bytes of a frame
  std::array<std::deque<std::vector<std::byte>>, 2> under_way;  // by receiver
  unsigned swallowed = 0, largest = 0;
  bool refuses = false;  // refuses too large frames as if its queue were full
};

class PathEnd final : public PacketDevice {
 public:
  PathEnd(Path& path, unsigned rank) : path_(path), rank_(rank), fd_(eventfd(0, EFD_CLOEXEC)) {}

  ~PathEnd() override { close(fd_); }

  std::size_t send(const PeerAddress&, std::span<const FrameOut> frames) override {
    std::size_t sent = 0;
    for (const FrameOut& frame : frames) {
      if (path_.refuses && frame.size() > path_.mtu) return sent;
      ++sent;
      std::vector<std::byte> bytes(frame.head.begin(), frame.head.end());
      bytes.insert(bytes.end(), frame.body.begin(), frame.body.end());
      if (bytes.size() > path_.mtu) {
        ++path_.swallowed;
      } else {
        path_.largest = std::max(path_.largest, static_cast<unsigned>(bytes.size()));
        path_.under_way[1 - rank_].push_back(std::move(bytes));
      }
    }
    return frames.size();
  }

  std::size_t receive(FrameSink& sink, std::size_t limit) override {
    auto& mine = path_.under_way[rank_];
    std::size_t n = 0;
    for (; n < limit && !mine.empty(); ++n) {
      const auto frame = std::move(mine.front());
      mine.pop_front();
      sink.on_frame(frame);
    }
    return n;
  }

  int poll_fd() const override { return fd_; }

  std::size_t frame_bytes() const override { return 8048; }

 private:
  Path& path_;
  unsigned rank_;
  int fd_;
};

class TurnClock final : public JobClock {
 public:
  Microseconds now() override { return now_us; }

  Microseconds now_us = 1000;
};

class OverAPath : public testing::TestWithParam<FrameAuth> {
 protected:
  OverAPath() {
    for (std::uint32_t i = 0; i < 2; ++i) {
      Geometry geometry;
      geometry.size = 2;
      geometry.payload_bytes = 8000;
      int error = 0;
      contexts_[i] = MappedSegment::create(
          geometry, {.key = 5, .rank = i, .window = 64, .auth = GetParam()}, error);
      EXPECT_EQ(error, 0);
      const Segment segment = contexts_[i]->segment();
      segment.peer(1 - i).route = Route::Packet;
      devices_[i] = std::make_unique<PathDevice>(segment, std::make_unique<PathEnd>(path, i), 0,
                                                 [this] { return clock_.now_us; });
      channels_[i] = std::make_unique<Channel>(segment, *devices_[i], clock_, ChannelOptions());
    }
  }

  Path path;

  // Rank 0 sends `count` numbered messages of `bytes` each; rank 1 receives them in order and
  // whole.
  void expect_messages(std::uint32_t count, std::uint32_t bytes) {
    std::uint32_t sent = 0, received = 0;
    for (int turn = 0; turn < 400'000 && received < count; ++turn) {
      std::byte* buffer = nullptr;
      if (sent < count && channels_[0]->get_send_buffer(1, bytes, &buffer) == 0) {
        std::memset(buffer, static_cast<int>(sent % 251), bytes);
        std::memcpy(buffer, &sent, sizeof sent);
        ASSERT_EQ(channels_[0]->send(), 0);
        ++sent;
      }
      ReceivedMessage message;
      while (channels_[1]->received().receive(message)) {
        std::uint32_t number = 0;
        std::memcpy(&number, message.bytes.data(), sizeof number);
        ASSERT_EQ(number, received);
        ASSERT_EQ(message.bytes.size(), bytes);
        for (std::size_t i = sizeof number; i < bytes; ++i) {
          ASSERT_EQ(message.bytes[i], static_cast<std::byte>(number % 251));
        }
        ++received;
        channels_[1]->received().release(message.ticket);
      }
      for (auto& channel : channels_) channel->progress();
      clock_.now_us += 50;
    }
    ASSERT_EQ(received, count);
  }

  std::size_t limit() const { return devices_[0]->limit(1); }

  TurnClock clock_;
  std::array<std::unique_ptr<MappedSegment>, 2> contexts_;
  std::array<std::unique_ptr<PathDevice>, 2> devices_;
  std::array<std::unique_ptr<Channel>, 2> channels_;
};

INSTANTIATE_TEST_SUITE_P(Auths, OverAPath, testing::Values(FrameAuth::Key, FrameAuth::Tag),
                         [](const auto& p) { return p.param == FrameAuth::Key ? "Key" : "Tag"; });

TEST_P(OverAPath, LargeFramesAreWholeOnceSizeIsFound) {
  expect_messages(300, 7900);
  EXPECT_EQ(limit(), 8048u);
  EXPECT_EQ(path.largest, 8048u);
  EXPECT_EQ(path.swallowed, 0u);
}

TEST_P(OverAPath, NarrowPathCarriesEveryMessage) {
  path.mtu = 1500;
  expect_messages(2000, 7900);
  EXPECT_LE(limit(), 1500u);
  EXPECT_LT(path.swallowed, 40u) << "only probes";
  EXPECT_EQ(contexts_[0]->segment().header().counters.frames_resent, 0u);
}

TEST_P(OverAPath, PathThatBecomesNarrowLosesNothing) {
  expect_messages(100, 7900);
  ASSERT_EQ(limit(), 8048u);
  path.mtu = 1600;
  expect_messages(2000, 7900);
  EXPECT_LE(limit(), 1600u);
}

TEST_P(OverAPath, LinkThatRefusesLargeFramesDoesNotStall) {
  expect_messages(100, 7900);
  path.refuses = true;
  for (const std::size_t mtu : {4000u, 1600u}) {  // whole frames, then pieces
    path.mtu = mtu;
    expect_messages(3000, 7900);
    EXPECT_LE(limit(), mtu);
  }
}

TEST_P(OverAPath, SmallMessagesSendNoProbe) {
  expect_messages(50, 100);
  EXPECT_EQ(path.largest, 148u);
  EXPECT_EQ(limit(), PathLimits().floor);
}

TEST_P(OverAPath, HostilePiecesAreIgnored) {
  const auto give = [&](std::uint32_t total, unsigned parts, unsigned part, std::size_t bytes) {
    std::vector<std::byte> frame(sizeof(FrameHeader) + bytes);
    FrameHeader h;
    h.kind = FrameKind::Piece;
    h.key = 5;
    h.generation = contexts_[1]->segment().header().generation;
    h.destination = 1;
    const PieceFrame piece(h);
    piece.frame_number() = 3;
    piece.frame_bytes() = total;
    piece.piece_count() = static_cast<std::uint16_t>(parts);
    piece.piece_index() = static_cast<std::uint16_t>(part);
    h.length = static_cast<std::uint16_t>(bytes);
    const auto payload = std::span(frame).subspan(sizeof h);
    if (GetParam() == FrameAuth::Tag) {
      seal_by_tag(h, 5, {}, payload);
    } else {
      seal(h, crc32c(0, payload.data(), payload.size()));
    }
    std::memcpy(frame.data(), &h, sizeof h);
    path.under_way[1].push_back(frame);
  };
  for (const std::uint32_t total : {0u, 47u, 48u, 100u, 3000u, 8048u, 8049u, 0xffffffffu}) {
    for (const unsigned parts : {0u, 1u, 2u, 3u, 64u, 65u, 65535u}) {
      for (const unsigned part : {0u, 1u, 63u, 64u, 65535u}) {
        for (const std::size_t bytes : {0u, 1u, 50u, 1500u}) give(total, parts, part, bytes);
      }
    }
  }
  expect_messages(20, 7900);
}

}  // namespace
}  // namespace score::pm
