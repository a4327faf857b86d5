#include "pmlib/endpoint/quick_returns.hpp"

#include <gtest/gtest.h>

namespace score::pm {
namespace {

class Thread {
 public:
  // Polls `count` times, each time `away_ns` after the last poll.
  void poll(std::uint32_t count, std::uint64_t away_ns) {
    for (std::uint32_t i = 0; i < count; ++i) {
      now_ns_ += away_ns;
      switches_ += is_switched ? 1 : 0;
      returns.begin_poll(now_ns_, [this] { return switches_; });
      now_ns_ += 3'000;
      returns.end_poll(now_ns_);
    }
  }

  QuickReturns returns;
  bool is_switched = false;  // loses the processor before each poll

 private:
  std::uint64_t switches_ = 0;
  std::uint64_t now_ns_ = 1;
};

constexpr std::uint64_t kQuick = QuickReturns::kAwayNs, kLate = kQuick + 1;
constexpr std::uint32_t kPolls = QuickReturns::kPolls;

TEST(QuickReturns, ThreadThatOnlyPollsIsQuick) {
  Thread t;
  EXPECT_FALSE(t.returns.are_quick());
  t.poll(1 + kPolls, kQuick);
  EXPECT_TRUE(t.returns.are_quick());
}

TEST(QuickReturns, ThreadWorkingBetweenPollsIsNotQuick) {
  Thread t;
  t.poll(1000, kLate);
  EXPECT_FALSE(t.returns.are_quick());
  for (int i = 0; i < 100; ++i) {
    t.poll(3, kQuick);
    t.poll(1, kLate);
    EXPECT_FALSE(t.returns.are_quick()) << "it works between some of them";
  }
}

TEST(QuickReturns, TimeOfOtherThreadsIsIgnored) {
  Thread t;
  t.is_switched = true;
  t.poll(1000, 20'000);
  EXPECT_FALSE(t.returns.are_quick()) << "it may have worked meanwhile";
  t.poll(1 + kPolls, kQuick);
  t.poll(1000, 20'000);
  EXPECT_TRUE(t.returns.are_quick());
  t.is_switched = false;
  t.poll(1000, kLate);
  t.is_switched = true;
  t.poll(100, 20'000);
  EXPECT_FALSE(t.returns.are_quick());
}

TEST(QuickReturns, InterruptIsForgiven) {
  Thread t;
  t.poll(1 + kPolls, kQuick);
  t.poll(1, 50'000);
  EXPECT_TRUE(t.returns.are_quick());
  t.poll(1, 50'000);
  EXPECT_FALSE(t.returns.are_quick());
  t.poll(kPolls, kQuick);
  EXPECT_TRUE(t.returns.are_quick());
}

TEST(QuickReturns, SleepIsNotCountedAsWork) {
  Thread t;
  t.poll(1 + kPolls, kQuick);
  for (int i = 0; i < 100; ++i) {
    t.returns.note_sleep();
    t.poll(1, 20'000'000);
    EXPECT_TRUE(t.returns.are_quick());
    t.poll(kPolls, kQuick);
  }
  t.returns.start_anew();
  t.poll(kPolls - 1, kQuick);
  EXPECT_FALSE(t.returns.are_quick());
}

}  // namespace
}  // namespace score::pm
