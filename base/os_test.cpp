#include "base/os.hpp"

#include "base/os_fake.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <poll.h>
#include <random>
#include <unistd.h>

namespace score {
namespace {

TEST(ParseMeminfo, ReadsOneKey) {
  constexpr std::string_view kText = "MemTotal:       24571432 kB\nMemTotalX: 1 kB\nHugePages: 7\n";
  EXPECT_EQ(parse_meminfo(kText, "MemTotal").value(), 24'571'432_KiB);
  EXPECT_EQ(parse_meminfo(kText, "HugePages").value(), 7_B);
  EXPECT_TRUE(parse_meminfo(kText, "Mem").error().is(Errc::NotFound));
  EXPECT_TRUE(parse_meminfo("MemTotal: x kB", "MemTotal").error().is(Errc::Malformed));
  EXPECT_TRUE(parse_meminfo("MemTotal:", "MemTotal").error().is(Errc::Malformed));
  EXPECT_TRUE(
      parse_meminfo("MemTotal: 99999999999999999999 kB", "MemTotal").error().is(Errc::TooLarge));
}

TEST(ParseCpuList, KnowsTheKernelsNotation) {
  using Cpus = std::vector<std::uint32_t>;
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11\n").value(), (Cpus{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list("2,1,1-2").value(), (Cpus{1, 2}));
  EXPECT_EQ(parse_cpu_list("\n").value(), Cpus());
  for (const auto* text : {",", "1,", "a", "3-1", "1-", "-1", "1--2", "1 2"}) {
    EXPECT_TRUE(parse_cpu_list(text).error().is(Errc::Malformed)) << text;
  }
  for (const auto* text : {"0-4294967295", "65536", "4294967296"}) {
    EXPECT_TRUE(parse_cpu_list(text).error().is(Errc::TooLarge)) << text;
  }
}

TEST(ParseCpuList, SurvivesRandomText) {
  constexpr std::string_view kAlphabet = "0123456789-,\n ";
  std::mt19937 random(1);
  for (int round = 0; round < 5000; ++round) {
    std::string text(random() % 10, ' ');
    for (char& c : text) c = kAlphabet[random() % kAlphabet.size()];
    const auto cpus = parse_cpu_list(text).value_or(std::vector<std::uint32_t>());
    EXPECT_TRUE(std::ranges::is_sorted(cpus));
  }
}

TEST(RealHost, KnowsItself) {
  RealHost host;
  const auto facts = host.facts();
  ASSERT_TRUE(facts) << facts.error().message();
  EXPECT_FALSE(facts->name.empty());
  EXPECT_EQ(facts->name.find('.'), std::string::npos);
  EXPECT_GE(facts->cores.size(), 1U);
  EXPECT_GT(facts->memory, 64_MiB);
  EXPECT_EQ(facts->boot_id.size(), 36U);
  EXPECT_TRUE(monotonic_clock_name().starts_with(facts->boot_id + " "));
}

TEST(RealProcesses, RunAProgramToItsEnd) {
  RealProcesses processes;
  SpawnSpec spec;
  spec.path = "/bin/sh";
  spec.argv = {"sh", "-c", "exit 4"};
  const auto child = processes.spawn(spec);
  ASSERT_TRUE(child);
  EXPECT_EQ(processes.reap(child->pidfd.get(), true).value()->code, 4);
}

TEST(RealCgroupFiles, NameWhatIsMissing) {
  RealCgroupFiles files;
  EXPECT_TRUE(files.freeze("/no/such", true).error().is(std::errc::no_such_file_or_directory));
  EXPECT_FALSE(files.events("/no/such"));
  EXPECT_FALSE(files.create("/proc/score_test"));
}

// A launch in small, as flows do it: cgroup, then process; on failure nothing may be left.
Status launch(Processes& processes, CgroupFiles& cgroups, std::vector<SpawnedProcess>& started) {
  if (auto made = cgroups.create("/job"); !made) return made;
  SpawnSpec spec;
  spec.argv = {"a.out"};
  for (int i = 0; i < 3; ++i) {
    auto child = processes.spawn(spec);
    if (!child) {
      std::ignore = cgroups.remove("/job");
      return child.error().error;
    }
    started.push_back(*std::move(child));
  }
  return {};
}

TEST(Fakes, FailTheNthCallForEveryN) {
  std::size_t n = 0;
  for (;; ++n) {
    FailAfter budget{.calls = n};
    FakeProcesses processes(budget);
    FakeCgroupFiles cgroups(budget);
    std::vector<SpawnedProcess> started;
    if (launch(processes, cgroups, started)) break;
    EXPECT_EQ(started.size(), n == 0 ? 0 : n - 1);
  }
  EXPECT_EQ(n, 4U);
}

TEST(Fakes, AProcessEndsWhenKilledAndItsPidfdTells) {
  FailAfter budget;
  FakeProcesses processes(budget);
  const auto child = processes.spawn({});
  pollfd watched{.fd = child->pidfd.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&watched, 1, 0), 0);
  EXPECT_FALSE(processes.reap(watched.fd, false).value());
  ASSERT_TRUE(processes.send_signal(watched.fd, SIGKILL));
  EXPECT_EQ(poll(&watched, 1, 0), 1);
  EXPECT_EQ(processes.reap(watched.fd, false).value()->signal, SIGKILL);
  EXPECT_FALSE(processes.reap(watched.fd, false));
}

TEST(Fakes, ACgroupBehavesLikeOne) {
  FailAfter budget;
  FakeCgroupFiles cgroups(budget);
  ASSERT_TRUE(cgroups.create("/a"));
  cgroups.groups["/a"].events.populated = true;
  ASSERT_TRUE(cgroups.freeze("/a", true));
  EXPECT_TRUE(cgroups.events("/a")->frozen);
  EXPECT_FALSE(cgroups.remove("/a"));
  ASSERT_TRUE(cgroups.kill("/a"));
  ASSERT_TRUE(cgroups.remove("/a"));
  EXPECT_FALSE(cgroups.freeze("/a", false));
  EXPECT_EQ(cgroups.calls.front(), "create /a");
}

}  // namespace
}  // namespace score
