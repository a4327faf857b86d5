#include "scored/head/waits/array_book.hpp"

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

class ArrayBookTest : public ::testing::Test {
 protected:
  void open(std::string_view text, std::uint32_t next = 0) {
    const ArrayTasks tasks = tasks_of(text);
    book_.add(kArray, tasks, next, tasks.tasks.size());
    book_.set_open(kArray, true);
  }

  // Makes the next task a job, and returns its number; -1 if there is none.
  int step(bool is_placed) {
    const auto task = book_.next_task(kArray);
    if (!task) return -1;
    book_.take(kArray);
    EXPECT_FALSE(book_.next_task(kArray));  // the task is being stored
    book_.became(kArray, *task, JobId(100 + *task), is_placed);
    return static_cast<int>(*task);
  }

  ArrayBook book_;
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

TEST_F(ArrayBookTest, OnlyOneTaskWaitsInTheQueue) {
  open("0-2");
  EXPECT_EQ(step(false), 0);
  EXPECT_EQ(step(false), -1);
  EXPECT_EQ(book_.view(kArray).in_queue, JobId(100));
  EXPECT_EQ(book_.view(kArray).counts.waiting, 3U);
  book_.placed(kArray, 0);
  EXPECT_EQ(book_.view(kArray).in_queue, std::nullopt);
  EXPECT_EQ(step(true), 1);
  EXPECT_EQ(step(true), 2);
  EXPECT_EQ(step(true), -1);
  EXPECT_EQ(book_.view(kArray).counts.running, 3U);
}

TEST_F(ArrayBookTest, RunsNoMoreThanItsLimit) {
  open("1-9:2%2");
  EXPECT_EQ(step(true), 1);
  EXPECT_EQ(step(true), 3);
  EXPECT_EQ(step(true), -1);
  EXPECT_TRUE(book_.view(kArray).is_full);
  EXPECT_EQ(book_.view(kArray).waiting, "5-9:2%2");
  book_.ended(kArray, 1, JobState::Completed);
  EXPECT_EQ(step(true), 5);
  EXPECT_EQ(step(true), -1);
}

TEST_F(ArrayBookTest, IsDoneWhenEveryTaskHasEnded) {
  open("0-1");
  step(true), step(true);
  book_.ended(kArray, 1, JobState::Failed);
  EXPECT_FALSE(book_.is_done(kArray));
  book_.ended(kArray, 0, JobState::Completed);
  EXPECT_TRUE(book_.is_done(kArray));
  EXPECT_EQ(book_.view(kArray).counts.completed, 1U);
  EXPECT_EQ(book_.view(kArray).counts.failed, 1U);
}

TEST_F(ArrayBookTest, DroppedTasksCountAsFailed) {
  open("0-9");
  step(true);
  book_.drop_tasks(kArray, tasks_of("0-4").tasks);
  EXPECT_EQ(book_.view(kArray).counts.failed, 4U);
  EXPECT_EQ(book_.jobs(kArray, nullptr), (std::map<std::uint32_t, JobId>{{0, JobId(100)}}));
  EXPECT_EQ(step(true), 5);
  book_.drop_tasks(kArray, tasks_of("0-9").tasks);
  book_.ended(kArray, 0, JobState::Completed), book_.ended(kArray, 5, JobState::Completed);
  EXPECT_TRUE(book_.is_done(kArray));
}

TEST_F(ArrayBookTest, CancelledTasksAreNotBroken) {
  open("0-3");
  step(true), step(true), step(true), step(true);
  book_.ended(kArray, 0, JobState::Completed);
  book_.ended(kArray, 1, JobState::Cancelled);
  book_.ended(kArray, 2, JobState::Cancelled);
  EXPECT_EQ(book_.view(kArray).counts.failed, 2U);
  EXPECT_EQ(book_.view(kArray).counts.broken, 0U);
  book_.ended(kArray, 3, JobState::TimedOut);
  EXPECT_EQ(book_.view(kArray).counts.failed, 3U);
  EXPECT_EQ(book_.view(kArray).counts.broken, 1U);
}

TEST_F(ArrayBookTest, ClosedArrayGivesNoTasks) {
  book_.add(kArray, tasks_of("0-9"), 0, 10);
  EXPECT_EQ(step(true), -1);
  EXPECT_FALSE(book_.is_done(kArray));
  book_.set_open(kArray, true);
  EXPECT_EQ(step(true), 0);
}

TEST_F(ArrayBookTest, UnstoredTaskIsNextAgain) {
  open("3-4");
  book_.take(kArray);
  book_.not_stored(kArray);
  EXPECT_EQ(book_.next_task(kArray), 3U);
}

TEST_F(ArrayBookTest, ContinuesAfterARestart) {
  open("0-9%3", 4);
  book_.became(kArray, 2, JobId(50), true);
  book_.became(kArray, 3, JobId(51), false);
  book_.count_ended(kArray, 1, 0);
  EXPECT_EQ(step(true), -1);
  book_.placed(kArray, 3);
  EXPECT_EQ(step(true), 4);
  EXPECT_EQ(book_.view(kArray).counts.completed, 1U);
  EXPECT_EQ(book_.view(kArray).counts.failed, 1U);
  EXPECT_EQ(book_.view(kArray).waiting, "5-9%3");
}

TEST_F(ArrayBookTest, DroppedTasksCountAsFailedAfterARestart) {
  book_.add(kArray, tasks_of("0-4,8-9"), 3, 10);
  book_.count_ended(kArray, 3, 1);
  EXPECT_EQ(book_.view(kArray).counts.failed, 3U);
  EXPECT_EQ(book_.view(kArray).counts.broken, 1U);
  EXPECT_EQ(book_.view(kArray).counts.waiting, 4U);
  book_.forget(kArray);
  book_.add(kArray, tasks_of("0"), 1, 10);  // none is left
  EXPECT_TRUE(book_.is_done(kArray));
  EXPECT_EQ(book_.view(kArray).counts.failed, 10U);
}

TEST_F(ArrayBookTest, TaskDroppedWhileStoringCountsOnce) {
  open("0-1");
  book_.take(kArray);
  EXPECT_EQ(book_.view(kArray).counts.waiting, 2U);
  book_.drop_tasks(kArray, tasks_of("0").tasks);
  EXPECT_FALSE(book_.became(kArray, 0, JobId(100), false));
  book_.ended(kArray, 0, JobState::Failed);
  EXPECT_EQ(book_.view(kArray).counts.failed, 1U);
  book_.take(kArray);
  book_.drop_tasks(kArray, tasks_of("1").tasks);
  book_.not_stored(kArray);
  EXPECT_EQ(book_.view(kArray).counts.failed, 2U);
  EXPECT_TRUE(book_.is_done(kArray));
}

TEST_F(ArrayBookTest, IgnoresUnknownArrays) {
  book_.placed(kArray, 1), book_.ended(kArray, 1, JobState::Completed), book_.not_stored(kArray);
  EXPECT_FALSE(book_.is_done(kArray));
  EXPECT_EQ(book_.view(kArray).waiting, "");
}

// Whatever happens, no task runs twice or is lost, and never more than the limit run.
TEST_F(ArrayBookTest, RunsEachTaskOnce) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    book_.forget(kArray);
    open("0-49%5");
    std::set<std::uint32_t> seen;
    std::set<std::uint32_t> active;
    std::uint32_t dropped = 0;
    while (!book_.is_done(kArray)) {
      const auto task = book_.next_task(kArray);
      if (task && random() % 2 == 0) {
        book_.take(kArray);
        if (random() % 4 == 0) {
          book_.not_stored(kArray);
          continue;
        }
        EXPECT_TRUE(seen.insert(*task).second);
        book_.became(kArray, *task, JobId(100 + *task), random() % 2 == 0);
        active.insert(*task);
      } else if (!active.empty() && random() % 2 == 0) {
        auto chosen = active.begin();
        std::advance(chosen, random() % active.size());
        book_.ended(kArray, *chosen, JobState::Completed);
        active.erase(chosen);
      } else if (!active.empty()) {
        book_.placed(kArray, *active.begin());
      } else if (random() % 10 == 0) {
        const std::string one = std::to_string(random() % 50);
        const auto set = tasks_of(one).tasks;
        dropped += book_.rest(kArray).tasks.contains(*set.next(0)) ? 1 : 0;
        book_.drop_tasks(kArray, set);
      }
      EXPECT_LE(active.size(), 5U);
      EXPECT_EQ(book_.view(kArray).counts.failed, dropped);
    }
    EXPECT_EQ(seen.size() + dropped, 50U);
    EXPECT_EQ(book_.view(kArray).counts.completed, seen.size());
    EXPECT_EQ(book_.view(kArray).counts.failed, dropped);
  }
}

}  // namespace
}  // namespace score::head
