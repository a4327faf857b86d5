// Tests how a task is read, and how reading can fail.
#include "monitor/sampler/proc_text.hpp"
#include "monitor/sampler/task_watch.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace score::monitor {
namespace {

namespace fs = std::filesystem;

std::string stat_line(char state, int parent, int user, int system, int threads = 1) {
  return fmt::format("7 (a (b) c) {} {} 1 1 0 -1 0 0 0 0 0 {} {} 0 0 20 0 {} 0 99 4096 3 18446744",
                     state, parent, user, system, threads);
}

TEST(ProcText, AcceptsAnyProgramName) {
  const auto stat = parse_stat(stat_line('R', 5, 120, 30));
  ASSERT_TRUE(stat) << stat.error().message();
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, 5);
  EXPECT_EQ(stat->user_ticks, 120U);
  EXPECT_EQ(stat->system_ticks, 30U);
  EXPECT_EQ(stat->threads, 1U);
  EXPECT_EQ(stat->resident_pages, 3U);
}

TEST(ProcText, RejectsEveryTruncation) {
  const std::string whole = stat_line('S', 5, 1, 2);
  for (std::size_t size = 0; size < whole.size() - 10; ++size) {
    EXPECT_FALSE(parse_stat(std::string_view(whole).substr(0, size))) << size;
  }
}

TEST(ProcText, SurvivesRandomBytes) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string text(random() % 200, ' ');
    for (char& c : text) c = ") 0123456789-S\n(x"[random() % 17];
    (void)parse_stat(text);
    (void)parse_schedule(text);
    (void)parse_cpu_stat(text);
  }
}

TEST(ProcText, ReadsScheduleAndCgroup) {
  EXPECT_EQ(*parse_schedule("123456789 55 42\n"),
            (ProcessSchedule{Duration(123456789), 42, Duration(55)}));
  EXPECT_FALSE(parse_schedule("12 55"));
  EXPECT_FALSE(parse_schedule("12 55 x"));
  const auto cpu = parse_cpu_stat("usage_usec 30\nuser_usec 20\nsystem_usec 10\nnr_periods 0\n");
  ASSERT_TRUE(cpu);
  EXPECT_EQ(cpu->user, 20us);
  EXPECT_EQ(cpu->system, 10us);
  EXPECT_FALSE(parse_cpu_stat("usage_usec 30\nuser_usec 20\n"));
}

class TaskWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "score_proc_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    proc_ = pattern;
  }

  void TearDown() override { fs::remove_all(proc_); }

  void set(pid_t pid, const std::string& stat, Duration ran, std::uint64_t turns,
           Duration waited = 0s) {
    const fs::path directory = proc_ / std::to_string(pid);
    fs::create_directories(directory);
    std::ofstream(directory / "stat") << stat;
    std::ofstream(directory / "schedstat")
        << fmt::format("{} {} {}\n", ran.count(), waited.count(), turns);
    if (std::find(found_.begin(), found_.end(), pid) == found_.end()) found_.push_back(pid);
  }

  TaskWatch watch(std::vector<pid_t> pids) {
    TaskWatch made(
        {{4, 5}, std::move(pids)}, [this] { return found_; }, proc_.string());
    made.look_up();
    return made;
  }

  fs::path proc_;
  std::vector<pid_t> found_;
};

TEST_F(TaskWatchTest, TaskThatStartsLaterIsTheNextRank) {
  set(10, stat_line('S', 1, 0, 0), 1ms, 5);
  TaskWatch watched = watch({10});
  ASSERT_EQ(watched.read(false).size(), 1U);
  set(11, stat_line('R', 1, 0, 0), 2ms, 6);
  watched.set_pids({10, 11, 12});
  watched.look_up();
  const auto samples = watched.read(false);
  ASSERT_EQ(samples.size(), 2U) << "there is no third rank here";
  EXPECT_EQ(samples[0].processes, 1U);
  EXPECT_EQ(samples[1].rank, Rank(5));
  EXPECT_EQ(samples[1].pid, 11);
  EXPECT_EQ(samples[1].user, 2ms);
  watched.set_pids({});
  EXPECT_EQ(watched.read(false).size(), 2U);
}

