#include "scored/job/checkpoint/shared_memory.hpp"

#include "base/errc.hpp"
#include "base/os/fd.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::shepherd {
namespace {

namespace fs = std::filesystem;

class SharedMemoryTest : public testing::Test {
 protected:
  SharedMemoryTest() {
    std::string name = (fs::temp_directory_path() / "shared_memory.XXXXXX").string();
    root_ = mkdtemp(name.data());
    fs::create_directories(memory_ = root_ / "memory");
    fs::create_directories(images_ = root_ / "images");
  }

  ~SharedMemoryTest() override { fs::remove_all(root_); }

  void make(const std::string& name, const std::string& text) const {
    std::ofstream(memory_ / name) << text;
  }

  fs::path root_, memory_, images_;
};

TEST_F(SharedMemoryTest, FileIsMadeAgainWithHoles) {
  make("a", "begin");
  ASSERT_EQ(truncate((memory_ / "a").c_str(), 1 << 24), 0);
  ASSERT_EQ(chmod((memory_ / "a").c_str(), 0640), 0);
  ASSERT_TRUE(save_shared_memory({"a"}, images_, memory_).has_value());
  fs::remove(memory_ / "a");
  ASSERT_TRUE(restore_shared_memory(images_, memory_).has_value());
  EXPECT_EQ(base::read_file(memory_ / "a", 1 << 25).value_or("").substr(0, 6),
            std::string("begin\0", 6));

  struct stat info {};

  ASSERT_EQ(stat((memory_ / "a").c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 1 << 24);
  EXPECT_EQ(info.st_mode & 0777U, 0640U);
  EXPECT_LT(info.st_blocks, 1 << 10);
}

TEST_F(SharedMemoryTest, ExistingFileIsRefusedAndNothingLeft) {
  make("a", "1");
  make("b", "2");
  ASSERT_TRUE(save_shared_memory({"a", "b"}, images_, memory_).has_value());
  fs::remove(memory_ / "a");
  const auto restored = restore_shared_memory(images_, memory_);
  ASSERT_FALSE(restored.has_value());
  EXPECT_TRUE(restored.error().is(base::Errc::Exists));
  EXPECT_FALSE(fs::exists(memory_ / "a"));
  EXPECT_EQ(base::read_file(memory_ / "b", 9).value_or(""), "2");
}

TEST_F(SharedMemoryTest, LinksAreNotFollowed) {
  fs::create_symlink("/etc/passwd", memory_ / "a");
  EXPECT_FALSE(save_shared_memory({"a"}, images_, memory_).has_value());
}

TEST(SharedMemoryOf, MappedFilesAreFoundAndUnlinkedOnesNot) {
  const std::string name = "scored-test-" + std::to_string(getpid());
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  ASSERT_GE(file, 0);
  const std::vector<pid_t> self{getpid()};
  const auto named = shared_memory_of(self);
  shm_unlink(name.c_str());
  const auto unlinked = shared_memory_of(self);
  close(file);
  EXPECT_NE(std::find(named.begin(), named.end(), name), named.end());
  EXPECT_EQ(std::find(unlinked.begin(), unlinked.end(), name), unlinked.end());
}

}  // namespace
}  // namespace score::shepherd
