#include "pmlib/channel/peer_watch.hpp"

#include "tests/support/pmlib/test_parts.hpp"

namespace score::pm {
namespace {

constexpr Microseconds kSecond = 1'000'000;

class PeerWatchTest : public Parts {
 protected:
  PeerWatchTest() {
    for (std::uint8_t rank = 0; rank < 3; ++rank) state_->peer(rank).address.bytes[0] = rank;
  }

  FrameSender frames_{*state_, device_};
  PeerMonitor watch_{*state_, frames_, true};
};

TEST_F(PeerWatchTest, PeerIsGoneAfterThreeSecondsOfRefusals) {
  watch_.on_frame(1);
  EXPECT_TRUE(watch_.on_refused({{1}}).empty());
  pass(3 * kSecond - 1);
  EXPECT_TRUE(watch_.on_refused({{1}}).empty());
  pass(1);
  EXPECT_EQ(watch_.on_refused({{1}}), std::vector<std::uint32_t>{1});
}

TEST_F(PeerWatchTest, FrameEndsRefusals) {
  watch_.on_frame(1);
  watch_.on_refused({{1}});
  EXPECT_TRUE(watch_.has_refusals());
  watch_.on_frame(1);
  EXPECT_FALSE(watch_.has_refusals());
}

TEST_F(PeerWatchTest, RefusalsBeforePeerStartsAreIgnored) {
  watch_.on_refused({{2}});
  EXPECT_FALSE(watch_.has_refusals());
}

TEST_F(PeerWatchTest, SilentPeersAreAskedOncePerSecond) {
  watch_.on_frame(1);
  watch_.ask_if_due();
  EXPECT_TRUE(device_.sent.empty());
  pass(kSecond);
  watch_.ask_if_due();
  watch_.ask_if_due();
  ASSERT_EQ(device_.sent.size(), 1u);
  EXPECT_EQ(device_.header(0).destination, 1u);
}

TEST_F(PeerWatchTest, AsksNoPeerWhileFramesArrive) {
  watch_.on_frame(1);
  ++state_->counters().frames_received;
  pass(kSecond);
  watch_.ask_if_due();
  EXPECT_TRUE(device_.sent.empty());
}

}  // namespace
}  // namespace score::pm
