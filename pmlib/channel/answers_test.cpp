// These tests check that reads which cannot be answered yet are postponed and answered exactly
// once.
#include "pmlib/channel/channel.hpp"
#include "tests/support/pmlib/test_wire.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

namespace score::pm {
namespace {

using Frame = std::vector<std::byte>;

class TurnClock final : public JobClock {
 public:
  Microseconds now() override { return now_; }

  void advance() { ++now_; }

 private:
  Microseconds now_ = 1000;
};

FrameHeader header_of(const Frame& frame) {
  FrameHeader h;
  std::memcpy(&h, frame.data(), sizeof h);
  return h;
}

// Rank 0 reads the memory of rank 1, which can answer two reads at a time.
class Answers : public testing::Test {
 protected:
  static constexpr std::uint32_t kReads = 4, kBytes = 512;

  Answers() {
    for (std::uint32_t i = 0; i < 2; ++i) {
      Geometry geometry;
      geometry.size = 2;
      geometry.payload_bytes = 1024;
      geometry.send_buffers = 8;
      geometry.descriptors = i == 0 ? 8 : 2;
      int error = 0;
      contexts_[i] = MappedSegment::create(geometry, {.key = 5, .rank = i, .window = 16}, error);
      EXPECT_EQ(error, 0);
      const Segment segment = contexts_[i]->segment();
      segment.region(0) = {reinterpret_cast<std::uintptr_t>(memory_[i].data()), kReads * kBytes, 9,
                           1, 0};
      devices_[i] = std::make_unique<WireDevice>(wires_[i], wires_[1 - i]);
      ends_[i] = std::make_unique<Channel>(segment, *devices_[i], clock_, ChannelOptions{});
    }
    std::iota(memory_[1].begin(), memory_[1].end(), std::uint8_t{1});
    for (std::uint32_t i = 0; i < kReads; ++i) {
      const RegionName name{0, 9, i * kBytes};
      EXPECT_EQ(ends_[0]->memory().read(1, 0, i * kBytes, name, kBytes, reads_[i]), 0);
    }
  }

  // Calls `look` with each frame from rank 1 before it arrives at rank 0.
  template <class Look>
  void run(Look look) {
    int running = kReads;
    for (int turn = 0; turn < 1'000'000 && running > 0; ++turn) {
      ends_[1]->progress();
      for (const Frame& frame : wires_[1].frames) look(header_of(frame));
      ends_[0]->progress();
      clock_.advance();
      for (OperationId& op : reads_) {
        const int result = op == 0 ? EINPROGRESS : Operations(ends_[0]->segment()).test(op);
        if (result == EINPROGRESS) continue;
        EXPECT_EQ(result, 0);
        op = 0;
        --running;
      }
    }
    EXPECT_EQ(running, 0) << "reads were not answered";
  }

  const Counters& counters(int i) const { return contexts_[i]->segment().header().counters; }

  TurnClock clock_;
  std::array<Wire, 2> wires_;  // by sender
  std::array<std::unique_ptr<MappedSegment>, 2> contexts_;
  std::array<std::unique_ptr<WireDevice>, 2> devices_;
  std::array<std::unique_ptr<Channel>, 2> ends_;
  std::array<std::vector<std::uint8_t>, 2> memory_{std::vector<std::uint8_t>(kReads * kBytes),
                                                   std::vector<std::uint8_t>(kReads* kBytes)};
  std::array<OperationId, kReads> reads_{};
};

TEST_F(Answers, ReadsBeyondDescriptorsAreAnsweredLater) {
  int put_off = 0;
  run([&](const FrameHeader& h) {
    put_off += h.kind == FrameKind::Deny && DenyFrame(h).is_postponed() == 1;
  });
  EXPECT_GT(put_off, 0);
  EXPECT_EQ(counters(1).denied, 0u) << "putting off is no refusal";
  EXPECT_EQ(memory_[0], memory_[1]);
}

TEST_F(Answers, RepeatedRequestIsAnsweredOnce) {
  const std::vector<Frame> requests(wires_[0].frames.begin(), wires_[0].frames.end());
  ASSERT_EQ(requests.size(), kReads);
  // All requests arrive again and again, even when there is a descriptor for them.
  run([&](const FrameHeader&) {
    if (wires_[0].frames.size() >= 2 * kReads) return;
    wires_[0].frames.insert(wires_[0].frames.begin(), requests.begin(), requests.end());
  });
  EXPECT_EQ(counters(0).rma_bytes_written, std::uint64_t{kReads} * kBytes);
  EXPECT_EQ(memory_[0], memory_[1]);
}

}  // namespace
}  // namespace score::pm
