#include "base/os/cgroup.hpp"

#include "base/os/spawn.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <random>
#include <stdlib.h>
#include <unistd.h>
#include <vector>

namespace score {
namespace {

constexpr std::string_view kMixed =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:1 master:2 - cgroup2 cgroup2 rw\n";

TEST(Cgroup2Mount, IsFoundNextToVersion1) {
  EXPECT_EQ(parse_cgroup2_mount(kMixed).value(), "/sys/fs/cgroup/unified");
}

TEST(Cgroup2Mount, IsFoundAlone) {
  EXPECT_EQ(parse_cgroup2_mount("24 1 0:2 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw").value(),
            "/sys/fs/cgroup");
}

TEST(Cgroup2Mount, PrefersTheRootOfTheTree) {
  EXPECT_EQ(
      parse_cgroup2_mount("1 1 0:2 /a /one rw - cgroup2 x rw\n1 1 0:2 / /two rw - cgroup2 x rw")
          .value(),
      "/two");
  EXPECT_EQ(parse_cgroup2_mount("1 1 0:2 /a /one rw - cgroup2 x rw").value(), "/one");
}

TEST(Cgroup2Mount, UndoesOctalEscapes) {
  EXPECT_EQ(parse_cgroup2_mount("1 1 0:2 / /a\\040b\\134c rw - cgroup2 x rw").value(), "/a b\\c");
  EXPECT_EQ(parse_cgroup2_mount("1 1 0:2 / /a\\04 rw - cgroup2 x rw").value(), "/a\\04");
}

TEST(JobsUnit, IsNextToTheOwnCgroup) {
  namespace fs = std::filesystem;
  const fs::path slice = fs::temp_directory_path() / ("scored-slice-" + std::to_string(getpid()));
  const std::string own = slice / "scored-node.service";
  const std::string unit = slice / "scored-jobs.service";
  fs::create_directories(own);
  EXPECT_TRUE(find_jobs_unit(own).error().is(Errc::NotFound));
  fs::create_directories(unit);
  EXPECT_EQ(find_jobs_unit(own).value(), unit);
  EXPECT_TRUE(find_jobs_unit(slice).error().is(Errc::NotFound));
  for (const char* path : {"", "/", "x"}) EXPECT_FALSE(find_jobs_unit(path)) << path;
  fs::remove_all(slice);
  EXPECT_TRUE(is_jobs_unit(unit));
  EXPECT_FALSE(is_jobs_unit(own));
}

TEST(Cgroup2Mount, IsNotFoundInOtherText) {
  for (const auto* text :
       {"", "\n\n", " - cgroup2", "1 - cgroup2 x", "1 1 0:2 / relative rw - cgroup2 x rw",
        "1 1 0:2 / /x rw - cgroup x rw", "1 1 0:2 / /cgroup2 rw - tmpfs cgroup2 rw",
        "1 1 0:2 /  rw - cgroup2 x rw"}) {
    EXPECT_TRUE(parse_cgroup2_mount(text).error().is(Errc::NotFound)) << text;
  }
}

TEST(Cgroup2Mount, SurvivesEveryTruncationAndRandomBytes) {
  for (std::size_t length = 0; length < kMixed.size(); ++length) {
    const auto mount = parse_cgroup2_mount(kMixed.substr(0, length));
    EXPECT_EQ(mount.value_or("/sys/fs/cgroup/unified"), "/sys/fs/cgroup/unified");
  }
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text(kMixed);
    for (int flips = 0; flips < 20; ++flips)
      text[random() % text.size()] = static_cast<char>(random());
    const auto mount = parse_cgroup2_mount(text);
    EXPECT_EQ(mount.value_or("/")[0], '/');
  }
}

TEST(Cgroup2Path, IsTheLineOfVersion2) {
  EXPECT_EQ(parse_cgroup2_path("4:memory:/x\n0::/user.slice/a b\n").value(), "/user.slice/a b");
  EXPECT_TRUE(parse_cgroup2_path("4:memory:/x\n").error().is(Errc::NotFound));
  EXPECT_TRUE(parse_cgroup2_path("0::").error().is(Errc::NotFound));
}

TEST(CgroupEvents, AreReadByName) {
  const auto events = parse_cgroup_events("populated 1\nfrozen 0\n");
  EXPECT_TRUE(events.populated);
  EXPECT_FALSE(events.frozen);
  EXPECT_TRUE(parse_cgroup_events("frozen 1").frozen);
  EXPECT_FALSE(parse_cgroup_events("frozen 10\nfrozen").frozen);
}

// The remaining tests need a writable cgroup2.
class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto own = own_cgroup();
    if (!own) GTEST_SKIP() << own.error().message();
    path = fmt::format("{}/score_test_{}", *own, getpid());
    auto made = Cgroup::create(path);
    if (!made) GTEST_SKIP() << made.error().message();
    cgroup.emplace(*std::move(made));
  }

  void TearDown() override {
    if (cgroup && cgroup->kill()) wait_until([](const CgroupEvents& e) { return !e.populated; });
    if (child.pidfd) std::ignore = reap(child.pidfd.get(), true);
    EXPECT_TRUE(remove_cgroup_tree(path));
  }

  void start_sleeper() {
    SpawnSpec spec;
    spec.path = "/bin/sleep";
    spec.argv = {"sleep", "100"};
    auto started = spawn(spec);
    ASSERT_TRUE(started) << started.error().message();
    child = *std::move(started);
    ASSERT_TRUE(cgroup->add(child.pid));
  }

  // Waits for the kernel's notification, not for time to pass.
  template <typename Predicate>
  bool wait_until(Predicate predicate) {
    const auto changes = open_file(path + "/cgroup.events", O_RDONLY);
    while (true) {
      const auto events = cgroup->events();
      if (!events) return false;
      if (predicate(*events)) return true;
      pollfd notice{.fd = changes.value().get(), .events = POLLPRI, .revents = 0};
      if (poll(&notice, 1, 10'000) <= 0) return false;
    }
  }

  std::string path;
  std::optional<Cgroup> cgroup;
  SpawnedProcess child;
};

TEST_F(CgroupTest, FreezesAndThawsAProcessInIt) {
  start_sleeper();
  EXPECT_EQ(cgroup->processes().value(), std::vector<pid_t>{child.pid});
  ASSERT_TRUE(cgroup->freeze(true));
  EXPECT_TRUE(wait_until([](const CgroupEvents& e) { return e.frozen; }));
  ASSERT_TRUE(cgroup->freeze(true));
  ASSERT_TRUE(cgroup->freeze(false));
  EXPECT_TRUE(wait_until([](const CgroupEvents& e) { return !e.frozen; }));
}

TEST_F(CgroupTest, KillsFrozenProcesses) {
  start_sleeper();
  ASSERT_TRUE(cgroup->freeze(true));
  ASSERT_TRUE(wait_until([](const CgroupEvents& e) { return e.frozen; }));
  ASSERT_TRUE(cgroup->kill());
  EXPECT_EQ(reap(child.pidfd.get(), true).value()->signal, SIGKILL);
  child = {};
  EXPECT_TRUE(wait_until([](const CgroupEvents& e) { return !e.populated; }));
}

// A plain directory looks like a cgroup of Linux 5.13.
TEST(KillCgroup, KillsEachProcessWithoutCgroupKill) {
  std::string path = "/tmp/score_cgroup_XXXXXX";
  ASSERT_NE(mkdtemp(path.data()), nullptr);
  std::filesystem::create_directory(path + "/tasks");
  std::vector<SpawnedProcess> children;
  for (const char* below : {"/cgroup.procs", "/tasks/cgroup.procs"}) {
    SpawnSpec spec;
    spec.path = "/bin/sleep";
    spec.argv = {"sleep", "100"};
    auto started = spawn(spec);
    ASSERT_TRUE(started);
    std::ofstream(path + below) << "0\n" << started->pid << "\n";
    children.push_back(*std::move(started));
  }
  EXPECT_TRUE(kill_cgroup(path));
  for (const auto& child : children) {
    EXPECT_EQ(reap(child.pidfd.get(), true).value()->signal, SIGKILL);
  }
  std::filesystem::remove_all(path);
  EXPECT_TRUE(kill_cgroup(path).error().is(std::errc::no_such_file_or_directory));
}

TEST_F(CgroupTest, CannotBeRemovedWhileInhabited) {
  start_sleeper();
  EXPECT_TRUE(remove_cgroup_tree(path).error().is(std::errc::device_or_resource_busy));
}

TEST_F(CgroupTest, RemovalDeletesTheWholeTree) {
  ASSERT_TRUE(Cgroup::create(path + "/tasks"));
  ASSERT_TRUE(remove_cgroup_tree(path));
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(remove_cgroup_tree(path));
  EXPECT_FALSE(Cgroup::open(path));
}

TEST_F(CgroupTest, NamesTheFileThatCannotBeWritten) {
  const auto status = cgroup->write("no.such", "1");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message().find(path + "/no.such"), std::string::npos);
}

}  // namespace
}  // namespace score
