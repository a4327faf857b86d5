#include "scored/shared/config/hooks_config.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace score {
namespace {

namespace fs = std::filesystem;

Result<HooksConfig> parse(std::string_view text) {
  auto file = ConfigFile::parse(text, "f");
  if (!file) return file.error();
  ConfigSection root = file->root();
  HooksConfig config = read_hooks_config(root);
  if (auto sound = file->finish(); !sound) return sound.error();
  return config;
}

TEST(HooksConfig, HasNoHooksByDefault) {
  const auto config = parse("");
  ASSERT_TRUE(config);
  EXPECT_EQ(*config, HooksConfig());
  EXPECT_FALSE(config->has_job_hooks());
  EXPECT_FALSE(config->accepts_on_failure);
}

TEST(HooksConfig, ReadsAllKeys) {
  const auto config = parse(
      "[hooks]\nprolog = \"/a\"\nepilog = \"/b\"\nhealth = \"/c\"\nsubmit = \"/d\"\n"
      "timeout = \"2s\"\nsubmit_timeout = \"1s\"\nhealth_every = \"30s\"\n"
      "submit_failure = \"accept\"\n");
  ASSERT_TRUE(config) << config.error().context();
  EXPECT_EQ(config->path_of(Hook::Prolog), "/a");
  EXPECT_EQ(config->path_of(Hook::Epilog), "/b");
  EXPECT_EQ(config->path_of(Hook::Health), "/c");
  EXPECT_EQ(config->path_of(Hook::Submit), "/d");
  EXPECT_EQ(config->timeout_of(Hook::Health), std::chrono::seconds{2});
  EXPECT_EQ(config->timeout_of(Hook::Submit), std::chrono::seconds{1});
  EXPECT_TRUE(config->accepts_on_failure);
}

TEST(HooksConfig, RefusesInvalidValues) {
  for (const char* line : {"prolog = \"bin/x\"", "prolog = 1", "timeout = \"0s\"", "x = 1",
                           "submit_failure = \"maybe\"", "health_every = \"0s\""}) {
    EXPECT_FALSE(parse(std::string("[hooks]\n") + line + "\n")) << line;
  }
}

class HookFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "scored-hook-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    place_ = fs::canonical(name);
    fs::permissions(place_, fs::perms(0755));
    hook_ = place_ / "hook";
    std::ofstream(hook_) << "#!/bin/sh\n";
    fs::permissions(hook_, fs::perms(0755));
  }

  void TearDown() override { fs::remove_all(place_); }

  std::string fault(const fs::path& path) const {
    const auto sound = check_hook_file(path, UserId(geteuid()));
    return sound ? "" : sound.error().message();
  }

  fs::path place_;
  fs::path hook_;
};

TEST_F(HookFile, IsSoundIfOnlyItsOwnerMayWrite) {
  EXPECT_EQ(fault(hook_), "");
}

TEST_F(HookFile, IsRefusedIfMissing) {
  EXPECT_NE(fault(place_ / "none").find("No such file"), std::string::npos);
}

TEST_F(HookFile, IsRefusedIfOthersMayWrite) {
  fs::permissions(hook_, fs::perms(0775));
  EXPECT_NE(fault(hook_).find("writable by others"), std::string::npos);
}

TEST_F(HookFile, IsRefusedInDirectoryOfOthers) {
  fs::permissions(place_, fs::perms(0777));
  EXPECT_NE(fault(hook_).find("writable by others"), std::string::npos);
}

TEST_F(HookFile, IsRefusedIfNotExecutableOrNoFile) {
  EXPECT_NE(fault(place_), "");
  fs::permissions(hook_, fs::perms(0644));
  EXPECT_NE(fault(hook_).find("not an executable file"), std::string::npos);
}

TEST_F(HookFile, IsRefusedIfALink) {
  fs::create_symlink(hook_, place_ / "link");
  EXPECT_NE(fault(place_ / "link").find("name that file"), std::string::npos);
  fs::create_directory_symlink(place_, place_ / "deep");
  EXPECT_NE(fault(place_ / "deep/hook").find("name that file"), std::string::npos);
}

TEST_F(HookFile, IsRefusedIfItBelongsToAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(chown(hook_.c_str(), 65534, 65534), 0);
  EXPECT_NE(fault(hook_).find("belongs to user 65534"), std::string::npos);
}

}  // namespace
}  // namespace score
