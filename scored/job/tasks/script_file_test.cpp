#include "scored/job/tasks/script_file.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

namespace score::shepherd {
namespace {

namespace fs = std::filesystem;

class ScriptFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/script_file_test.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    parent_ = name;
  }

  void TearDown() override { fs::remove_all(parent_); }

  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(parent_), fs::directory_iterator()));
  }

  [[nodiscard]] std::string write(const std::string& text) const {
    std::ofstream(parent_ + "/s") << text;
    return parent_ + "/s";
  }

  std::string parent_;
};

TEST_F(ScriptFileTest, ExistsUntilDestroyed) {
  {
    auto script = ScriptFile::create_in(parent_, 7, "./dir/train.sh", "#!/bin/sh\n");
    ASSERT_TRUE(script);
    EXPECT_EQ(fs::path(script->path()).filename(), "train.sh");

    struct stat info {};

    ASSERT_EQ(stat(script->path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0500U);
    ASSERT_EQ(stat(fs::path(script->path()).parent_path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700U);
    EXPECT_EQ(count(), 1U);
  }
  EXPECT_EQ(count(), 0U);
}

TEST_F(ScriptFileTest, InvalidFileNamesAreReplaced) {
  for (const auto& name : {std::string(), std::string("a/.."), std::string("."), std::string("x/"),
                           std::string(300, 'n')}) {
    auto script = ScriptFile::create_in(parent_, 7, name, "#!/bin/sh\n");
    ASSERT_TRUE(script) << name;
    EXPECT_EQ(fs::path(script->path()).filename(), "script");
  }
}

TEST_F(ScriptFileTest, LeftoversOfKilledShepherdsAreRemoved) {
  auto lives = ScriptFile::create_in(parent_, 1, "a", "#!/bin/sh\n");
  const std::string left = parent_ + "/scored-script-2.abcdef";
  const std::string other = parent_ + "/other-2.abcdef";
  for (const auto& directory : {left, other}) fs::create_directory(directory);
  std::ofstream(left + "/a") << "x";
  const timeval long_ago[2] = {{1000, 0}, {1000, 0}};
  const auto lives_in = fs::path(lives->path()).parent_path().string();
  for (const auto& directory : {left, other, lives_in}) utimes(directory.c_str(), long_ago);
  auto next = ScriptFile::create_in(parent_, 3, "a", "#!/bin/sh\n");
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(other));
  EXPECT_TRUE(fs::exists(lives->path()));
}

TEST_F(ScriptFileTest, MissingDirectoryIsError) {
  const auto script = ScriptFile::create_in(parent_ + "/none", 7, "a", "#!/bin/sh\n");
  ASSERT_FALSE(script);
  EXPECT_NE(script.error().message().find("/none"), std::string::npos);
}

TEST_F(ScriptFileTest, InterpreterIsParsedAsByKernel) {
  const auto words = [this](const std::string& text) {
    const auto found = interpreter_of(write(text));
    return found.path + "|" + found.argument;
  };
  EXPECT_EQ(words("#!/bin/sh\necho\n"), "/bin/sh|");
  EXPECT_EQ(words("#! /usr/bin/env  python3 -u \n"), "/usr/bin/env|python3 -u");
  EXPECT_EQ(words("#!/bin/sh"), "/bin/sh|");
  EXPECT_EQ(words("echo\n"), "|");
  EXPECT_EQ(words("#!\n"), "|");
  EXPECT_EQ(words("#!   \n"), "|");
  EXPECT_EQ(words(""), "|");
  EXPECT_EQ(interpreter_of(parent_ + "/none").path, "");
}

}  // namespace
}  // namespace score::shepherd
