// These tests check which frames of a remote write are resent after losses, and that no write
// overwrites a newer one.
#include "pmlib/channel/channel.hpp"
#include "pmlib/core/regions.hpp"
#include "pmlib/network/network.hpp"
#include "tests/support/pmlib/test_wire.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace score::pm {
namespace {

class TestClock final : public JobClock {
 public:
  Microseconds now() override { return now_; }

  void advance() { ++now_; }

 private:
  Microseconds now_ = 1000;
};

// Two ranks run in virtual time: each turn takes a microsecond.
class Losses : public testing::Test {
 protected:
  static constexpr std::uint32_t kBytes = 300'000;  // more than a window

  explicit Losses(unsigned seed = 7) {
    JobNetwork network;
    network.key = 5;
    network.device.kind = DeviceKind::Udp;
    for (const char* name : {"a", "b"}) network.ranks.push_back({name, "10.0.0.1:1", {}});
    int error = 0;
    for (std::uint32_t i = 0; i < 2; ++i) {
      contexts_[i] = create_context(network, i, false, "", error);
      EXPECT_EQ(error, 0);
      devices_[i] = std::make_unique<WireDevice>(wires_[i], wires_[1 - i], seed + i);
      regions_[i] = std::make_unique<Regions>(contexts_[i]->segment());
      ends_[i] = std::make_unique<Channel>(contexts_[i]->segment(), *devices_[i], clock_,
                                           ChannelOptions{});
    }
    std::iota(here_.begin(), here_.end(), std::uint8_t{1});
    std::uint64_t offset = 0;
    EXPECT_EQ(regions_[0]->add(here_.data(), here_.size(), local_, offset), 0);
    EXPECT_EQ(regions_[1]->add(there_.data(), there_.size(), remote_, offset), 0);
  }

  template <class Done>
  void run_until(Done done) {
    for (int i = 0; i < 20'000'000; ++i) {
      if (done()) return;
      for (auto& end : ends_) end->progress();
      clock_.advance();
    }
    FAIL() << "did not happen";
  }

  OperationId write(std::uint64_t from, std::uint64_t to, std::uint32_t length) {
    const RegionName name{remote_, contexts_[1]->segment().region(remote_).nonce, to};
    OperationId op = 0;
    run_until(
        [&] { return ends_[0]->memory().write(1, local_, from, name, length, op) != ENOBUFS; });
    return op;
  }

  void finish(OperationId op) {
    int result = EINPROGRESS;
    run_until([&] { return (result = Operations(ends_[0]->segment()).test(op)) != EINPROGRESS; });
    EXPECT_EQ(result, 0);
  }

  const Counters& counters(int i) const { return contexts_[i]->segment().header().counters; }

  TestClock clock_;
  std::array<Wire, 2> wires_;  // by sender
  std::array<std::unique_ptr<MappedSegment>, 2> contexts_;
  std::array<std::unique_ptr<WireDevice>, 2> devices_;
  std::array<std::unique_ptr<Regions>, 2> regions_;
  std::array<std::unique_ptr<Channel>, 2> ends_;
  std::vector<std::uint8_t> here_ = std::vector<std::uint8_t>(kBytes);
  std::vector<std::uint8_t> there_ = std::vector<std::uint8_t>(kBytes);
  std::uint32_t local_ = 0, remote_ = 0;
};

TEST_F(Losses, OneLostFrameOfWriteIsResent) {
  wires_[0].lost = {20};
  finish(write(0, 0, kBytes));
  EXPECT_EQ(here_, there_);
  EXPECT_EQ(counters(0).frames_resent, 1u);
  EXPECT_EQ(counters(0).time_outs, 0u);
}

TEST_F(Losses, OnlyLostFramesAreResent) {
  wires_[0].lost = {0, 5, 6, 40, 41, 90, 150};
  finish(write(0, 0, kBytes));
  EXPECT_EQ(here_, there_);
  EXPECT_EQ(counters(0).frames_resent, 7u);
  EXPECT_EQ(counters(0).time_outs, 0u);
}

TEST_F(Losses, LostResentFrameIsRequestedAgain) {
  wires_[0].lost = {20};
  const OperationId op = write(0, 0, kBytes);
  run_until([&] { return counters(0).frames_resent >= 1; });
  wires_[0].frames.clear();
  finish(op);
  EXPECT_EQ(here_, there_);
}

TEST_F(Losses, LostLastFrameIsResent) {
  wires_[0].lost = {kBytes / 1400};
  finish(write(0, 0, kBytes));
  EXPECT_EQ(here_, there_);
}

TEST_F(Losses, MessageDoesNotOvertakeEarlierWrite) {
  wires_[0].lost = {3, 30};
  const OperationId op = write(0, 0, 60'000);
  std::byte* buffer = nullptr;
  ASSERT_EQ(ends_[0]->get_send_buffer(1, 4, &buffer), 0);
  ASSERT_EQ(ends_[0]->send(), 0);
  ReceivedMessage message;
  run_until([&] { return ends_[1]->received().receive(message); });
  EXPECT_TRUE(std::equal(there_.begin(), there_.begin() + 60'000, here_.begin()));
  finish(op);
}

TEST_F(Losses, OlderWriteDoesNotOverwriteNewerOne) {
  wires_[0].loss = 0.1;
  wires_[1].loss = 0.1;
  std::mt19937 generator(3);
  const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
  std::vector<std::uint8_t> expected = there_;
  std::vector<OperationId> running;
  for (int i = 0; i < 400; ++i) {
    const std::uint32_t length = random() % 3 == 0 ? random() % 50'000 : random() % 4000;
    const std::uint32_t from = random() % (kBytes - length);
    const std::uint32_t to = random() % 3000;  // ranges overlap
    running.push_back(write(from, to, length));
    std::copy_n(here_.begin() + from, length, expected.begin() + to);
    if (running.size() < 8) continue;
    for (const OperationId op : running) finish(op);
    running.clear();
    ASSERT_TRUE(there_ == expected) << i;
  }
}

// Each answer costs one system call at the receiver and one at the sender.
class Bursts : public Losses {
 protected:
  // Returns the numbers of the frames sent by rank 0, from 0.
  std::vector<std::size_t> frames_that_ask() const {
    std::vector<std::size_t> asking;
    for (std::size_t i = 0; i < wires_[0].frames.size(); ++i) {
      FrameHeader h;
      std::memcpy(&h, wires_[0].frames[i].data(), sizeof h);
      if (h.flags == kAckNow) asking.push_back(i);
    }
    return asking;
  }
};

TEST_F(Bursts, WriteWithinWindowRequestsAnswerAtEnd) {
  write(0, 0, 25'000);
  ends_[0]->progress();
  const std::size_t sent = wires_[0].frames.size();
  ASSERT_GT(sent, devices_[0]->batch_frames());
  EXPECT_EQ(frames_that_ask(), std::vector<std::size_t>{sent - 1});
}

TEST_F(Bursts, LongWriteRequestsAnswerAtWindowEnd) {
  write(0, 0, kBytes);
  for (int i = 0; i < 4; ++i) ends_[0]->progress();
  EXPECT_EQ(frames_that_ask(), std::vector<std::size_t>{wires_[0].frames.size() - 1});
}

}  // namespace
}  // namespace score::pm
