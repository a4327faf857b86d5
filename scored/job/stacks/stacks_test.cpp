#include "base/os/cgroup.hpp"
#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "proto/documents/stack_tree.hpp"
#include "scored/job/stacks/stack_query.hpp"
#include "scored/job/stacks/stack_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" {
// The names of these functions are looked for in stacks.
[[gnu::noinline]] int stacks_test_inner(int descriptor) {
  char byte = 0;
  const ssize_t got = read(descriptor, &byte, 1);
  return got > 0 ? byte : 0;
}

[[gnu::noinline]] int stacks_test_outer(int descriptor) {
  return stacks_test_inner(descriptor) + 1;
}
}

namespace score::stacks {
namespace {

using namespace std::chrono_literals;

// A Child runs the function until it is destroyed.
class Child {
 public:
  explicit Child(const std::function<void()>& run) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run();
    _exit(0);
  }

  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  // Returns the letter of proc(5).
  [[nodiscard]] char state() const {
    const auto text = read_file(fmt::format("/proc/{}/stat", pid_), 1'024);
    return text ? text->at(text->rfind(')') + 2) : '?';
  }

 private:
  pid_t pid_;
};

void wait_in_a_pipe() {
  int ends[2];
  if (pipe(ends) == 0) stacks_test_outer(ends[0]);
}

bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 6'000 && !holds(); ++i) std::this_thread::sleep_for(5ms);
  return holds();
}

bool has(const Stack& stack, const std::string& function) {
  return std::ranges::any_of(stack, [&](const auto& frame) { return frame.function == function; });
}

TEST(StackReader, StackHasFunctionsFromOutside) {
  const Child child(wait_in_a_pipe);
  ASSERT_TRUE(eventually([&] { return child.state() == 'S'; }));
  StackReader reader;
  const auto stacks = reader.read(child.pid(), false);
  ASSERT_TRUE(stacks) << stacks.error().message();
  ASSERT_EQ(stacks->size(), 1U);
  const Stack& stack = stacks->front();
  const auto at = [&](const std::string& function) {
    return std::ranges::find(stack, function, &proto::StackFrame::function) - stack.begin();
  };
  EXPECT_TRUE(has(stack, "stacks_test_inner"));
  EXPECT_LT(at("main"), at("stacks_test_outer"));
  EXPECT_LT(at("stacks_test_outer"), at("stacks_test_inner"));
  EXPECT_TRUE(eventually([&] { return child.state() == 'S'; })) << "it goes on waiting";
}

TEST(StackReader, EveryThreadIsRead) {
  const Child child([] {
    std::thread other(wait_in_a_pipe);
    pause();
    other.join();
  });
  StackReader reader;
  EXPECT_TRUE(eventually([&] {
    const auto stacks = reader.read(child.pid(), true);
    return stacks && stacks->size() == 2 && has(stacks->back(), "stacks_test_inner");
  }));
  EXPECT_EQ(reader.read(child.pid(), false)->size(), 1U);
}

TEST(StackReader, StoppedProcessStaysStopped) {
  const Child child(wait_in_a_pipe);
  ASSERT_TRUE(eventually([&] { return child.state() == 'S'; }));
  kill(child.pid(), SIGSTOP);
  ASSERT_TRUE(eventually([&] { return child.state() == 'T'; }));
  StackReader reader;
  const auto stacks = reader.read(child.pid(), false);
  ASSERT_TRUE(stacks) << stacks.error().message();
  EXPECT_TRUE(has(stacks->front(), "stacks_test_inner"));
  EXPECT_TRUE(eventually([&] { return child.state() == 'T'; }));
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(child.state(), 'T');
  kill(child.pid(), SIGCONT);
  EXPECT_TRUE(eventually([&] { return child.state() == 'S'; }));
}

TEST(StackReader, FrozenCgroupIsReadAndStaysFrozen) {
  const auto own = own_cgroup();
  auto cgroup = own ? Cgroup::create(fmt::format("{}/stacks_test_{}", *own, getpid()))
                    : Result<Cgroup>(own.error());
  if (!cgroup) GTEST_SKIP() << "no cgroup can be made here: " << cgroup.error().message();
  {
    const Child child(wait_in_a_pipe);
    ASSERT_TRUE(cgroup->add(child.pid()));
    ASSERT_TRUE(cgroup->freeze(true));
    ASSERT_TRUE(eventually([&] { return cgroup->events()->frozen; }));
    StackReader reader;
    const auto stacks = reader.read(child.pid(), false);
    ASSERT_TRUE(stacks) << stacks.error().message();
    EXPECT_TRUE(has(stacks->front(), "main"));
    EXPECT_TRUE(eventually([&] { return cgroup->events()->frozen; }));
    ASSERT_TRUE(cgroup->freeze(false));
  }
  EXPECT_EQ(rmdir(cgroup->path().c_str()), 0);
}

TEST(StackReader, ProcessThatHasEndedIsReported) {
  StackReader reader;
  const auto stacks = reader.read(0x3fff'fff0, false);
  ASSERT_FALSE(stacks);
  EXPECT_EQ(stacks.error().context(), "it has ended");
}

TEST(StackReader, RefusedProcessIsReportedWithReason) {
  const Child target([] { pause(); });
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd seized(ends[0]);
  UniqueFd to_test(ends[1]);
  const Child debugger([&] {
    const bool has_seized = ptrace(PTRACE_SEIZE, target.pid(), nullptr, nullptr) == 0;
    if (has_seized && write(to_test.get(), "s", 1) == 1) pause();
  });
  to_test.reset();
  char byte = 0;
  ASSERT_EQ(read(seized.get(), &byte, 1), 1);
  StackReader reader;
  const auto stacks = reader.read(target.pid(), false);
  ASSERT_FALSE(stacks);
  EXPECT_NE(stacks.error().context().find("a debugger has it"), std::string::npos);
}

TEST(WorkingProcess, ShellStandsForItsProgram) {
  const Child shell([] {
    const pid_t program = fork();
    if (program == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      wait_in_a_pipe();
      _exit(0);
    }
    waitpid(program, nullptr, 0);
  });
  EXPECT_TRUE(eventually([&] { return working_process(shell.pid()) != shell.pid(); }));
  const Child alone(wait_in_a_pipe);
  EXPECT_EQ(working_process(alone.pid()), alone.pid());
}

// ---- the program

std::string run(const std::vector<std::string>& words, Duration kill_after = 1h) {
  const char* program = std::getenv("SCORED_STACKS");
  if (program == nullptr) return "SCORED_STACKS is not set";
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  SpawnSpec spec;
  spec.path = program;
  spec.argv = words;
  spec.argv.insert(spec.argv.begin(), program);
  spec.fds = {{writing.get(), STDOUT_FILENO}};
  const auto spawned = spawn(spec);
  if (!spawned) return spawned.error().message();
  writing.reset();
  if (kill_after < 1h) {
    std::this_thread::sleep_for(kill_after);
    kill(spawned->pid, SIGKILL);
  }
  std::string out;
  char buffer[4'096];
  for (ssize_t got = 0; (got = read(reading.get(), buffer, sizeof buffer)) > 0;)
    out.append(buffer, static_cast<std::size_t>(got));
  [[maybe_unused]] const auto reaped = reap(spawned->pidfd.get(), true);
  return out;
}

TEST(StacksProgram, WritesTreeOfAllRanks) {
  const Child first(wait_in_a_pipe), second(wait_in_a_pipe);
  ASSERT_TRUE(eventually([&] { return first.state() == 'S' && second.state() == 'S'; }));
  const std::string out = run({"20000", fmt::format("4:{}", first.pid()),
                               fmt::format("5:{}", second.pid()), "6:1073741808"});
  ASSERT_GT(out.size(), shepherd::kStackSizeDigits);
  wire::StackTree tree;
  ASSERT_TRUE(tree.ParseFromString(out.substr(shepherd::kStackSizeDigits)));
  const auto found =
      std::ranges::find_if(tree.frames(), [](const auto& frame) { return frame.ranks() == "4-5"; });
  EXPECT_NE(found, tree.frames().end());
  ASSERT_EQ(tree.problems_size(), 1);
  EXPECT_EQ(tree.problems(0).ranks(), "6");
}

TEST(StacksProgram, WrongWordsAreRefused) {
  EXPECT_EQ(run({"0", "1:2"}), "");
  EXPECT_EQ(run({"1000", "1"}), "");
  EXPECT_EQ(run({"1000", "1:1"}), "") << "never init";
}

// Wherever it is killed, the kernel releases the thread that it has seized.
TEST(StacksProgram, KilledReaderLeavesNothingStopped) {
  std::vector<std::unique_ptr<Child>> children;
  std::vector<std::string> words{"20000"};
  for (int i = 0; i < 16; ++i) {
    children.push_back(std::make_unique<Child>(wait_in_a_pipe));
    words.push_back(fmt::format("{}:{}", i, children.back()->pid()));
  }
  for (int round = 0; round < 40; ++round) run(words, std::chrono::microseconds(round * 500));
  for (const auto& child : children) {
    EXPECT_TRUE(eventually([&] { return child->state() == 'S'; })) << child->state();
  }
}

// ---- in the shepherd

struct QueryBench {
  explicit QueryBench(std::string program)
      : loop(*shepherd::EventLoop::create()),
        query(
            loop,
            [this](const wire::ShepherdStacksRead& answer) {
              answers.push_back(answer);
              loop.stop();
            },
            std::move(program)) {}

  void ask(std::uint64_t tag, Duration limit, pid_t process) {
    wire::ShepherdStacks request;
    request.set_tag(tag);
    request.set_limit_ns(limit.count());
    query.begin(request, std::vector<shepherd::StackQuery::Task>{{3, process}});
  }

  shepherd::EventLoop loop;
  std::vector<wire::ShepherdStacksRead> answers;
  shepherd::StackQuery query;
};

std::string real_program() {
  const char* program = std::getenv("SCORED_STACKS");
  return program == nullptr ? "SCORED_STACKS is not set" : program;
}

TEST(StackQuery, TreeIsAnswered) {
  const Child child(wait_in_a_pipe);
  QueryBench bench(real_program());
  bench.ask(7, 20s, child.pid());
  bench.loop.run();
  ASSERT_EQ(bench.answers.size(), 1U);
  EXPECT_EQ(bench.answers[0].tag(), 7U);
  EXPECT_EQ(bench.answers[0].reason(), "");
  EXPECT_GT(bench.answers[0].tree().frames_size(), 0);
}

TEST(StackQuery, MissingProgramIsReportedWithRemedy) {
  QueryBench bench("/nonexistent/scored-stacks");
  bench.ask(7, 20s, getpid());
  ASSERT_EQ(bench.answers.size(), 1U);
  EXPECT_NE(bench.answers[0].reason().find("libdw-dev"), std::string::npos);
}

// Makes a program that never ends by itself.
std::string slow_program() {
  const std::string path = fmt::format("{}/stacks_test_{}", testing::TempDir(), getpid());
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700));
  EXPECT_TRUE(write_all(file.get(), "#!/bin/sh\nexec sleep 1000\n"));
  return path;
}

TEST(StackQuery, SlowReaderIsKilledAtItsLimit) {
  const std::string program = slow_program();
  QueryBench bench(program);
  bench.ask(7, 300ms, 3);
  bench.loop.run();
  ASSERT_EQ(bench.answers.size(), 1U);
  EXPECT_EQ(bench.answers[0].reason(), "reading the stacks took too long");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
  unlink(program.c_str());
}

TEST(StackQuery, NewRequestEndsTheOldOne) {
  const std::string program = slow_program();
  QueryBench bench(program);
  bench.ask(7, 50s, 3);
  bench.ask(8, 50s, 3);
  ASSERT_EQ(bench.answers.size(), 1U);
  EXPECT_EQ(bench.answers[0].tag(), 7U);
  EXPECT_NE(bench.answers[0].reason(), "");
  unlink(program.c_str());
}

// A program that writes something else cannot confuse the shepherd.
TEST(StackQuery, ForeignOutputIsRefused) {
  QueryBench bench("/bin/echo");
  bench.ask(7, 20s, 3);
  bench.loop.run();
  ASSERT_EQ(bench.answers.size(), 1U);
  EXPECT_NE(bench.answers[0].reason(), "");
}

}  // namespace
}  // namespace score::stacks
