#include "scored/node/attempts/job_cgroups.hpp"

#include "base/os/cgroup.hpp"
#include "scored/node/attempts/process_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
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
    for (int i = 0; i < 1'000 && !remove_cgroup_tree(root_); ++i) usleep(2'000);
  }

  std::string root_;
  std::optional<JobCgroups> cgroups_;
};

TEST_F(JobCgroupsTest, MakesListsAndRemoves) {
  ASSERT_TRUE(cgroups_->make(AttemptId{256}, Bytes(0)));
  ASSERT_TRUE(cgroups_->make(AttemptId{256}, Bytes(0)));
  ASSERT_TRUE(cgroups_->make(AttemptId{512}, Bytes(0)));
  auto listed = cgroups_->list();
  std::sort(listed.begin(), listed.end());
  EXPECT_EQ(listed, (std::vector{AttemptId{256}, AttemptId{512}}));
  EXPECT_TRUE(cgroups_->remove(AttemptId{256}));
  EXPECT_TRUE(cgroups_->remove(AttemptId{256}));
  EXPECT_EQ(cgroups_->list().size(), 1U);
}

TEST_F(JobCgroupsTest, KillsFrozenTasks) {
  ASSERT_TRUE(cgroups_->make(AttemptId{256}, Bytes(0)));
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
  ASSERT_TRUE(cgroups_->make(AttemptId{256}, Bytes(0)));
  auto tasks = Cgroup::open(cgroups_->tasks_path(AttemptId{256})).value();
  ASSERT_TRUE(tasks.freeze(true));
  cgroups_->thaw_all();
  EXPECT_FALSE(tasks.events()->frozen);
}

TEST(JobCgroups, RefusesADirectoryThatIsNoCgroup) {
  const auto opened = JobCgroups::open("/tmp");
  ASSERT_FALSE(opened);
  EXPECT_TRUE(opened.error().is(Errc::Unsupported));
}

TEST(JobCgroups, ReadsTheCountOfKilledTasks) {
  EXPECT_EQ(parse_oom_kills("low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 0\n"), 3U);
  EXPECT_EQ(parse_oom_kills(""), 0U);
  EXPECT_EQ(parse_oom_kills("oom_kill many\n"), 0U);
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
