#include "base/os/spawn.hpp"

#include "base/text.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <unistd.h>

namespace score {
namespace {

// An Outcome is the result of /bin/sh -c script with its output on a pipe.
struct Outcome {
  std::string output;
  ExitStatus status;
};

Outcome run(SpawnSpec spec) {
  auto pipe = make_pipe();
  spec.fds.emplace_back(pipe->write.get(), 1);
  auto child = spawn(spec);
  if (!child) return {.output = child.error().message(), .status = {.code = -1}};
  pipe->write.reset();
  Outcome outcome;
  outcome.output = read_all(pipe->read.get(), 100'000).value();
  outcome.status = *reap(child->pidfd.get(), true).value();
  return outcome;
}

SpawnSpec shell(std::string script) {
  SpawnSpec spec;
  spec.path = "/bin/sh";
  spec.argv = {"sh", "-c", std::move(script)};
  return spec;
}

TEST(Spawn, PassesArgumentsAndOnlyTheGivenEnvironment) {
  auto spec = shell("echo \"$0 $1\"; env | grep -v ^PWD= | grep -v ^_=");
  spec.argv.emplace_back("zero");
  spec.argv.emplace_back("one two");
  spec.environment = {"A=b c", "PATH=/usr/bin:/bin"};
  EXPECT_EQ(run(spec).output, "zero one two\nA=b c\nPATH=/usr/bin:/bin\n");
}

TEST(Spawn, ChildGetsOnlyItsDescriptors) {
  auto leak = make_pipe();
  const int inherited = dup(leak->read.get());  // without close-on-exec, as in a careless library
  auto five = make_pipe();
  auto spec = shell("ls /proc/self/fd | tr '\\n' ' '; echo hello >&5");
  spec.fds.emplace_back(five->write.get(), 5);
  spec.environment = {"PATH=/usr/bin:/bin"};
  const auto outcome = run(spec);
  close(inherited);
  EXPECT_EQ(outcome.output, "0 1 2 3 5 ");  // 3 is ls's own
  five->write.reset();
  EXPECT_EQ(read_all(five->read.get(), 100).value(), "hello\n");
}

TEST(Spawn, CanSwapDescriptors) {
  auto one = make_pipe();
  auto two = make_pipe();
  // The sources are each other's targets, and neither may be lost.
  SpawnSpec swap = shell("echo a >&" + std::to_string(two->write.get()) + "; echo b >&" +
                         std::to_string(one->write.get()));
  swap.fds = {{one->write.get(), two->write.get()}, {two->write.get(), one->write.get()}};
  EXPECT_EQ(run(swap).status.code, 0);
  one->write.reset();
  two->write.reset();
  EXPECT_EQ(read_all(one->read.get(), 10).value(), "a\n");
  EXPECT_EQ(read_all(two->read.get(), 10).value(), "b\n");
}

TEST(Spawn, FillsMissingStandardDescriptors) {
  const auto outcome = run(shell("cat; echo err >&2; readlink /proc/self/fd/0"));
  EXPECT_EQ(outcome.output, "/dev/null\n");
}

TEST(Spawn, ReportsFailedStepAndLeavesNothing) {
  auto spec = shell("true");
  spec.path = "/no/such/program";
  auto child = spawn(spec);
  ASSERT_FALSE(child);
  EXPECT_TRUE(child.error().is(std::errc::no_such_file_or_directory));
  EXPECT_EQ(child.error().message(), "cannot exec /no/such/program: No such file or directory");

  spec = shell("true");
  spec.directory = "/no/such/directory";
  child = spawn(spec);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().context(), "cannot enter /no/such/directory");

  spec = shell("true");
  spec.fds = {{999, 3}};
  child = spawn(spec);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().context(), "pass descriptors");
}

TEST(Spawn, RefusesImpossibleSpecifications) {
  for (const std::vector<std::pair<int, int>>& fds :
       {std::vector<std::pair<int, int>>{{0, 3}, {0, 3}}, {{0, 64}}, {{0, -1}}}) {
    auto spec = shell("true");
    spec.fds = fds;
    EXPECT_FALSE(spawn(spec));
  }
  SpawnSpec empty;
  empty.path = "/bin/true";
  EXPECT_FALSE(spawn(empty));
}

TEST(Spawn, AppliesDirectoryAndSession) {
  auto spec = shell("pwd; test $(cut -d' ' -f6 /proc/$$/stat) = $$ && echo leader");
  spec.environment = {"PATH=/usr/bin:/bin"};
  spec.directory = "/usr";
  spec.new_session = true;
  EXPECT_EQ(run(spec).output, "/usr\nleader\n");
}

TEST(Spawn, ChildStartsWithDefaultSignals) {
  const auto old = signal(SIGTERM, SIG_IGN);
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  const auto outcome = run(shell("kill -TERM $$; echo alive"));
  sigprocmask(SIG_SETMASK, &before, nullptr);
  signal(SIGTERM, old);
  EXPECT_EQ(outcome.output, "");
  EXPECT_EQ(outcome.status.signal, SIGTERM);
  EXPECT_EQ(outcome.status.shell_code(), 143);
}

TEST(Reap, ReturnsCodeAndSignal) {
  EXPECT_EQ(run(shell("exit 7")).status.code, 7);
  EXPECT_EQ(run(shell("exit 7")).status.shell_code(), 7);
  auto child = spawn(shell("kill -KILL $$"));
  EXPECT_EQ(reap(child->pidfd.get(), true).value()->signal, SIGKILL);
  EXPECT_FALSE(reap(child->pidfd.get(), true));
}

TEST(Reap, NonBlockingReturnsNothingWhileChildLives) {
  auto spec = shell("read line");
  auto pipe = make_pipe();
  spec.fds.emplace_back(pipe->read.get(), 0);
  auto child = spawn(spec);
  ASSERT_TRUE(child);
  EXPECT_FALSE(reap(child->pidfd.get(), false).value());
  ASSERT_TRUE(send_signal(child->pidfd.get(), SIGTERM));
  EXPECT_TRUE(reap(child->pidfd.get(), true).value());
  EXPECT_TRUE(send_signal(child->pidfd.get(), SIGTERM).error().is(std::errc::no_such_process));
}

TEST(OpenPidfd, FindsLivingProcessesOnly) {
  EXPECT_TRUE(open_pidfd(getpid()));
  EXPECT_FALSE(open_pidfd(-1));
}

TEST(FindExecutable, SearchesThePath) {
  EXPECT_EQ(find_executable("sh", "/nowhere:/bin").value(), "/bin/sh");
  EXPECT_EQ(find_executable("/bin/sh", "").value(), "/bin/sh");
  EXPECT_TRUE(find_executable("sh", "/nowhere").error().is(Errc::NotFound));
  EXPECT_TRUE(find_executable("", "/bin").error().is(Errc::NotFound));
  EXPECT_TRUE(find_executable("/etc/passwd", "").error().is(Errc::Denied));
  EXPECT_TRUE(find_executable("/etc", "").error().is(Errc::NotFound));
}

TEST(OwnProcess, FindsProgramsBesideThisOne) {
  EXPECT_EQ(find_beside("no-such-program", {".", ".."}), "");
  EXPECT_EQ(find_beside("base_test", {"no-such-place", "."}),
            (own_directory() / "base_test").native());
}

}  // namespace
}  // namespace score
