#include "scored/head/jobs/dependency_tracker.hpp"

#include "proto/client.pb.h"
#include "proto/convert/random_messages.hpp"
#include "proto/waits_values_test.inc"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace score::head {
namespace {

using What = WaitDecision::What;

constexpr UserId kAlice(1000);
constexpr UserId kBob(1001);
constexpr WallTime kNow = WallTime(Duration(1'000h));

class DependencyTrackerTest : public ::testing::Test {
 protected:
  bool add(std::uint64_t id, Conditions conditions = {}, std::string name = "x",
           UserId user = kAlice) {
    DependencyTracker::NewJob job;
    job.id = JobId(id);
    job.user = user;
    job.name = std::move(name);
    job.conditions = std::move(conditions);
    job.wall_limit = wall_limit_;
    return tracker_.add(std::move(job), kNow, [this](JobId other) {
      const auto found = known_.find(other);
      return Standing(found == known_.end() ? Progress::Waiting : found->second, kNow - 1min);
    });
  }

  void end(std::uint64_t id, bool ok = true, const std::string& name = "x", UserId user = kAlice) {
    tracker_.ended(JobId(id), user, name, ok);
  }

  static Conditions after(After kind, std::vector<std::uint64_t> jobs) {
    Conditions conditions;
    for (const std::uint64_t job : jobs) conditions.after.push_back({kind, JobId(job)});
    return conditions;
  }

  // Returns the decisions as texts such as "5 go" or "6 never".
  std::vector<std::string> decide(Duration later = 0s) {
    constexpr std::array<std::string_view, 5> kWords = {"go", "stays", "never", "late", "deadline"};
    std::vector<std::string> out;
    for (const WaitDecision& decision : tracker_.decide(kNow + later)) {
      out.push_back(
          fmt::format("{} {}", decision.job, kWords.at(static_cast<std::size_t>(decision.what))));
    }
    return out;
  }

  std::string why(std::uint64_t id) {
    const auto reasons = tracker_.reasons(JobId(id));
    return reasons.empty() ? "" : reasons.front();
  }

  using Words = std::vector<std::string>;

  DependencyTracker tracker_;
  std::map<JobId, Progress> known_;
  Duration wall_limit_{0};
};

TEST_F(DependencyTrackerTest, JobsWithoutConditionsDoNotWait) {
  EXPECT_FALSE(add(1));
  EXPECT_EQ(decide(), Words());
  EXPECT_EQ(why(1), "");
}

TEST_F(DependencyTrackerTest, GoesWhenEveryJobHasSucceeded) {
  add(1), add(2);
  EXPECT_TRUE(add(3, after(After::Ok, {1, 2})));
  EXPECT_EQ(why(3), "waits for job 1 to succeed (afterok:1)");
  tracker_.started(JobId(1), kNow);
  end(1);
  EXPECT_EQ(decide(), Words{"3 stays"});
  EXPECT_EQ(why(3), "waits for job 2 to succeed (afterok:2)");
  end(2);
  EXPECT_EQ(decide(), Words{"3 go"});
  EXPECT_EQ(why(3), "");
  EXPECT_EQ(decide(), Words());
}

TEST_F(DependencyTrackerTest, OneOfSeveralJobsIsEnough) {
  for (const std::uint64_t job : {1, 2, 3}) add(job);
  Conditions any = after(After::Ok, {1, 2});
  any.any = true;
  any.end_if_never = true;
  EXPECT_TRUE(add(4, any));
  EXPECT_TRUE(add(5, any));
  Conditions other = after(After::Ok, {1, 3});
  other.any = other.end_if_never = true;
  EXPECT_TRUE(add(6, other));
  EXPECT_EQ(tracker_.reasons(JobId(4)),
            (Words{"waits for job 1 to succeed (afterok:1)",
                   "waits for job 2 to succeed (afterok:2)", "one of these is enough"}));
  end(1, false);
  EXPECT_EQ(decide(), (Words{"4 stays", "5 stays", "6 stays"}));
  EXPECT_EQ(why(4), "waits for job 2 to succeed (afterok:2)");
  end(2);
  EXPECT_EQ(decide(), (Words{"4 go", "5 go"}));
  end(3, false);
  EXPECT_EQ(decide(), Words{"6 never"});
}

TEST_F(DependencyTrackerTest, StartedMeansStartedOrEnded) {
  add(1), add(2);
  add(3, after(After::Started, {1}));
  add(4, after(After::Started, {2}));
  tracker_.started(JobId(1), kNow);
  end(2, false);
  EXPECT_EQ(decide(), (Words{"3 go", "4 go"}));
}

TEST_F(DependencyTrackerTest, DelayBeginsWithTheStart) {
  Conditions late = after(After::Started, {1});
  late.after.front().delay = 5min;
  EXPECT_TRUE(add(2, late));
  EXPECT_EQ(why(2), "waits for job 1 to start (after:1+5)");
  tracker_.started(JobId(1), kNow);
  EXPECT_EQ(decide(), (std::vector<std::string>{"2 stays"}));
  EXPECT_NE(why(2).find("at the earliest (--after with a delay)"), std::string::npos) << why(2);
  EXPECT_EQ(tracker_.next_time(), kNow + 5min);
  EXPECT_TRUE(decide(4min).empty());
  EXPECT_EQ(decide(5min), (std::vector<std::string>{"2 go"}));
}

TEST_F(DependencyTrackerTest, DelayOfAnEarlierStartHasBegun) {
  known_ = {{JobId(1), Progress::Ok}};  // it started a minute ago
  Conditions late = after(After::Started, {1});
  late.after.front().delay = 5min;
  EXPECT_TRUE(add(2, late));
  EXPECT_TRUE(decide(3min).empty());
  EXPECT_EQ(decide(4min), (std::vector<std::string>{"2 go"}));
  late.after.front().delay = 1min;
  EXPECT_FALSE(add(3, late));
}

// Front ends refuse them, but a program may send anything.
TEST(Conditions, OtherDelaysAreRefused) {
  Conditions late;
  late.after = {{After::Started, JobId(1), 5min}};
  EXPECT_TRUE(unpack_conditions(pack_conditions(late)));
  late.any = true;
  EXPECT_FALSE(unpack_conditions(pack_conditions(late)));
  late.any = false;
  late.after.front().delay = Duration::max();
  EXPECT_FALSE(unpack_conditions(pack_conditions(late)));
  late.after.front() = {After::Ok, JobId(1), 5min};
  EXPECT_FALSE(unpack_conditions(pack_conditions(late)));
}

TEST_F(DependencyTrackerTest, AnyAndNotOk) {
  add(1), add(2), add(3);
  add(4, after(After::Ended, {1}));
  add(5, after(After::NotOk, {2}));
  add(6, after(After::NotOk, {3}));
  tracker_.started(JobId(1), kNow);
  EXPECT_EQ(decide(), Words());
  end(1, false), end(2, false), end(3, true);
  EXPECT_EQ(decide(), (Words{"4 go", "5 go", "6 stays"}));
  EXPECT_EQ(why(6), "can never start: job 3 succeeded (afternotok:3)");
}

TEST_F(DependencyTrackerTest, ImpossibleJobEndsIfRequested) {
  add(1);
  Conditions conditions = after(After::Ok, {1});
  conditions.end_if_never = true;
  add(2, conditions);
  end(1, false);
  const auto decisions = tracker_.decide(kNow);
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].what, What::Never);
  EXPECT_EQ(decisions[0].why, "can never start: job 1 did not succeed (afterok:1)");
  end(2, false);
  EXPECT_EQ(decide(), Words());
}

TEST_F(DependencyTrackerTest, KnowsJobsThatEndedBefore) {
  known_ = {{JobId(1), Progress::Ok}, {JobId(2), Progress::NotOk}};
  EXPECT_FALSE(add(3, after(After::Ok, {1})));
  EXPECT_TRUE(add(4, after(After::Ok, {2})));
  EXPECT_EQ(decide(), Words());
  EXPECT_EQ(why(4), "can never start: job 2 did not succeed (afterok:2)");
}

TEST_F(DependencyTrackerTest, SingletonWaitsForEarlierJobs) {
  Conditions singleton;
  singleton.singleton = true;
  add(1), add(2, {}, "y"), add(3, {}, "x", kBob);
  EXPECT_TRUE(add(4, singleton));
  EXPECT_TRUE(add(5, singleton));
  add(6);
  EXPECT_EQ(why(4), "waits for the earlier jobs of its name to end (singleton)");
  end(1);
  EXPECT_EQ(decide(), Words{"4 go"});
  end(4, false);
  EXPECT_EQ(decide(), Words{"5 go"});
}

TEST_F(DependencyTrackerTest, BeginsAtItsTime) {
  Conditions conditions;
  conditions.begin = kNow + 60s;
  EXPECT_TRUE(add(1, conditions));
  EXPECT_EQ(tracker_.next_time(), kNow + 60s);
  EXPECT_EQ(decide(59s), Words());
  EXPECT_EQ(why(1), "starts at 1970-02-11T16:01:00Z at the earliest (--begin)");
  EXPECT_EQ(decide(60s), Words{"1 go"});
  EXPECT_EQ(tracker_.next_time(), std::nullopt);
}

TEST_F(DependencyTrackerTest, WaitsForTimeAndJobs) {
  add(1);
  Conditions conditions = after(After::Ended, {1});
  conditions.begin = kNow + 60s;
  add(2, conditions);
  EXPECT_EQ(decide(60s), Words{"2 stays"});
  end(1);
  EXPECT_EQ(decide(61s), Words{"2 go"});
}

TEST_F(DependencyTrackerTest, EndsAJobThatCannotMeetItsDeadline) {
  Conditions conditions;
  conditions.deadline = kNow + 60s;
  wall_limit_ = 20s;
  EXPECT_FALSE(add(1, conditions));
  EXPECT_FALSE(add(2, conditions));
  tracker_.started(JobId(2), kNow);
  EXPECT_EQ(decide(39s), Words());
  EXPECT_EQ(decide(40s), Words{"1 late"});
  EXPECT_EQ(decide(59s), Words());
  EXPECT_EQ(decide(60s), Words{"2 deadline"});
  EXPECT_EQ(decide(61s), Words());
}

TEST_F(DependencyTrackerTest, ForgetsAWaitingJobThatEnds) {
  add(1);
  Conditions conditions = after(After::Ok, {1});
  conditions.begin = kNow + 60s;
  add(2, conditions);
  end(2, false);
  end(1);
  EXPECT_EQ(decide(100s), Words());
  EXPECT_EQ(tracker_.next_time(), std::nullopt);
}

TEST_F(DependencyTrackerTest, RestartedRunningJobHasOnlyItsDeadline) {
  DependencyTracker::NewJob job;
  job.id = JobId(2);
  job.conditions = after(After::Ok, {1});
  job.conditions.deadline = kNow + 60s;
  job.wall_limit = 50s;
  job.has_started = true;
  EXPECT_FALSE(tracker_.add(job, kNow, [](JobId) { return Progress::Waiting; }));
  EXPECT_EQ(decide(59s), Words());
  EXPECT_EQ(decide(60s), Words{"2 deadline"});
}

// Random jobs end in random order. Each must go exactly when its conditions hold, and in the end
// only those that can never go are left.
TEST_F(DependencyTrackerTest, LosesNoJob) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    DependencyTracker tracker;
    std::map<JobId, Progress> progress;
    std::map<JobId, std::vector<Dependency>> wanted;
    std::set<JobId> waiting;
    std::set<JobId> free;
    for (std::uint64_t id = 1; id <= 40; ++id) {
      DependencyTracker::NewJob job;
      job.id = JobId(id);
      for (std::uint64_t i = 0; id > 1 && i < random() % 4; ++i) {
        job.conditions.after.push_back(
            {static_cast<After>(random() % 4), JobId(1 + random() % (id - 1))});
      }
      wanted[job.id] = job.conditions.after;
      progress[job.id] = Progress::Waiting;
      const bool waits = tracker.add(job, kNow, [&](JobId other) { return progress.at(other); });
      (waits ? waiting : free).insert(job.id);
    }
    while (!free.empty()) {
      auto chosen = free.begin();
      std::advance(chosen, random() % free.size());
      const JobId id = *chosen;
      if (random() % 2 == 0 && progress[id] == Progress::Waiting) {
        progress[id] = Progress::Started;
        tracker.started(id, kNow);
      } else {
        free.erase(id);
        progress[id] = random() % 2 == 0 ? Progress::Ok : Progress::NotOk;
        tracker.ended(id, UserId(), "", progress[id] == Progress::Ok);
      }
      for (const WaitDecision& decision : tracker.decide(kNow)) {
        if (decision.what != What::Go) continue;
        EXPECT_EQ(waiting.erase(decision.job), 1U);
        free.insert(decision.job);
      }
    }
    for (const JobId id : waiting) {
      const bool is_never = std::ranges::any_of(wanted[id], [&](const Dependency& one) {
        const Progress now = progress.at(one.job);
        return now == Progress::Waiting || (one.kind == After::Ok && now == Progress::NotOk) ||
               (one.kind == After::NotOk && now == Progress::Ok);
      });
      EXPECT_TRUE(is_never) << id.value();
    }
  }
}

