#include "pmlib/endpoint/quick_returns.hpp"

#include <gtest/gtest.h>

namespace score::pm {
namespace {

class Thread {
 public:
  // Polls `count` times, each time `away_ns` after the last poll.
  void look(std::uint32_t count, std::uint64_t away_ns) {
    for (std::uint32_t i = 0; i < count; ++i) {
      now_ns_ += away_ns;
      switches_ += is_switched ? 1 : 0;
      returns.begin_look(now_ns_, [this] { return switches_; });
      now_ns_ += 3'000;
      returns.end_look(now_ns_);
    }
  }

  QuickReturns returns;
  bool is_switched = false;  // loses the processor before each poll

 private:
  std::uint64_t switches_ = 0;
  std::uint64_t now_ns_ = 1;
};

constexpr std::uint64_t kQuick = QuickReturns::kAwayNs, kLate = kQuick + 1;
constexpr std::uint32_t kLooks = QuickReturns::kLooks;

TEST(QuickReturns, ThreadThatOnlyPollsIsQuick) {
  Thread t;
  EXPECT_FALSE(t.returns.are_quick());
  t.look(1 + kLooks, kQuick);
  EXPECT_TRUE(t.returns.are_quick());
}

TEST(QuickReturns, ThreadWorkingBetweenPollsIsNotQuick) {
  Thread t;
  t.look(1000, kLate);
  EXPECT_FALSE(t.returns.are_quick());
  for (int i = 0; i < 100; ++i) {
    t.look(3, kQuick);
    t.look(1, kLate);
    EXPECT_FALSE(t.returns.are_quick()) << "it works between some of them";
  }
}

TEST(QuickReturns, TimeOfOtherThreadsIsIgnored) {
  Thread t;
  t.is_switched = true;
  t.look(1000, 20'000);
  EXPECT_FALSE(t.returns.are_quick()) << "it may have worked meanwhile";
  t.look(1 + kLooks, kQuick);
  t.look(1000, 20'000);
  EXPECT_TRUE(t.returns.are_quick());
  t.is_switched = false;
  t.look(1000, kLate);
  t.is_switched = true;
  t.look(100, 20'000);
  EXPECT_FALSE(t.returns.are_quick());
}

TEST(QuickReturns, InterruptIsForgiven) {
  Thread t;
  t.look(1 + kLooks, kQuick);
  t.look(1, 50'000);
  EXPECT_TRUE(t.returns.are_quick());
  t.look(1, 50'000);
  EXPECT_FALSE(t.returns.are_quick());
  t.look(kLooks, kQuick);
  EXPECT_TRUE(t.returns.are_quick());
}

TEST(QuickReturns, SleepIsNotCountedAsWork) {
  Thread t;
  t.look(1 + kLooks, kQuick);
  for (int i = 0; i < 100; ++i) {
    t.returns.note_sleep();
    t.look(1, 20'000'000);
    EXPECT_TRUE(t.returns.are_quick());
    t.look(kLooks, kQuick);
  }
  t.returns.start_anew();
  t.look(kLooks - 1, kQuick);
  EXPECT_FALSE(t.returns.are_quick());
}

}  // namespace
}  // namespace score::pm
