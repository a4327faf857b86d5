#include "scored/node/attempts/job_cgroups.hpp"

#include "base/os/cgroup.hpp"
#include "base/os/cpu_cgroup.hpp"
#include "base/os/fd.hpp"
#include "scored/node/attempts/job_cores.hpp"
#include "scored/node/attempts/process_tree.hpp"
#include "scored/node/kernel/kernel_call.hpp"
#include "scored/node/kernel/switch_target.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::node {
namespace {

class JobCgroupsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto own = own_cgroup();
    if (!own) GTEST_SKIP() << "no cgroup2";
    root_ = *own + "/scored-job-cgroups-" + std::to_string(getpid());
    if (!Cgroup::create(root_)) GTEST_SKIP() << "no cgroup2 that may be written";
    cgroups_ = JobCgroups::open(root_).value();
  }

  void TearDown() override {
    remove_cpu_jobs(root_);
    for (int i = 0; i < 1'000 && !remove_cgroup_tree(root_); ++i) usleep(2'000);
  }

  std::string root_;
  std::optional<JobCgroups> cgroups_;
};

TEST_F(JobCgroupsTest, MakesListsAndRemoves) {
  ASSERT_TRUE(cgroups_->make(AttemptId{256}, {}));
  ASSERT_TRUE(cgroups_->make(AttemptId{256}, {}));
  ASSERT_TRUE(cgroups_->make(AttemptId{512}, {}));
  auto listed = cgroups_->list();
  std::sort(listed.begin(), listed.end());
  EXPECT_EQ(listed, (std::vector{AttemptId{256}, AttemptId{512}}));
  EXPECT_TRUE(cgroups_->remove(AttemptId{256}));
  EXPECT_TRUE(cgroups_->remove(AttemptId{256}));
  EXPECT_EQ(cgroups_->list().size(), 1U);
}

