#include "scored/head/notices/run_program.hpp"

#include "base/text.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

namespace score::head {
namespace {

class RunProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    std::string pattern = (std::filesystem::temp_directory_path() / "score_run_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }

  void TearDown() override { std::filesystem::remove_all(directory_); }

  Status run(const std::string& script, const std::string& input = {},
             Duration timeout = Duration(120s)) {
    return run_program({"/bin/sh", {"-c", script, "sh", directory_}, input, timeout}, exit_code_);
  }

  std::string content(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::string directory_;
  int exit_code_ = -1;
};

TEST_F(RunProgramTest, PassesAllInputAndLittleEnvironment) {
  const std::string input(1'000'000, 'x');
  const Status done = run("cat > $1/got; env > $1/env; id -u > $1/uid", input);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(content("got"), input);
  EXPECT_EQ(content("env").find("HOME="), std::string::npos);
  EXPECT_EQ(exit_code_, 0);
}

TEST_F(RunProgramTest, ReportsTheLastLineOfStandardError) {
  const Status done = run("echo first >&2; echo 'no such user' >&2; exit 67");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().context(), "/bin/sh exited with code 67: no such user");
  EXPECT_EQ(exit_code_, 67);
  EXPECT_FALSE(is_worth_a_retry(exit_code_));
  EXPECT_TRUE(is_worth_a_retry(75)) << "EX_TEMPFAIL";
  EXPECT_TRUE(is_worth_a_retry(1));
}

TEST_F(RunProgramTest, ProgramThatReadsNothingSucceeds) {
  EXPECT_TRUE(run("exec true", std::string(1'000'000, 'x')));
}

TEST_F(RunProgramTest, KillsAProgramThatHangsWithItsChildren) {
  const Status done = run("sleep 1000 & echo $! > $1/pid; wait", "", 500ms);
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().is(Errc::Timeout)) << done.error().message();
  const std::string pid = content("pid");
  ASSERT_FALSE(pid.empty());
  // The child is gone, or waits as a zombie for its new parent.
  for (int i = 0; i < 1'000; ++i) {
    std::ifstream file("/proc/" + pid.substr(0, pid.size() - 1) + "/stat");
    std::string line;
    std::getline(file, line);
    if (line.empty() || line.find(") Z ") != std::string::npos) return;
    ::usleep(10'000);
  }
  FAIL() << "process " << pid << " lives";
}

TEST_F(RunProgramTest, FloodOfOutputIsDiscarded) {
  const Status done =
      run("head -c 100000000 /dev/zero; head -c 100000000 /dev/zero >&2; echo end >&2; exit 1");
  ASSERT_FALSE(done);
  EXPECT_LT(done.error().context().size(), 8'000U);
}

TEST_F(RunProgramTest, GrandchildThatHoldsStandardErrorDoesNotDelay) {
  EXPECT_TRUE(run("sleep 60 & echo $! > $1/pid; exit 0"));
  const auto pid = parse_number<pid_t>(content("pid").substr(0, content("pid").find('\n')));
  ASSERT_TRUE(pid);
  EXPECT_EQ(::kill(*pid, SIGKILL), 0) << "it ran on";
}

TEST_F(RunProgramTest, MissingProgramIsAnError) {
  int code = 0;
  const Status done = run_program({"/no/such/program", {}, "x", 10s}, code);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message().find("/no/such/program"), std::string::npos);
}

}  // namespace
}  // namespace score::head
