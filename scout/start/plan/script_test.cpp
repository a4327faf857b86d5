#include "scout/start/plan/script.hpp"

#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>

namespace score::scout {
namespace {

namespace fs = std::filesystem;

// Runs the script in the shell and returns its output; the input ends at once.
class Script : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = fs::temp_directory_path() / "script_test.XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
    fs::create_directories(directory_ + "/programs");
  }

  void TearDown() override { fs::remove_all(directory_); }

  void install(const std::string& version) {
    const auto program = directory_ + "/programs/score-start";
    const auto text = "#!/bin/sh\n[ $1 = --host-agent ] && exec echo kept\necho " + version + "\n";
    ASSERT_TRUE(replace_file(program, text, 0755));
    ASSERT_TRUE(replace_file(directory_ + "/programs/scored-launcher", "", 0755));
  }

  std::string run(Push push) {
    const auto script = bootstrap_script({.programs = directory_ + "/programs",
                                          .version = "1.2.3",
                                          .push = push,
                                          .directory = directory_});
    if (!script) return script.error().message();
    EXPECT_EQ(script->find('\''), std::string::npos);
    auto pipe = make_pipe();
    SpawnSpec spec;
    spec.path = "/bin/sh";
    spec.argv = {"sh", "-c", *script};
    spec.environment = {"PATH=/usr/bin:/bin"};
    spec.fds = {{pipe->write.get(), 1}};
    auto child = spawn(spec);
    pipe->write.reset();
    const auto text = read_all(pipe->read.get(), 1U << 20U);
    EXPECT_TRUE(reap(child->pidfd.get(), true));
    return *text;
  }

  [[nodiscard]] std::size_t left() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  std::string directory_;
};

TEST_F(Script, KeeperOfThisVersionIsStarted) {
  install("1.2.3");
  EXPECT_EQ(run(Push::Auto), "kept\n");
  EXPECT_EQ(run(Push::Never), "kept\n");
}

TEST_F(Script, ProgramsAreRequestedForOtherVersions) {
  install("1.1.0");
  EXPECT_TRUE(run(Push::Auto).starts_with("scored-start: push 1.1.0\n"));
  EXPECT_EQ(run(Push::Never), "scored-start: absent 1.1.0\n");
}

TEST_F(Script, NothingIsLeftWhenInputEnds) {
  const auto text = run(Push::Always);
  EXPECT_TRUE(text.starts_with("scored-start: push")) << text;
  EXPECT_EQ(left(), 1U);
}

TEST_F(Script, PathsThatNeedQuotesAreRefused) {
  for (const auto* path : {"relative", "/a b", "/a$b", "/a;b", "/a'b", "/a\"b", ""}) {
    EXPECT_FALSE(bootstrap_script({.programs = path, .version = "1"})) << path;
    EXPECT_FALSE(bootstrap_script({.programs = "/a", .version = "1", .directory = path})) << path;
  }
}

}  // namespace
}  // namespace score::scout
