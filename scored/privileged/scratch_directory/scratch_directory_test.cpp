// These tests run the real program, as this user or as root.
#include "base/os/spawn.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace score {
namespace {

namespace fs = std::filesystem;

class ScratchDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "scored-scratch-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    place_ = name;
    fs::permissions(place_, fs::perms(0755));
  }

  void TearDown() override { fs::remove_all(place_); }

  int run(const std::string& user, bool names_place = true) const {
    SpawnSpec spec;
    spec.path = PROGRAM;
    spec.argv = {"scored-scratch-directory", "--job", "/proc/self/fd/4", user};
    if (names_place) spec.environment = {"SCORED_SCRATCH_DIR=" + place_.string()};
    auto child = spawn(spec);
    EXPECT_TRUE(child);
    if (!child) return -1;
    const auto ended = reap(child->pidfd.get(), true);
    return ended && *ended ? (*ended)->shell_code() : -1;
  }

  static std::string self() { return std::to_string(geteuid()); }

  fs::path place_;
};

TEST_F(ScratchDirectory, BelongsToTheUserAlone) {
  const std::string user = geteuid() == 0 ? "65534" : self();
  ASSERT_EQ(run(user), 0);
  EXPECT_EQ(run(user), 0) << "it is there";

  struct stat status {};

  ASSERT_EQ(stat((place_ / user).c_str(), &status), 0);
  EXPECT_EQ(std::to_string(status.st_uid), user);
  EXPECT_EQ(status.st_mode & 07777U, 0700U);
}

TEST_F(ScratchDirectory, DoesNotFollowLinks) {
  const fs::path other = place_ / "other";
  fs::create_directory(other);
  fs::create_directory_symlink(other, place_ / "65534");
  EXPECT_NE(run("65534"), 0);

  struct stat status {};

  ASSERT_EQ(stat(other.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, geteuid());
}

TEST_F(ScratchDirectory, RefusesPlaceWritableByOthers) {
  fs::permissions(place_, fs::perms(0777));
  EXPECT_NE(run(self()), 0);
  EXPECT_FALSE(fs::exists(place_ / self()));
}

TEST_F(ScratchDirectory, RefusesADirectoryOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give directories away";
  fs::create_directory(place_ / "65534");
  ASSERT_EQ(chown((place_ / "65534").c_str(), 65533, 65533), 0);
  EXPECT_NE(run("65534"), 0);
}

TEST_F(ScratchDirectory, RefusesInvalidUsers) {
  for (const char* user :
       {"", "x", "1x", "-1", "4294967295", "4294968296", "../1", "99999999999"}) {
    EXPECT_NE(run(user), 0) << user;
  }
  EXPECT_TRUE(fs::is_empty(place_));
}

TEST_F(ScratchDirectory, DoesNothingWithoutAPlace) {
  EXPECT_EQ(run(self(), false), 0);
  EXPECT_TRUE(fs::is_empty(place_));
}

}  // namespace
}  // namespace score