TEST_F(TaskWatchTest, CountsChildrenForTheRankThatStartedThem) {
  set(10, stat_line('S', 1, 0, 0), 1ms, 5);
  set(11, stat_line('S', 1, 0, 0), 2ms, 6);
  set(12, stat_line('R', 11, 0, 0), 30ms, 7);
  set(13, stat_line('S', 12, 0, 0), 400ms, 8);
  TaskWatch watched = watch({10, 11});
  const auto samples = watched.read(false);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].rank, Rank(4));
  EXPECT_EQ(samples[0].user, 1ms);
  EXPECT_EQ(samples[0].processes, 1U);
  EXPECT_EQ(samples[1].rank, Rank(5));
  EXPECT_EQ(samples[1].user, 432ms);
  EXPECT_EQ(samples[1].switches, 21U);
  EXPECT_EQ(samples[1].processes, 3U);
  EXPECT_EQ(samples[1].state, TaskState::Running);
}

TEST_F(TaskWatchTest, ProgramsOfScoredBelongToNoRank) {
  set(10, stat_line('S', 1, 0, 0), 1ms, 5);
  set(11, stat_line('S', 1, 0, 0), 2ms, 6);
  std::string line = stat_line('S', 1, 0, 0);
  const auto begin = line.find('(') + 1;
  line.replace(begin, line.rfind(')') - begin, "scored-pmix");
  set(12, line, 30ms, 7);
  TaskWatch watched = watch({10, 11});
  EXPECT_EQ(watched.read(false)[0].processes, 1U);
  EXPECT_EQ(watched.process_count(), 2U);
  line.replace(begin, std::string_view("scored-pmix").size(), "scored-shepherd");
  set(10, line, 1ms, 5);
  EXPECT_EQ(watch({10, 11}).process_count(), 2U) << "a task before its program";
}

TEST_F(TaskWatchTest, SplitsTheScheduleLikeTheTicks) {
  set(10, stat_line('R', 1, 30, 10), 404ms, 5);
  TaskWatch watched = watch({10});
  const auto samples = watched.read(false);
  EXPECT_EQ(samples[0].user, 303ms);
  EXPECT_EQ(samples[0].system, 101ms);
}

TEST_F(TaskWatchTest, UsesTicksForThreadedProcesses) {
  set(10, stat_line('R', 1, 30, 10, 4), 90ms, 5);
  TaskWatch watched = watch({10});
  EXPECT_EQ(watched.read(false)[0].user, 300ms);
}

TEST_F(TaskWatchTest, ReportsFrozenAndEndedTasks) {
  set(10, stat_line('S', 1, 0, 0), 1ms, 5);
  TaskWatch watched = watch({10, 11});
  const auto samples = watched.read(true);
  EXPECT_EQ(samples[0].state, TaskState::Frozen);
  EXPECT_EQ(samples[1].state, TaskState::Ended);
}

TEST_F(TaskWatchTest, RereadsUnreliableStates) {
  set(10, stat_line('R', 1, 0, 0), 1ms, 5);
  TaskWatch watched = watch({10});
  std::ignore = watched.read(false);
  set(10, stat_line('S', 1, 0, 0), 2ms, 6);
  EXPECT_EQ(watched.read(false)[0].state, TaskState::Blocked) << "or frozen in the meantime";
  set(10, stat_line('R', 1, 0, 0), 3ms, 7);
  watched.distrust();
  EXPECT_EQ(watched.read(false)[0].state, TaskState::Running);
}

TEST_F(TaskWatchTest, RejectsPidsOutsideItsProcesses) {
  set(10, stat_line('R', 1, 0, 0), 5ms, 5);
  set(99, stat_line('R', 1, 0, 0), 500s, 5);
  found_ = {10};
  TaskWatch watched = watch({10, 99});
  const auto samples = watched.read(false);
  EXPECT_EQ(samples[0].user, 5ms);
  EXPECT_EQ(samples[1].user, 0ms);
  EXPECT_EQ(samples[1].state, TaskState::Ended);
}

TEST_F(TaskWatchTest, SumsProcessorWaitsOfItsProcesses) {
  set(10, stat_line('S', 1, 0, 0), 1ms, 5, 20ms);
  set(11, stat_line('R', 10, 0, 0), 2ms, 6, 300ms);
  TaskWatch watched = watch({10});
  EXPECT_EQ(watched.read(false)[0].waited, 320ms);
  found_ = {10};
  watched.look_up();
  EXPECT_EQ(watched.read(false)[0].waited, 320ms) << "the child ended";
}

TEST_F(TaskWatchTest, KeepsTimesOfAnEndedTask) {
  set(10, stat_line('R', 1, 0, 0), 50ms, 5);
  TaskWatch watched = watch({10});
  (void)watched.read(false);
  found_.clear();
  watched.look_up();
  const auto samples = watched.read(false);
  EXPECT_EQ(samples[0].user, 50ms);
  EXPECT_EQ(samples[0].state, TaskState::Ended);
  EXPECT_EQ(watched.process_count(), 0U);
}

}  // namespace
}  // namespace score::monitor
