#include "base/child.hpp"

#include "base/clock.hpp"
#include "base/task_group.hpp"
#include "base/timeout.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace score {
namespace {

SpawnSpec shell(std::string script) {
  SpawnSpec spec;
  spec.path = "/bin/sh";
  spec.argv = {"sh", "-c", std::move(script)};
  return spec;
}

class ChildTest : public testing::Test {
 protected:
  ChildProcess start(const std::string& script) {
    return ChildProcess::start(io.get_executor(), shell(script)).value();
  }

  asio::io_context io{1};
};

TEST_F(ChildTest, WaitsForTheExitCode) {
  auto child = start("exit 3");
  EXPECT_FALSE(child.status());
  EXPECT_EQ(run(io, child.wait())->code, 3);
  EXPECT_EQ(run(io, child.wait())->code, 3);
  EXPECT_EQ(child.status()->code, 3);
}

TEST_F(ChildTest, ManyThatEndAtOnceAreAllSeen) {
  std::vector<ChildProcess> children;
  for (int i = 0; i < 50; ++i) children.push_back(start(fmt::format("exit {}", i)));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(run(io, children[static_cast<std::size_t>(i)].wait())->code, i);
  }
}

TEST_F(ChildTest, SignalsReachIt) {
  auto child = start("sleep 100");
  ASSERT_TRUE(child.signal(SIGTERM));
  EXPECT_EQ(run(io, child.wait())->signal, SIGTERM);
  EXPECT_TRUE(child.signal(SIGTERM).error().is(std::errc::no_such_process));
}

TEST_F(ChildTest, IsKilledAndCollectedByItsDestructor) {
  pid_t pid = -1;
  {
    auto child = start("sleep 100");
    pid = child.pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST_F(ChildTest, AWaitThatTimesOutLeavesItAlone) {
  SteadyClock clock;
  auto child = start("sleep 100");
  const auto waited = run(io, with_timeout(clock, 1ms, child.wait()));
  EXPECT_TRUE(waited.error().is(Errc::Timeout));
  EXPECT_EQ(kill(child.pid(), 0), 0);
}

TEST_F(ChildTest, SaysWhyItDidNotStart) {
  SpawnSpec spec = shell("");
  spec.path = "/no/such/program";
  const auto child = ChildProcess::start(io.get_executor(), spec);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().step, SpawnStep::Exec);
}

}  // namespace
}  // namespace score
