#include "base/os/cpu_cgroup.hpp"

#include "base/os/cgroup.hpp"
#include "base/os/fd.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

namespace score {
namespace {

constexpr std::string_view kMounts =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:1 - cgroup2 cgroup2 rw\n";

TEST(CpuCgroup, FindsTheMountOfTheController) {
  EXPECT_EQ(parse_cpu_mount(kMounts).value(), "/sys/fs/cgroup/cpu");
  for (const auto* text : {"", "1 - cgroup x cpu", "1 1 0:2 / /x rw - cgroup cgroup rw,cpuset",
                           "1 1 0:2 / x rw - cgroup cgroup rw,cpu", "1 1 0:2 / /x rw - cgroup c",
                           "1 1 0:2 /part /x rw - cgroup cgroup rw,cpu"}) {
    EXPECT_TRUE(parse_cpu_mount(text).error().is(Errc::NotFound)) << text;
  }
}

TEST(CpuCgroup, FindsThePathOfTheController) {
  EXPECT_EQ(parse_cpu_path("3:cpuset:/a\n2:cpuacct,cpu:/b c\n0::/d\n").value(), "/b c");
  EXPECT_EQ(parse_cpu_path("1:cpu:/").value(), "/");
  for (const auto* text : {"", ":", "::", "1:cpu", "1:cpu:", "1:cpu:a", "0::/cpu"}) {
    EXPECT_TRUE(parse_cpu_path(text).error().is(Errc::NotFound)) << text;
  }
}

TEST(CpuCgroup, SurvivesEveryTruncationAndRandomBytes) {
  for (std::size_t length = 0; length < kMounts.size(); ++length) {
    const auto mount = parse_cpu_mount(kMounts.substr(0, length));
    EXPECT_TRUE(mount.value_or("/sys/fs/cgroup/cpu").starts_with("/sys/fs/cgroup/cpu"));
  }
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text(kMounts);
    for (int flips = 0; flips < 20; ++flips)
      text[random() % text.size()] = static_cast<char>(random());
    EXPECT_EQ(parse_cpu_mount(text).value_or("/")[0], '/');
    EXPECT_EQ(parse_cpu_path(text).value_or("/")[0], '/');
  }
}

TEST(CpuCgroup, EachNodeAddsItsWeightUntilRemoved) {
  const auto own = own_cpu_cgroup();
  const auto tree = own_cgroup();
  if (!own || !tree) GTEST_SKIP() << "no cpu hierarchy of version 1";
  const std::string root = *tree + "/scored-weight-test-" + std::to_string(getpid());
  if (!Cgroup::create(root) || !Cgroup::create(root + "/node")) GTEST_SKIP() << "cannot write";
  ASSERT_TRUE(enter_cpu_jobs_place(root));
  ASSERT_TRUE(enter_cpu_jobs_place(root + "/node"));
  const auto shares = [&own](const char* place) {
    return std::stoul(read_file(*own + place + "/cpu.shares", 32).value());
  };
  EXPECT_GE(shares("/scored"), 2 * 1024U) << "other nodes of this host may be there";
  EXPECT_EQ(shares("/scored/jobs"), 2U);
  const std::string node = *own + "/scored/jobs/" + cpu_job_prefix(root).value() + "node";
  EXPECT_TRUE(std::filesystem::exists(node));
  remove_cpu_jobs(root);
  EXPECT_FALSE(std::filesystem::exists(node));
  EXPECT_TRUE(remove_cgroup_tree(root));
}

TEST(CpuCgroup, RemovesOnlyTheJobsOfOneNode) {
  const auto own = own_cpu_cgroup();
  const auto tree = own_cgroup();
  if (!own || !tree) GTEST_SKIP() << "no cpu hierarchy of version 1";
  const std::string root = *tree + "/scored-cpu-test-" + std::to_string(getpid());
  if (!Cgroup::create(root) || !Cgroup::create(root + "/node")) GTEST_SKIP() << "cannot write";
  for (const bool is_shared : {false, true}) {
    const std::string place = is_shared ? make_cpu_jobs_place().value() : *own;
    std::vector<std::string> made;
    for (const auto& node : {root, root + "/node", *tree}) {
      made.push_back(place + "/" + cpu_job_prefix(node).value() + std::to_string(getpid()));
      ASSERT_EQ(mkdir(made.back().c_str(), 0755), 0) << made.back();
    }
    remove_cpu_jobs(root);
    EXPECT_FALSE(std::filesystem::exists(made[0]));
    EXPECT_FALSE(std::filesystem::exists(made[1]));
    EXPECT_TRUE(std::filesystem::exists(made[2]));
    rmdir(made[2].c_str());
  }
  remove_cpu_jobs(root);
  EXPECT_TRUE(remove_cgroup_tree(root));
}

}  // namespace
}  // namespace score
