#include "pario/store/data_files.hpp"

#include "tests/support/pario/test_directory.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <unistd.h>

namespace score::pario {
namespace {

bool keep(FileId) {
  return false;
}

// Writes as the server does. Returns 0 or an errno value.
int write(DataFiles& files, FileId id, std::uint64_t offset, std::uint64_t length) {
  std::shared_ptr<DataFile> file;
  std::uint64_t reserved = 0;
  if (const int error = files.get(id, true, file)) return error;
  if (const int error = files.reserve(*file, {{offset, length}}, reserved)) return error;
  const std::string bytes(length, 'x');
  EXPECT_EQ(::pwrite(file->fd.get(), bytes.data(), length, static_cast<off_t>(offset)),
            static_cast<ssize_t>(length));
  files.settle(*file, reserved);
  return 0;
}

TEST(DataFiles, SpaceIsCountedAndReturned) {
  const TestDirectory directory;
  DataFiles files(1 << 20);
  ASSERT_EQ(files.open(directory.fd(), keep), 0);
  const FileId id = make_id(5, 0);
  EXPECT_EQ(write(files, id, 0, 500'000), 0);
  EXPECT_GE(files.quota().used(), 500'000U);
  EXPECT_EQ(write(files, id, 500'000, 800'000), ENOSPC);
  EXPECT_EQ(write(files, make_id(6, 0), 0, 800'000), ENOSPC);
  EXPECT_EQ(files.truncate(id, 1'000'000'000), 0);  // a hole
  EXPECT_LT(files.quota().used(), std::uint64_t{1} << 20);
  {
    DataFiles again(1 << 20);  // as after a restart
    ASSERT_EQ(again.open(directory.fd(), keep), 0);
    EXPECT_EQ(again.quota().used(), files.quota().used());
  }
  DataStatus status;
  ASSERT_EQ(files.status(id, status), 0);
  EXPECT_EQ(status.size, 1'000'000'000U);
  EXPECT_EQ(files.remove(id), 0);
  EXPECT_EQ(files.quota().used(), 0U);
  EXPECT_EQ(files.status(id, status), ENOENT);
  EXPECT_EQ(files.remove(id), ENOENT);
}

TEST(DataFiles, FullVolumeCanBeOverwritten) {
  const TestDirectory directory;
  DataFiles files(300'000);
  ASSERT_EQ(files.open(directory.fd(), keep), 0);
  const FileId id = make_id(5, 0);
  EXPECT_EQ(write(files, id, 0, 250'000), 0);
  EXPECT_EQ(write(files, id, 1'000, 200'000), 0);
  EXPECT_EQ(write(files, id, 200'000, 100'000), ENOSPC);
}

TEST(DataFiles, RemovedFileRemainsUsableWhileOpen) {
  const TestDirectory directory;
  DataFiles files(1 << 20);
  ASSERT_EQ(files.open(directory.fd(), keep), 0);
  std::shared_ptr<DataFile> file;
  ASSERT_EQ(files.get(make_id(5, 0), true, file), 0);
  std::uint64_t reserved = 0;
  ASSERT_EQ(files.reserve(*file, {{0, 5}}, reserved), 0);
  ASSERT_EQ(files.remove(make_id(5, 0)), 0);
  ASSERT_EQ(::pwrite(file->fd.get(), "12345", 5, 0), 5);
  files.settle(*file, reserved);
  EXPECT_EQ(files.quota().used(), 0U);
  EXPECT_EQ(files.quota().free(), std::uint64_t{1} << 20);
}

TEST(DataFiles, SpaceOfRemovedOpenFileIsFreed) {
  const TestDirectory directory;
  DataFiles files(1 << 20);
  ASSERT_EQ(files.open(directory.fd(), keep), 0);
  const FileId id = make_id(5, 0);
  ASSERT_EQ(write(files, id, 0, 300'000), 0);
  std::shared_ptr<DataFile> file;
  ASSERT_EQ(files.get(id, false, file), 0);
  const UniqueFd other(::dup(file->fd.get()));
  file.reset();
  ASSERT_EQ(files.remove(id), 0);

  struct stat status {};

  ASSERT_EQ(::fstat(other.get(), &status), 0);
  EXPECT_EQ(status.st_nlink, 0U);
  EXPECT_EQ(status.st_blocks, 0);
}

TEST(DataFiles, LeftoverFilesAreRemoved) {
  const TestDirectory directory;
  {
    DataFiles files(1 << 20);
    ASSERT_EQ(files.open(directory.fd(), keep), 0);
    EXPECT_EQ(write(files, make_id(5, 0), 0, 10), 0);
    EXPECT_EQ(write(files, make_id(6, 0), 0, 10), 0);
  }
  DataFiles files(1 << 20);
  ASSERT_EQ(files.open(directory.fd(), [](FileId id) { return id == make_id(5, 0); }), 0);
  DataStatus status;
  EXPECT_EQ(files.status(make_id(5, 0), status), ENOENT);
  EXPECT_EQ(files.status(make_id(6, 0), status), 0);
}

TEST(DataFiles, LinksOutOfDirectoryAreNotFollowed) {
  const TestDirectory outside;
  const TestDirectory directory;
  DataFiles files(1 << 20);
  ASSERT_EQ(files.open(directory.fd(), keep), 0);
  const FileId id = make_id(0x105, 0);
  const std::string path = directory.path() + "/data/05/0000000000105000";
  ASSERT_EQ(::symlink((outside.path() + "/stolen").c_str(), path.c_str()), 0);
  std::shared_ptr<DataFile> file;
  EXPECT_EQ(files.get(id, true, file), ELOOP);
  EXPECT_TRUE(std::filesystem::is_empty(outside.path()));
}

}  // namespace
}  // namespace score::pario