template <class Message>
class WaitMessages : public ::testing::Test {};

TYPED_TEST_SUITE(WaitMessages, proto::waits_messages);

TYPED_TEST(WaitMessages, ValidMessagesRoundTrip) {
  proto::expect_round_trips<TypeParam>();
}

TYPED_TEST(WaitMessages, AnyMessageGivesValueOrError) {
  proto::expect_value_or_error<TypeParam>();
}

TEST(Conditions, RefusesUnknownValues) {
  EXPECT_EQ(pack_conditions({}), "");
  EXPECT_FALSE(unpack_conditions("\xff"));
  EXPECT_FALSE(unpack_conditions(pack_conditions({{{After::Ok, JobId(0)}}, false, {}, {}, false})));
  const std::vector<Dependency> many(kMaxDependencies + 1, {After::Ok, JobId(1)});
  EXPECT_TRUE(unpack_conditions(pack_conditions({many})).error().is(Errc::TooLarge));
}

TEST_F(DependencyTrackerTest, ChangedJobWaitsForItsNewConditions) {
  EXPECT_FALSE(add(1));
  EXPECT_FALSE(add(2));
  EXPECT_TRUE(add(3, after(After::Ok, {1})));
  const auto change = [this](Conditions conditions, const std::string& name,
                             const std::string& old_name) {
    DependencyTracker::NewJob job;
    job.id = JobId(3);
    job.user = kAlice;
    job.name = name;
    job.conditions = std::move(conditions);
    return tracker_.change(std::move(job), old_name, kNow, [](JobId) { return Progress::Waiting; });
  };
  EXPECT_TRUE(change(after(After::Ended, {2}), "x", "x"));
  end(1, false);
  EXPECT_EQ(why(3), "waits for job 2 to end (afterany:2)");
  Conditions alone;
  alone.singleton = true;
  EXPECT_TRUE(change(alone, "x", "x"));
  EXPECT_FALSE(change(alone, "y", "x")) << "no other job has this name";
  EXPECT_TRUE(add(4, alone, "y"));
  EXPECT_FALSE(change({}, "z", "y"));
  EXPECT_EQ(decide(), Words{"4 go"});
}

}  // namespace
}  // namespace score::head
