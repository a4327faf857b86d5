#include "scored/head/jobs/array_tracker.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace score::head {
namespace {

constexpr JobId kArray(10);

ArrayTasks tasks_of(std::string_view text) {
  const auto array = parse_array(text);
  EXPECT_TRUE(array) << text;
  return array ? *array : ArrayTasks();
}

std::string error_of(std::string_view text) {
  const auto array = parse_array(text);
  return array ? "" : array.error().context();
}

class ArrayTrackerTest : public ::testing::Test {
 protected:
  void open(std::string_view text, std::uint32_t next = 0) {
    const ArrayTasks tasks = tasks_of(text);
    tracker_.add(kArray, tasks, next, tasks.tasks.size());
    tracker_.set_open(kArray, true);
  }

  // Makes the next task a job, and returns its number; -1 if there is none.
  int step(bool is_placed) {
    const auto task = tracker_.next_task(kArray);
    if (!task) return -1;
    tracker_.take(kArray);
    EXPECT_FALSE(tracker_.next_task(kArray));  // the task is being stored
    tracker_.became(kArray, *task, JobId(100 + *task), is_placed);
    return static_cast<int>(*task);
  }

  ArrayTracker tracker_;
};

TEST(ArrayText, IsReadAndWritten) {
  EXPECT_EQ(tasks_of("0-99%8").at_once, 8U);
  EXPECT_EQ(text_of(tasks_of("0-99%8")), "0-99%8");
  EXPECT_EQ(text_of(tasks_of("1,3,5-9:2")), "1-9:2");
  EXPECT_EQ(text_of(tasks_of("5-99").tasks.empty() ? ArrayTasks() : tasks_of("5-99")), "5-99");
}

TEST(ArrayText, ErrorsAreOneLine) {
  EXPECT_EQ(error_of("0-999999999"),
            "array 0-999999999: 1000000000 numbers; at most 1000000 are possible");
  EXPECT_EQ(error_of("0-9%0"),
            "array 0-9%0: % must be followed by the number of tasks that run at a time");
  for (const char* text : {"", "%", "%8", "0-9%", "0-9%x", "0-9%1%2", "x", "0-9%-1"}) {
    EXPECT_NE(error_of(text), "") << text;
  }
}

TEST_F(ArrayTrackerTest, OnlyOneTaskWaitsInTheQueue) {
  open("0-2");
  EXPECT_EQ(step(false), 0);
  EXPECT_EQ(step(false), -1);
  EXPECT_EQ(tracker_.view(kArray).in_queue, JobId(100));
  EXPECT_EQ(tracker_.view(kArray).counts.waiting, 3U);
  tracker_.placed(kArray, 0);
  EXPECT_EQ(tracker_.view(kArray).in_queue, std::nullopt);
  EXPECT_EQ(step(true), 1);
  EXPECT_EQ(step(true), 2);
  EXPECT_EQ(step(true), -1);
  EXPECT_EQ(tracker_.view(kArray).counts.running, 3U);
}

TEST_F(ArrayTrackerTest, RunsNoMoreThanItsLimit) {
  open("1-9:2%2");
  EXPECT_EQ(step(true), 1);
  EXPECT_EQ(step(true), 3);
  EXPECT_EQ(step(true), -1);
  EXPECT_TRUE(tracker_.view(kArray).is_full);
  EXPECT_EQ(tracker_.view(kArray).waiting, "5-9:2%2");
  tracker_.ended(kArray, 1, JobState::Completed);
  EXPECT_EQ(step(true), 5);
  EXPECT_EQ(step(true), -1);
}

TEST_F(ArrayTrackerTest, IsDoneWhenEveryTaskHasEnded) {
  open("0-1");
  step(true), step(true);
  tracker_.ended(kArray, 1, JobState::Failed);
  EXPECT_FALSE(tracker_.is_done(kArray));
  tracker_.ended(kArray, 0, JobState::Completed);
  EXPECT_TRUE(tracker_.is_done(kArray));
  EXPECT_EQ(tracker_.view(kArray).counts.completed, 1U);
  EXPECT_EQ(tracker_.view(kArray).counts.failed, 1U);
}

TEST_F(ArrayTrackerTest, DroppedTasksCountAsFailed) {
  open("0-9");
  step(true);
  tracker_.drop_tasks(kArray, tasks_of("0-4").tasks);
  EXPECT_EQ(tracker_.view(kArray).counts.failed, 4U);
  EXPECT_EQ(tracker_.jobs(kArray, nullptr), (std::map<std::uint32_t, JobId>{{0, JobId(100)}}));
  EXPECT_EQ(step(true), 5);
  tracker_.drop_tasks(kArray, tasks_of("0-9").tasks);
  tracker_.ended(kArray, 0, JobState::Completed), tracker_.ended(kArray, 5, JobState::Completed);
  EXPECT_TRUE(tracker_.is_done(kArray));
}

TEST_F(ArrayTrackerTest, CancelledTasksAreNotBroken) {
  open("0-3");
  step(true), step(true), step(true), step(true);
  tracker_.ended(kArray, 0, JobState::Completed);
  tracker_.ended(kArray, 1, JobState::Cancelled);
  tracker_.ended(kArray, 2, JobState::Cancelled);
  EXPECT_EQ(tracker_.view(kArray).counts.failed, 2U);
  EXPECT_EQ(tracker_.view(kArray).counts.broken, 0U);
  tracker_.ended(kArray, 3, JobState::TimedOut);
  EXPECT_EQ(tracker_.view(kArray).counts.failed, 3U);
  EXPECT_EQ(tracker_.view(kArray).counts.broken, 1U);
}

TEST_F(ArrayTrackerTest, ClosedArrayGivesNoTasks) {
  tracker_.add(kArray, tasks_of("0-9"), 0, 10);
  EXPECT_EQ(step(true), -1);
  EXPECT_FALSE(tracker_.is_done(kArray));
  tracker_.set_open(kArray, true);
  EXPECT_EQ(step(true), 0);
}

TEST_F(ArrayTrackerTest, UnstoredTaskIsNextAgain) {
  open("3-4");
  tracker_.take(kArray);
  tracker_.not_stored(kArray);
  EXPECT_EQ(tracker_.next_task(kArray), 3U);
}

TEST_F(ArrayTrackerTest, ContinuesAfterARestart) {
  open("0-9%3", 4);
  tracker_.became(kArray, 2, JobId(50), true);
  tracker_.became(kArray, 3, JobId(51), false);
  tracker_.count_ended(kArray, 1, 0);
  EXPECT_EQ(step(true), -1);
  tracker_.placed(kArray, 3);
  EXPECT_EQ(step(true), 4);
  EXPECT_EQ(tracker_.view(kArray).counts.completed, 1U);
  EXPECT_EQ(tracker_.view(kArray).counts.failed, 1U);
  EXPECT_EQ(tracker_.view(kArray).waiting, "5-9%3");
}

TEST_F(ArrayTrackerTest, DroppedTasksCountAsFailedAfterARestart) {
  tracker_.add(kArray, tasks_of("0-4,8-9"), 3, 10);
  tracker_.count_ended(kArray, 3, 1);
  EXPECT_EQ(tracker_.view(kArray).counts.failed, 3U);
  EXPECT_EQ(tracker_.view(kArray).counts.broken, 1U);
  EXPECT_EQ(tracker_.view(kArray).counts.waiting, 4U);
  tracker_.forget(kArray);
  tracker_.add(kArray, tasks_of("0"), 1, 10);  // none is left
  EXPECT_TRUE(tracker_.is_done(kArray));
  EXPECT_EQ(tracker_.view(kArray).counts.failed, 10U);
}

TEST_F(ArrayTrackerTest, TaskDroppedWhileStoringCountsOnce) {
  open("0-1");
  tracker_.take(kArray);
  EXPECT_EQ(tracker_.view(kArray).counts.waiting, 2U);
  tracker_.drop_tasks(kArray, tasks_of("0").tasks);
  EXPECT_FALSE(tracker_.became(kArray, 0, JobId(100), false));
  tracker_.ended(kArray, 0, JobState::Failed);
  EXPECT_EQ(tracker_.view(kArray).counts.failed, 1U);
  tracker_.take(kArray);
  tracker_.drop_tasks(kArray, tasks_of("1").tasks);
  tracker_.not_stored(kArray);
  EXPECT_EQ(tracker_.view(kArray).counts.failed, 2U);
  EXPECT_TRUE(tracker_.is_done(kArray));
}

TEST_F(ArrayTrackerTest, IgnoresUnknownArrays) {
  tracker_.placed(kArray, 1), tracker_.ended(kArray, 1, JobState::Completed),
      tracker_.not_stored(kArray);
  EXPECT_FALSE(tracker_.is_done(kArray));
  EXPECT_EQ(tracker_.view(kArray).waiting, "");
}

// Whatever happens, no task runs twice or is lost, and never more than the limit run.
TEST_F(ArrayTrackerTest, RunsEachTaskOnce) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    tracker_.forget(kArray);
    open("0-49%5");
    std::set<std::uint32_t> seen;
    std::set<std::uint32_t> active;
    std::uint32_t dropped = 0;
    while (!tracker_.is_done(kArray)) {
      const auto task = tracker_.next_task(kArray);
      if (task && random() % 2 == 0) {
        tracker_.take(kArray);
        if (random() % 4 == 0) {
          tracker_.not_stored(kArray);
          continue;
        }
        EXPECT_TRUE(seen.insert(*task).second);
        tracker_.became(kArray, *task, JobId(100 + *task), random() % 2 == 0);
        active.insert(*task);
      } else if (!active.empty() && random() % 2 == 0) {
        auto chosen = active.begin();
        std::advance(chosen, random() % active.size());
        tracker_.ended(kArray, *chosen, JobState::Completed);
        active.erase(chosen);
      } else if (!active.empty()) {
        tracker_.placed(kArray, *active.begin());
      } else if (random() % 10 == 0) {
        const std::string one = std::to_string(random() % 50);
        const auto set = tasks_of(one).tasks;
        dropped += tracker_.rest(kArray).tasks.contains(*set.next(0)) ? 1 : 0;
        tracker_.drop_tasks(kArray, set);
      }
      EXPECT_LE(active.size(), 5U);
      EXPECT_EQ(tracker_.view(kArray).counts.failed, dropped);
    }
    EXPECT_EQ(seen.size() + dropped, 50U);
    EXPECT_EQ(tracker_.view(kArray).counts.completed, seen.size());
    EXPECT_EQ(tracker_.view(kArray).counts.failed, dropped);
  }
}

}  // namespace
}  // namespace score::head