TEST_F(JobCgroupsTest, KillsFrozenTasks) {
  ASSERT_TRUE(cgroups_->make(AttemptId{256}, {}));
  auto tasks = Cgroup::open(cgroups_->tasks_path(AttemptId{256})).value();
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  ASSERT_TRUE(tasks.add(child));
  ASSERT_TRUE(tasks.freeze(true));
  EXPECT_TRUE(cgroups_->kill_tasks(AttemptId{256}));
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST_F(JobCgroupsTest, ThawsWhatItFinds) {
  ASSERT_TRUE(cgroups_->make(AttemptId{256}, {}));
  auto tasks = Cgroup::open(cgroups_->tasks_path(AttemptId{256})).value();
  ASSERT_TRUE(tasks.freeze(true));
  cgroups_->thaw_all();
  EXPECT_FALSE(tasks.events()->frozen);
}

TEST_F(JobCgroupsTest, HelpersHaveLimitsOfTasksAndRunOn) {
  const JobLimits limits{.memory = Bytes(64U << 20U), .processes = 50, .has_helpers = true};
  ASSERT_TRUE(cgroups_->make(AttemptId{256}, limits));
  ASSERT_TRUE(cgroups_->make(AttemptId{512}, {}));
  const auto name_of = [&](AttemptId attempt) {
    const auto places = cgroups_->open_places(attempt).value();
    return std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", places[2].get()));
  };
  EXPECT_EQ(name_of(AttemptId{256}), cgroups_->helpers_path(AttemptId{256}));
  EXPECT_EQ(name_of(AttemptId{512}), cgroups_->tasks_path(AttemptId{512})) << "it has none";
  for (const char* file : {"/pids.max", "/memory.max"}) {  // there is none with version 1
    EXPECT_EQ(read_file(cgroups_->helpers_path(AttemptId{256}) + file, 32).value_or("-"),
              read_file(cgroups_->tasks_path(AttemptId{256}) + file, 32).value_or("-"));
  }
  auto helpers = Cgroup::open(cgroups_->helpers_path(AttemptId{256})).value();
  const auto target = CgroupFreeze::open(cgroups_->tasks_path(AttemptId{256})).value();
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  ASSERT_TRUE(helpers.add(child));
  ASSERT_EQ(target->stop(), 0);
  EXPECT_FALSE(helpers.events()->frozen);
  EXPECT_TRUE(cgroups_->kill_tasks(AttemptId{256}));
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "helpers outlive the tasks";
  EXPECT_TRUE(cgroups_->kill_all(AttemptId{256}));
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

// Returns the file that moves a process to where the attempt's cpu.idle applies.
std::string procs_of(const JobCgroups& cgroups, AttemptId attempt) {
  const bool is_version1 = cgroups.fill_control() == FillControl::Version1;
  const auto idle = std::filesystem::path(cgroups.idle_path(attempt));
  return is_version1 ? idle.parent_path() / "inner" / "tasks"
                     : std::filesystem::path(cgroups.tasks_path(attempt)) / "cgroup.procs";
}

// Starts a process that computes forever, on the first processor that this process may use.
pid_t start_loop(const std::string& procs) {
  const pid_t child = fork();
  if (child != 0) return child;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  int first = 0;
  while (!CPU_ISSET(first, &mine)) ++first;
  CPU_ZERO(&mine);
  CPU_SET(first, &mine);
  sched_setaffinity(0, sizeof mine, &mine);
  const int file = open(procs.c_str(), O_WRONLY);
  if (write(file, "0", 1) != 1) _exit(1);
  for (;;) continue;
}

Duration used_by(pid_t pid) {
  return kernel_time(cpu_clock_of(pid));
}

void use_more(pid_t pid, Duration more) {
  const Duration until = used_by(pid) + more;
  while (used_by(pid) < until) usleep(1'000);
}

TEST_F(JobCgroupsTest, FillerUsesLittleMoreThanIdleTime) {
  const AttemptId one{256}, two{512};
  for (const AttemptId attempt : {one, two}) ASSERT_TRUE(cgroups_->make(attempt, {}));
  if (cgroups_->fill_control() == FillControl::None) GTEST_SKIP() << cgroups_->why_no_fill();
  const auto target =
      CgroupFreeze::open(cgroups_->tasks_path(two), cgroups_->idle_path(two)).value();
  ASSERT_TRUE(target->can_fill());
  const pid_t gang = start_loop(procs_of(*cgroups_, one));
  const pid_t filler = start_loop(procs_of(*cgroups_, two));
  use_more(filler, 5ms);  // both are running
  ASSERT_EQ(target->set_low(true), 0);
  use_more(gang, 100ms);  // time that was already due to the filler
  const Duration before = used_by(filler);
  use_more(gang, 500ms);
  EXPECT_LT(used_by(filler) - before, 10ms);
  kill(gang, SIGSTOP);
  use_more(filler, 100ms);
  EXPECT_EQ(read_file(cgroups_->idle_path(two), 16).value_or(""), "1\n");
  cgroups_->thaw_all();
  EXPECT_EQ(read_file(cgroups_->idle_path(two), 16).value_or(""), "0\n");
  for (const pid_t child : {gang, filler}) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  EXPECT_TRUE(cgroups_->remove(two));
  EXPECT_FALSE(std::filesystem::exists(cgroups_->idle_path(two)));
}

TEST_F(JobCgroupsTest, TasksCannotLeaveTheProcessorsOfTheirJob) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  if (!cgroups_->limits_processors()) GTEST_SKIP() << "no controller cpuset";
  if (CPU_COUNT(&mine) < 2) GTEST_SKIP() << "one processor";
  std::vector<std::uint32_t> usable;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mine)) usable.push_back(cpu);
  }
  ASSERT_TRUE(cgroups_->make(AttemptId{256}, {.processors = {usable[1]}}));
  ASSERT_TRUE(cgroups_->make(AttemptId{512}, {})) << "an overlay job: all processors";
  const auto escapes = [&](AttemptId attempt) {
    const auto places = cgroups_->open_places(attempt).value();
    const pid_t child = fork();
    if (child == 0) {
      for (const auto& place : places) {
        for (const char* name : {"tasks", "cgroup.procs"}) {
          const UniqueFd file(openat(place.get(), name, O_WRONLY));
          if (file && write(file.get(), "0", 1) == 1) break;
        }
      }
      cpu_set_t other;
      CPU_ZERO(&other);
      CPU_SET(usable[0], &other);
      _exit(sched_setaffinity(0, sizeof other, &other) == 0 ? 1 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status) == 1;
  };
  EXPECT_FALSE(escapes(AttemptId{256}));
  EXPECT_TRUE(escapes(AttemptId{512}));
  EXPECT_TRUE(cgroups_->remove(AttemptId{256}));
}

