#include "scored/node/link/output_budget.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace score::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kBegin{seconds{1'000}};
constexpr std::size_t kChunk = 32'768;
constexpr UserId kAnn{1'001};
constexpr UserId kBob{1'002};

// Returns how many bytes a user who never pauses can send in that time.
std::uint64_t flood(OutputBudget& budget, UserId user, TimePoint from, Duration span,
                    std::size_t chunk = kChunk) {
  std::uint64_t bytes = 0;
  for (TimePoint now = from; now < from + span; bytes += chunk) {
    now = budget.reserve(user, chunk, now);
  }
  return bytes;
}

double seconds_of(std::uint64_t bytes, std::size_t chunk) {
  const double frames = static_cast<double>(bytes) / static_cast<double>(chunk);
  return (frames * static_cast<double>(OutputBudget::kPerFrame.count()) +
          static_cast<double>(bytes) * OutputBudget::kNanosecondsPerByte) /
         1e9;
}

TEST(OutputBudget, CountsOtherUsersAndOtherCores) {
  const std::vector<std::uint32_t> low{0, 1, 2, 3};
  const std::vector<std::uint32_t> part{3};
  const std::vector<std::uint32_t> high{4, 5};
  const JobHere job{JobId{1}, kAnn, low};
  EXPECT_FALSE(competes(job, job));
  EXPECT_FALSE(competes({JobId{2}, kAnn, part}, job)) << "a step";
  EXPECT_FALSE(competes(job, {JobId{2}, kAnn, part}));
  EXPECT_TRUE(competes(job, {JobId{2}, kAnn, high}));
  EXPECT_TRUE(competes(job, {JobId{2}, kAnn, {}})) << "takes no cores";
  EXPECT_TRUE(competes(job, {JobId{2}, kBob, part}));
  EXPECT_TRUE(competes({JobId{1}, std::nullopt, low}, {JobId{2}, std::nullopt, low}));
}

TEST(OutputBudget, CarriesABurstAtOnce) {
  OutputBudget budget(2);
  for (int i = 0; i < 250; ++i) EXPECT_EQ(budget.reserve(kAnn, kChunk, kBegin), kBegin) << i;
}

TEST(OutputBudget, TakesItsShareInTheLongRun) {
  for (const std::size_t processors : {1U, 2U, 64U}) {
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{4'096}, kChunk}) {
      OutputBudget budget(processors);
      const std::uint64_t bytes = flood(budget, kAnn, kBegin, seconds{100}, chunk);
      const double share = seconds_of(bytes, chunk) / 104 / static_cast<double>(processors);
      EXPECT_NEAR(share, OutputBudget::kShare, OutputBudget::kShare * 0.02) << processors;
    }
  }
}

TEST(OutputBudget, JobsOfOneUserShareIt) {
  OutputBudget one(2);
  OutputBudget many(2);
  const std::uint64_t alone = flood(one, kAnn, kBegin, seconds{20});
  std::uint64_t together = 0;
  std::vector<TimePoint> jobs(10, kBegin);
  for (bool is_busy = true; is_busy;) {
    is_busy = false;
    for (TimePoint& next : jobs) {
      if (next >= kBegin + seconds{20}) continue;
      next = many.reserve(kAnn, kChunk, next);
      together += kChunk;
      is_busy = true;
    }
  }
  EXPECT_LE(together, alone + jobs.size() * kChunk);
}

TEST(OutputBudget, OneUserDoesNotDelayOthers) {
  OutputBudget budget(2);
  flood(budget, kAnn, kBegin, seconds{10});
  const TimePoint now = kBegin + seconds{10};
  for (int i = 0; i < 20; ++i) budget.reserve(kAnn, kChunk, now);
  EXPECT_GT(budget.reserve(kAnn, kChunk, now), now);
  EXPECT_EQ(budget.reserve(kBob, kChunk, now), now);
}

TEST(OutputBudget, PassesManyFramesAtATime) {
  OutputBudget budget(2);
  flood(budget, kAnn, kBegin, seconds{10});
  std::set<TimePoint> wakeups;
  int frames = 0;
  for (TimePoint now = kBegin + seconds{10}; now < kBegin + seconds{20}; ++frames) {
    now = budget.reserve(kAnn, kChunk, now);
    wakeups.insert(now);
  }
  EXPECT_GT(frames, 600);
  EXPECT_LE(wakeups.size(), 202U);
}

TEST(OutputBudget, KeepsTheOrderOfFrames) {
  OutputBudget budget(1);
  TimePoint last = kBegin;
  for (int i = 0; i < 1'000; ++i) {
    const TimePoint when = budget.reserve(kAnn, i % 2 == 0 ? kChunk : 1, kBegin);
    EXPECT_GE(when, last);
    last = when;
  }
}

TEST(OutputBudget, ForgetsUsersWhoPause) {
  OutputBudget budget(2);
  for (std::uint32_t user = 0; user < 10'000; ++user) {
    budget.reserve(UserId(user), kChunk, kBegin + milliseconds{100} * user);
  }
  EXPECT_LE(budget.size(), 300U);
}

}  // namespace
}  // namespace score::node
