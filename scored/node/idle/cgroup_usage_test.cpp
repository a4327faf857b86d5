// Tests how the files of a cgroup are read.
#include "scored/node/idle/cgroup_usage.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace score::node {
namespace {

using namespace std::chrono_literals;

TEST(CgroupUsage, ReadsTheFirstLineOnly) {
  const std::string directory = testing::TempDir() + "usage" + std::to_string(getpid());
  ASSERT_EQ(mkdir(directory.c_str(), 0700), 0);
  const auto with = [&](const std::string& text) {
    std::ofstream(directory + "/cpu.stat") << text;
    auto usage = CgroupUsage::open(directory);
    EXPECT_TRUE(usage);
    return *std::move(usage);
  };
  EXPECT_EQ(with("usage_usec 1234\nuser_usec 7\n")->used(), 1234us);
  for (const char* text :
       {"", "usage_usec", "usage_usec ", "usage_usec x", "user_usec 7\n",
        "usage_usec 99999999999999999999\n", "usage_usec 9223372036854775807\n"}) {
    EXPECT_LT(with(text)->used(), Duration{0}) << text;
  }
  EXPECT_EQ(with("usage_usec 1000\n")->waited(), 0us);
  const std::string pressure = directory + "/cpu.pressure";
  std::ofstream(pressure) << "some avg10=0.00 avg60=0.10 avg300=0.20 total=77\nfull total=9\n";
  EXPECT_EQ(with("usage_usec 1000\n")->waited(), 77us);
  std::ofstream(pressure) << "nonsense\n";
  EXPECT_EQ(with("usage_usec 1000\n")->waited(), 0us);
  const auto usage = with("usage_usec 1000\n");
  const Duration own = usage->used_by(getpid());
  EXPECT_GT(own, 0ns);
  EXPECT_GE(usage->used_by(getpid()), own);
  EXPECT_LT(usage->used_by(1 << 25), 0ns);
  unlink(pressure.c_str());
  unlink((directory + "/cpu.stat").c_str());
  rmdir(directory.c_str());
  EXPECT_FALSE(CgroupUsage::open(directory));
}

}  // namespace
}  // namespace score::node