TEST(JobCores, CountFromTheFirstAndWrapAround) {
  JobCores cores{.processors = {2, 3, 8}, .first = 1};
  EXPECT_EQ(cores.processors_of({0, 1, 2}), (std::vector<std::uint32_t>{3, 8, 2}));
  EXPECT_EQ(cpu_list(cores.processors_of({0, 1})), "3,8");
  EXPECT_TRUE(cores.processors_of({}).empty()) << "an overlay job";
  cores.confines = false;
  EXPECT_TRUE(cores.processors_of({0}).empty());
  EXPECT_TRUE(JobCores{}.processors_of({0}).empty());
}

TEST(JobCores, NodeHasProcessorsOfItsCores) {
  JobCores cores{.processors = {2, 3, 8}, .first = 2, .count = 2};
  EXPECT_EQ(cores.processors_of_node(), (std::vector<std::uint32_t>{2, 8}));
  cores.count = 7;
  EXPECT_EQ(cores.processors_of_node(), (std::vector<std::uint32_t>{2, 3, 8}));
  cores.confines = false;
  EXPECT_TRUE(cores.processors_of_node().empty());
}

// Makes a directory tree outside a cgroup file system: its files have no effect and do not appear
// by themselves.
struct FakeTree : testing::Test {
  FakeTree() {
    std::filesystem::create_directories(root);
    std::ofstream(root + "/cgroup.subtree_control");
  }

  ~FakeTree() override { std::filesystem::remove_all(place); }

  void give_controllers(const std::string& words) {
    std::ofstream(root + "/cgroup.controllers") << words;
  }

  static void give_idle(const std::string& directory) {
    std::filesystem::create_directories(directory);
    std::ofstream(directory + "/cpu.idle");
  }

  const std::string place = testing::TempDir() + "fill_place_" + std::to_string(getpid());
  const std::string root = place + "/unified";
  const std::string version1 = place + "/cpu/scored_7_job_";
};

TEST_F(FakeTree, FillsInVersion2WhereTheControllerIs) {
  give_controllers("cpuset cpu memory");
  give_idle(root + "/fill_probe");
  for (const std::string& other : {std::string(), version1}) {
    const FillPlace fill = find_fill_place(root, other);
    EXPECT_EQ(fill.control, FillControl::Unified);
    EXPECT_EQ(fill.job, root + "/job_") << "the directories that every attempt has there";
  }
  std::string enabled;
  std::ifstream(root + "/cgroup.subtree_control") >> enabled;
  EXPECT_EQ(enabled, "+cpu");
}

TEST_F(FakeTree, FillsInVersion1WhereTheHostHasIt) {
  give_controllers("memory");
  give_idle(version1 + "probe");
  const FillPlace fill = find_fill_place(root, version1);
  EXPECT_EQ(fill.control, FillControl::Version1);
  EXPECT_EQ(fill.job, version1);
}

TEST_F(FakeTree, ReportsWhyNothingCanFill) {
  give_controllers("memory");
  EXPECT_EQ(find_fill_place(root, "").why_not, "the cpu controller is not delegated");
  EXPECT_EQ(find_fill_place(root, version1).why_not,
            "no cpu.idle can be made as " + version1 + "probe");
  give_controllers("cpu");
  const FillPlace old_kernel = find_fill_place(root, "");
  EXPECT_EQ(old_kernel.control, FillControl::None);
  EXPECT_EQ(old_kernel.why_not, "the kernel has no cpu.idle");
}

TEST(JobCgroups, RefusesADirectoryThatIsNoCgroup) {
  const auto opened = JobCgroups::open("/tmp");
  ASSERT_FALSE(opened);
  EXPECT_TRUE(opened.error().is(Errc::Unsupported));
}

TEST(JobCgroups, ReadsTheCountOfKilledTasks) {
  const auto kills = [](std::string_view text) { return parse_counter(text, "oom_kill"); };
  EXPECT_EQ(kills("low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 0\n"), 3U);
  EXPECT_EQ(kills(""), 0U);
  EXPECT_EQ(kills("oom_kill many\n"), 0U);
  EXPECT_EQ(kills("oom_kill"), 0U);
}

TEST(ProcessTree, FindsGrandchildrenAndKillsThem) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) {
      setsid();
      [[maybe_unused]] const ssize_t told = write(ready[1], "x", 1);
    }
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const auto below = descendants(getpid());
  EXPECT_NE(std::find(below.begin(), below.end(), child), below.end());
  EXPECT_EQ(descendants(child).size(), 1U);
  EXPECT_EQ(kill_tree(child, 0), 1U);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const int fd : ready) close(fd);
}

}  // namespace
}  // namespace score::node
