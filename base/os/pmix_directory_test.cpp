#include "base/os/pmix_directory.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score {
namespace {

namespace fs = std::filesystem;

class PmixDirectoryTest : public testing::Test {
 protected:
  PmixDirectoryTest() {
    std::string name = fs::temp_directory_path() / "score_pmix_XXXXXX";
    parent_ = mkdtemp(name.data());
  }

  ~PmixDirectoryTest() override { fs::remove_all(parent_); }

  // Creates files as a server leaves them: a file in a directory of the directory.
  static void fill(const std::string& path) {
    fs::create_directory(path + "/dstor");
    std::ofstream(path + "/dstor/rendezvous") << "1";
  }

  int sweep() const { return remove_abandoned_pmix_directories_in(parent_); }

  std::string parent_;
};

TEST_F(PmixDirectoryTest, IsPrivateAndRemovedWithItsOwner) {
  std::string path;
  {
    auto made = PmixDirectory::make_in(parent_);
    ASSERT_TRUE(made);
    path = made->path();
    fill(path);

    struct stat info {};

    ASSERT_EQ(lstat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
    PmixDirectory moved = std::move(*made);
    EXPECT_EQ(sweep(), 0) << "it is in use";
    EXPECT_TRUE(fs::exists(moved.path()));
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(PmixDirectory::make_in(parent_ + "/none"));
}

TEST_F(PmixDirectoryTest, LeftoversOfKilledProcessAreRemoved) {
  const pid_t pid = fork();
  if (pid == 0) {
    auto made = PmixDirectory::make_in(parent_);
    if (made) fill(made->path());
    raise(SIGKILL);
  }
  waitpid(pid, nullptr, 0);
  ASSERT_FALSE(fs::is_empty(parent_));
  EXPECT_EQ(sweep(), 1);
  EXPECT_TRUE(fs::is_empty(parent_));
}

TEST_F(PmixDirectoryTest, OtherFilesAndDirectoriesStay) {
  fs::create_directory(parent_ + "/mine");
  fill(parent_ + "/mine");
  fs::create_symlink(parent_ + "/mine", parent_ + "/scored-pmix.abcdef");
  std::ofstream(parent_ + "/scored-pmix.ghijkl") << "1";
  EXPECT_EQ(sweep(), 0);
  EXPECT_TRUE(fs::exists(parent_ + "/mine/dstor/rendezvous"));
  EXPECT_TRUE(fs::exists(parent_ + "/scored-pmix.ghijkl"));
}

TEST_F(PmixDirectoryTest, LinksInsideAreNotFollowed) {
  fs::create_directory(parent_ + "/mine");
  fill(parent_ + "/mine");
  fs::create_directory(parent_ + "/scored-pmix.abcdef");
  fs::create_symlink(parent_ + "/mine", parent_ + "/scored-pmix.abcdef/link");
  EXPECT_EQ(sweep(), 1);
  EXPECT_TRUE(fs::exists(parent_ + "/mine/dstor/rendezvous"));
}

TEST_F(PmixDirectoryTest, DirectoryOfDifferentUserStays) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  fs::create_directory(parent_ + "/scored-pmix.abcdef");
  ASSERT_EQ(chown((parent_ + "/scored-pmix.abcdef").c_str(), 12345, 12345), 0);
  EXPECT_EQ(sweep(), 0);
}

}  // namespace
}  // namespace score
