#include "pmlib/fi/vain/vain_polls.hpp"

#include "pmlib/fi/vain/call_return.hpp"

#include <gtest/gtest.h>

namespace score::pm::fi {
namespace {

using Answer = VainPolls::Answer;

struct Thread {
  // Looks again after this much processor time, and answers for a kernel that can watch calls.
  Answer look(std::uint64_t us, bool has_returned = false) {
    now += us;
    used += us;
    const Answer answer = vain.look(now, used, switches);
    if (answer == Answer::Watch) vain.watching();
    if (answer == Answer::Check) has_returned ? vain.returned() : vain.still_there();
    return answer;
  }

  void look_until_watched() {
    while (look(200) != Answer::Watch) {
    }
  }

  void look_for(std::uint64_t all_us, std::uint64_t us) {
    for (std::uint64_t passed = 0; passed < all_us; passed += us) look(us);
  }

  std::uint64_t now = 0, used = 0, switches = 0;
  VainPolls vain;
};

TEST(VainPolls, LooksOncePerGroupOfPolls) {
  VainPolls vain;
  std::uint32_t looks = 0;
  for (std::uint32_t i = 0; i < 10 * VainPolls::kPolls; ++i) looks += vain.count_poll() ? 1 : 0;
  EXPECT_EQ(looks, 10U);
}

TEST(VainPolls, VainOnceCallStaysForLong) {
  Thread thread;
  thread.look_until_watched();
  EXPECT_GE(thread.now, VainPolls::kFirstPauseUs);
  EXPECT_FALSE(thread.vain.are_vain());
  thread.look_for(VainPolls::kVainUs, 200);
  EXPECT_TRUE(thread.vain.are_vain());
  EXPECT_EQ(thread.vain.take_polled_us(), VainPolls::kVainUs);
  thread.look_for(1'000, 200);
  EXPECT_EQ(thread.vain.take_polled_us(), 1'000U);
}

TEST(VainPolls, ReturnedCallEndsVainPolls) {
  Thread thread;
  thread.look_until_watched();
  thread.look_for(2 * VainPolls::kVainUs, 200);
  thread.look(200, true);
  EXPECT_FALSE(thread.vain.are_vain());
  EXPECT_FALSE(thread.vain.is_watching());
}

TEST(VainPolls, ReturningCallsAreWatchedRarely) {
  Thread thread;
  int watched = 0;
  while (thread.now < 2'000'000) {
    watched += thread.look(200, true) == Answer::Watch ? 1 : 0;
    ASSERT_FALSE(thread.vain.are_vain());
  }
  EXPECT_LE(watched, 20);
}

TEST(VainPolls, SlowPollsAreWorkBetweenThem) {
  Thread thread;
  thread.look_until_watched();
  thread.look_for(2 * VainPolls::kVainUs, 200);
  ASSERT_TRUE(thread.vain.are_vain());
  thread.look(5'000);
  EXPECT_TRUE(thread.vain.are_vain()) << "an interrupt";
  thread.look_for(5 * VainPolls::kVainUs, 1'000);
  EXPECT_FALSE(thread.vain.are_vain());
  thread.look_for(VainPolls::kVainUs, 200);
  EXPECT_TRUE(thread.vain.are_vain());
}

TEST(VainPolls, ColdCachesAreNoWork) {
  Thread thread;
  thread.look_until_watched();
  for (int i = 0; i < 50; ++i) {
    thread.switches += 64;
    thread.look(3'000);
  }
  EXPECT_TRUE(thread.vain.are_vain());
}

TEST(VainPolls, MessageStartsThemAnew) {
  Thread thread;
  thread.look_until_watched();
  thread.look_for(2 * VainPolls::kVainUs, 200);
  thread.vain.start_anew();
  EXPECT_FALSE(thread.vain.are_vain());
  EXPECT_EQ(thread.look(200), Answer::None);
}

[[gnu::noinline]] bool watch_own_return(CallReturn& call, bool& has_returned) {
  const bool is_watched = call.watch(__builtin_return_address(0));
  has_returned = call.has_returned();
  return is_watched;
}

TEST(CallReturn, SeesReturnOnly) {
  CallReturn call;
  EXPECT_TRUE(call.has_returned());
  bool had_returned = true;
  if (!watch_own_return(call, had_returned)) GTEST_SKIP() << "the kernel watches no calls";
  EXPECT_FALSE(had_returned);
  EXPECT_TRUE(call.has_returned());
  call.stop();
  EXPECT_TRUE(call.has_returned());
}

}  // namespace
}  // namespace score::pm::fi
