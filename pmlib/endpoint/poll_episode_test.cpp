#include "pmlib/endpoint/poll_episode.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

namespace score::pm {
namespace {

constexpr std::uint32_t kLongest = 20'000;

// Thread simulates a thread, its clocks, and its episode.
struct Thread {
  explicit Thread(std::int64_t poll_us = 1'000) : episode(poll_us, kLongest) {}

  // Lets `gap_us` pass, in which the thread uses `used_us`, and then polls in vain.
  std::uint32_t poll_after(std::uint32_t gap_us, std::uint32_t used_us) {
    now += gap_us;
    used += used_us;
    return episode.found_nothing(now, [this] {
      ++readings;
      return used;
    });
  }

  void rest(std::uint32_t us) {
    now += us;
    used += 5;
    episode.rested(now, used);
  }

  // Polls for `us` microseconds. Returns the longest rest that was requested.
  std::uint32_t poll_for(std::uint32_t us, std::uint32_t gap = 1) {
    std::uint32_t most = 0;
    for (std::uint32_t i = 0; i < us; i += gap) most = std::max(most, poll_after(gap, gap));
    return most;
  }

  PollEpisode episode;
  Microseconds now = 4'294'966'000;  // wraps soon
  std::uint64_t used = 7'000'000;
  std::uint32_t readings = 0;
};

TEST(PollEpisode, RestsOnlyAfterPollTimeOfUnbrokenPolling) {
  Thread t;
  EXPECT_EQ(t.poll_for(1'000), 0U);
  EXPECT_EQ(t.poll_for(2), 62U);
}

TEST(PollEpisode, RestsForFractionOfSilenceWithinLimits) {
  Thread t(0);
  EXPECT_EQ(t.poll_for(100), PollEpisode::kShortestUs);
  EXPECT_EQ(t.poll_for(16'000), 16'099U / PollEpisode::kPart);
  EXPECT_EQ(t.poll_for(400'000), kLongest);
}

TEST(PollEpisode, NegativePollTimeDisablesRests) {
  Thread t(-1);
  EXPECT_EQ(t.poll_for(1'000'000), 0U);
}

TEST(PollEpisode, MessageEndsSilence) {
  Thread t;
  EXPECT_GT(t.poll_for(1'010), 0U);
  t.episode.found_something();
  EXPECT_EQ(t.episode.silence_us(), 0U);
  EXPECT_EQ(t.poll_for(1'000), 0U);
}

TEST(PollEpisode, ThreadComputingBetweenPollsNeverRests) {
  for (const std::uint32_t piece : {20U, 50U, 1'000U, 50'000U}) {
    Thread t;
    for (int i = 0; i < 5'000; ++i) ASSERT_EQ(t.poll_after(piece, piece), 0U) << piece;
  }
}

TEST(PollEpisode, ThreadStopsRestingWhenItComputes) {
  Thread t;
  t.poll_for(400'000);
  for (int i = 0; i < 5'000; ++i) {
    ASSERT_EQ(t.poll_after(20, 20), 0U);
    ASSERT_EQ(t.poll_after(1, 1), 0U) << "some tests look twice";
  }
}

TEST(PollEpisode, LostProcessorDoesNotEndEpisode) {
  Thread t;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(t.poll_for(40), 0U);
    EXPECT_EQ(t.poll_after(5, 1), 0U) << "others ran";
  }
  t.poll_for(90);
  EXPECT_EQ(t.poll_for(100), 68U);
  EXPECT_EQ(t.poll_after(100'000, 0), 6'318U);
}

TEST(PollEpisode, RestsRepeatWithLittlePollingInBetween) {
  Thread t;
  std::uint32_t rests = 0;
  t.poll_for(1'000);
  const std::uint64_t before = t.used;
  for (const std::uint64_t end = t.episode.silence_us() + 1'000'000;
       t.episode.silence_us() < end;) {
    const std::uint32_t rest_us = t.poll_after(2, 2);
    if (rest_us == 0) continue;
    t.rest(rest_us);
    ++rests;
  }
  EXPECT_LT(rests, 200U);
  EXPECT_LT(t.used - before, 200U * (5 + 2 * PollEpisode::kStreak));
}

// Returns how often a thread rests in `time_us`. gap_of(polls since the last rest) is the time
// between two polls, and used_of(gap) is the processor time that the thread used of it.
std::uint32_t count_rests(Thread& t, std::uint64_t time_us, auto gap_of, auto used_of) {
  std::uint32_t rests = 0, polls = 0;
  for (const std::uint64_t end = t.now + time_us; t.now < end;) {
    const std::uint32_t gap = gap_of(polls++);
    const std::uint32_t rest_us = t.poll_after(gap, used_of(gap));
    if (rest_us == 0) continue;
    t.rest(rest_us);
    ++rests;
    polls = 0;
  }
  return rests;
}

TEST(PollEpisode, SlowPollsAfterRestAreExplained) {
  Thread t;
  t.now = 0;
  t.poll_for(400'000, 2);
  const std::uint32_t rests = count_rests(
      t, 4'000'000, [](std::uint32_t poll) { return poll < 3 ? 16U : 3U; }, std::identity());
  EXPECT_GT(t.episode.silence_us(), 4'000'000U) << "no new episode";
  EXPECT_LT(rests, 202U) << "it rests for 20 ms each time";
}

TEST(PollEpisode, ThreadComputingAfterRestsStopsResting) {
  Thread t;
  t.now = 0;
  t.poll_for(400'000, 2);
  const std::uint32_t rests = count_rests(
      t, 1'000'000, [](std::uint32_t) { return 10U; }, std::identity());
  EXPECT_LT(rests, 20U);
}

TEST(PollEpisode, PollingThreadOnSharedProcessorRests) {
  Thread t;
  t.now = 0;
  const std::uint32_t rests = count_rests(
      t, 1'000'000, [](std::uint32_t) { return 24U; }, [](std::uint32_t) { return 9U; });
  EXPECT_GT(rests, 50U);
  EXPECT_GT(t.episode.silence_us(), 900'000U);
}

TEST(PollEpisode, ComputingThreadOnSharedProcessorNeverRests) {
  for (std::uint32_t gap = 30; gap <= 1'000; gap += 7) {
    for (std::uint32_t used = 15; used <= 50 && used < gap; ++used) {
      Thread t;
      for (int i = 0; i < 2'000; ++i) ASSERT_EQ(t.poll_after(gap, used), 0U) << gap << ' ' << used;
    }
  }
}

TEST(PollEpisode, CountsTimeOfPollsAndRestsWithoutWork) {
  Thread t;
  const std::uint64_t begin = t.used + 1;  // the first poll opens the episode
  for (std::uint64_t polls = 0; polls < 1'000'000; ++polls) {
    const std::uint32_t rest_us = t.poll_after(2, 2);
    if (rest_us > 0) t.rest(rest_us);
  }
  const std::uint64_t polled = t.episode.take_polled_us();
  const std::uint64_t used = t.used - begin + std::uint64_t{PollEpisode::kFreePolls} * 2;
  EXPECT_LE(polled, used);
  EXPECT_GE(polled + PollEpisode::kRefreshUs, used);
  EXPECT_EQ(t.episode.take_polled_us(), 0U);
  t.poll_after(500'000, 500'000);
  EXPECT_LE(t.episode.take_polled_us(), PollEpisode::kRefreshUs + PollEpisode::kColdUs);
  for (int i = 0; i < 1'000; ++i) t.poll_after(50, 50);
  EXPECT_LE(t.episode.take_polled_us(), 1'000 * 2 * PollEpisode::kDenseUs);
}

TEST(PollEpisode, CountsNothingBetweenMessageAndNextPoll) {
  Thread t;
  t.poll_for(400);
  t.episode.take_polled_us();
  t.episode.found_something();
  t.poll_after(1'000, 1'000);
  EXPECT_EQ(t.episode.take_polled_us(), 0U);
}

TEST(PollEpisode, ProcessorTimeIsReadSeldom) {
  Thread t;
  t.poll_for(10'000);
  EXPECT_LE(t.readings, 101U);
}

TEST(PollEpisode, LateReportOfStopIsHarmless) {
  Thread t;
  t.poll_for(500);
  t.now -= 100'000;
  EXPECT_EQ(t.poll_for(490), 0U);
  EXPECT_GT(t.poll_for(30), 0U);
}

// Reference states the rule directly, over all polls since the last message.
struct Reference {
  struct Poll {
    std::uint64_t gap, used;
    bool after_rest;
  };

  std::vector<Poll> polls;

  // Returns true if the thread has used no processor time for other work since the episode began.
  bool has_only_polled() const {
    for (const Poll& p : polls) {
      if (p.used > std::min<std::uint64_t>(
                       p.gap, p.after_rest ? PollEpisode::kColdUs : PollEpisode::kDenseUs))
        return false;
    }
    return true;
  }

  // Returns true if the last gap used more processor time than a cold poll explains and an episode
  // forgives.
  bool has_worked() const {
    return !polls.empty() && polls.back().used > PollEpisode::kColdUs + PollEpisode::kMostWorkUs +
                                                     PollEpisode::kForgivenPerRestUs +
                                                     PollEpisode::kReadingUs +
                                                     PollEpisode::kSlackUs;
  }

  std::uint64_t silence() const {
    std::uint64_t sum = 0;
    for (const Poll& p : polls) sum += p.gap;
    return sum;
  }
};

TEST(PollEpisode, AgreesWithReferenceInRandomSequences) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    Thread t;
    Reference slow;
    bool is_first = true, after_rest = false;
    unsigned clean = 0;
    for (int i = 0; i < 3'000; ++i) {
      const auto kind = random() % 1'000;
      if (kind < 2) {
        t.episode.found_something();
        slow.polls.clear();
        is_first = true;
        after_rest = false;
        continue;
      }
      const auto gap = static_cast<std::uint32_t>(random() % (kind < 980 ? 4 : 2'000));
      const std::uint32_t used = kind < 990 ? std::min(gap, 3U) : gap;
      const std::uint32_t rest = t.poll_after(gap, used);
      if (is_first) {
        ASSERT_EQ(rest, 0U);
      } else {
        slow.polls.push_back({gap, used, after_rest});
      }
      clean = used > 4 || is_first ? 0 : clean + 1;
      is_first = false;
      if (slow.has_worked()) {
        ASSERT_EQ(rest, 0U) << seed << ' ' << i;
        slow.polls.clear();
        after_rest = false;
        continue;
      }
      if (slow.has_only_polled() && !after_rest && clean > PollEpisode::kStreak) {
        ASSERT_EQ(rest > 0, slow.silence() >= 1'000) << seed << ' ' << i;
      }
      after_rest = false;
      if (rest == 0) continue;
      ASSERT_LE(rest, std::max<std::uint64_t>(slow.silence() / 16, PollEpisode::kShortestUs));
      t.rest(rest);
      slow.polls.push_back({rest, 0, false});
      after_rest = true;
      clean = 0;
    }
  }
}

}  // namespace
}  // namespace score::pm
