#include "pario/store/trees.hpp"

#include "tests/support/pario/test_directory.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace score::pario {
namespace {

constexpr std::int64_t kNow = 5'000;

class TreesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string message;
    ASSERT_EQ(Store::open(directory_.path(), {"test", 0, 1, 4096}, store_, message), 0);
    ASSERT_EQ(files_.open(directory_.fd(), [](FileId) { return false; }), 0);
    trees_ = std::make_unique<Trees>(*store_, files_);
    ASSERT_EQ(store_->make_id(id_), 0);
    ASSERT_EQ(store_->put(id_, Inode{S_IFREG | 0644, 0, 1, 1}), 0);
  }

  // Fills result_.
  int run(const Request& request, std::string_view data = {}) {
    result_ = {};
    return trees_->run(request, data, kNow, result_);
  }

  int set(std::string_view name, std::string_view value, ValueChange change = ValueChange::Set) {
    const auto mode = static_cast<std::uint32_t>(change);
    return run({.op = Op::SetValue, .id = id_, .mode = mode, .name = name}, value);
  }

  std::string list() {
    EXPECT_EQ(run({.op = Op::ListValues, .id = id_}), 0);
    return result_.data;
  }

  Inode inode() {
    Inode found;
    EXPECT_EQ(store_->get(id_, found), 0);
    return found;
  }

  TestDirectory directory_;
  std::unique_ptr<Store> store_;
  DataFiles files_{1 << 20};
  std::unique_ptr<Trees> trees_;
  FileId id_ = 0;
  Trees::Result result_;
};

TEST_F(TreesTest, LinksAreCounted) {
  const Request add{.op = Op::ChangeLinks, .id = id_, .number = 1};
  const Request drop{.op = Op::ChangeLinks, .id = id_};
  EXPECT_EQ(inode().links, 1U);
  EXPECT_EQ(run(add), 0);
  EXPECT_EQ(inode().links, 2U);
  EXPECT_EQ(inode().changed_ns, kNow);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(drop), 0);
  EXPECT_EQ(inode().links, 0U);
  EXPECT_EQ(run({.op = Op::ChangeLinks, .id = id_, .number = 2}), EINVAL);
  EXPECT_EQ(run({.op = Op::ChangeLinks, .id = kRootId, .number = 1}), EPERM);
  EXPECT_EQ(run({.op = Op::ChangeLinks, .id = make_id(99, 0), .number = 1}), ENOENT);
}

TEST_F(TreesTest, ValuesAreSetListedAndRemoved) {
  EXPECT_EQ(set("user.b", "2"), 0);
  EXPECT_EQ(set("user.a", std::string("1\0x", 3)), 0);
  EXPECT_EQ(set("user.a", "", ValueChange::Create), EEXIST);
  EXPECT_EQ(set("user.c", "", ValueChange::Replace), ENODATA);
  EXPECT_EQ(set("user.c", "", ValueChange::Remove), ENODATA);
  EXPECT_EQ(set("user.b", "new", ValueChange::Replace), 0);
  EXPECT_EQ(list(), std::string("user.a\0user.b\0", 14));
  EXPECT_EQ(run({.op = Op::GetValue, .id = id_, .name = "user.b"}), 0);
  EXPECT_EQ(result_.data, "new");
  EXPECT_EQ(run({.op = Op::GetValue, .id = id_, .name = "user.c"}), ENODATA);
  EXPECT_EQ(set("user.a", "", ValueChange::Remove), 0);
  EXPECT_EQ(list(), std::string("user.b\0", 7));
}

TEST_F(TreesTest, NamesOfValuesAreLimited) {
  int error = 0;
  for (int i = 0; i < 1'000 && error == 0; ++i) {
    error = set("user." + std::string(245, 'x') + std::to_string(i), "v");
  }
  EXPECT_EQ(error, ENOSPC);
  EXPECT_LE(list().size(), kMaxValueListBytes);
}

TEST_F(TreesTest, ValuesGoWithTheirFile) {
  FileId other = 0;
  ASSERT_EQ(store_->make_id(other), 0);
  ASSERT_EQ(store_->put(other, Inode{S_IFREG | 0644, 0, 1, 1}), 0);
  ASSERT_EQ(store_->store_value(other, "user.a", "other"), 0);
  ASSERT_EQ(set("user.a", "1"), 0);
  ASSERT_EQ(store_->store_value(id_, {}, "target"), 0);
  ASSERT_EQ(store_->remove(id_), 0);
  std::string value;
  EXPECT_EQ(store_->find_value(id_, "user.a", value), ENODATA);
  EXPECT_EQ(store_->find_value(id_, {}, value), ENODATA);
  EXPECT_EQ(store_->find_value(other, "user.a", value), 0);
  EXPECT_EQ(value, "other");
}

TEST_F(TreesTest, ReplicaGetsValues) {
  ASSERT_EQ(set("user.a", "1"), 0);
  const TestDirectory copy_directory;
  std::unique_ptr<Store> copy;
  std::string message;
  ASSERT_EQ(Store::open(copy_directory.path(), {"test", 0, 1, 4096}, copy, message), 0);
  ASSERT_EQ(copy->clear(), 0);
  const auto load = [&](std::uint32_t table, const std::string& rows) {
    EXPECT_EQ(copy->load(table, rows), 0);
  };
  ASSERT_EQ(store_->dump(load), 0);
  std::string value;
  EXPECT_EQ(copy->find_value(id_, "user.a", value), 0);
  EXPECT_EQ(value, "1");
}

TEST_F(TreesTest, AllocatedSpaceCounts) {
  constexpr auto kKeep = static_cast<std::uint32_t>(FALLOC_FL_KEEP_SIZE);
  constexpr auto kPunch = static_cast<std::uint32_t>(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
  Request allocate{.op = Op::Allocate, .id = id_, .mode = kKeep, .other = 500'000};
  DataStatus status;
  ASSERT_EQ(run(allocate), 0);
  ASSERT_EQ(files_.status(id_, status), 0);
  EXPECT_EQ(status.size, 0U);
  EXPECT_GE(files_.quota().used(), 500'000U);
  allocate.mode = 0;
  ASSERT_EQ(run(allocate), 0);
  ASSERT_EQ(files_.status(id_, status), 0);
  EXPECT_EQ(status.size, 500'000U);
  allocate.number = 500'000;
  allocate.other = 800'000;
  EXPECT_EQ(run(allocate), ENOSPC);
  const Request punch{.op = Op::Allocate, .id = id_, .mode = kPunch, .number = 0, .other = 409'600};
  ASSERT_EQ(run(punch), 0);
  EXPECT_LT(files_.quota().used(), 200'000U);
  Request unknown = punch;
  unknown.mode = static_cast<std::uint32_t>(FALLOC_FL_COLLAPSE_RANGE);
  EXPECT_EQ(run(unknown), EINVAL);
  unknown = punch;
  unknown.other = 0;
  EXPECT_EQ(run(unknown), EINVAL);
}

TEST_F(TreesTest, SeeksDataAndHoles) {
  Request seek{.op = Op::Seek, .id = id_, .mode = 0, .number = 7};
  EXPECT_EQ(run(seek), 0);
  EXPECT_EQ(result_.number, UINT64_MAX) << "there is no data";
  seek.mode = 1;
  EXPECT_EQ(run(seek), 0);
  EXPECT_EQ(result_.number, 7U);
  ASSERT_EQ(files_.truncate(id_, 100'000), 0);
  ASSERT_EQ(run({.op = Op::Allocate, .id = id_, .mode = 1, .number = 0, .other = 1}), 0);
  std::shared_ptr<DataFile> file;
  ASSERT_EQ(files_.get(id_, false, file), 0);
  ASSERT_EQ(::pwrite(file->fd.get(), "x", 1, 65'536), 1);
  seek = {.op = Op::Seek, .id = id_, .mode = 0, .number = 8'192};
  EXPECT_EQ(run(seek), 0);
  EXPECT_EQ(result_.number, 65'536U);
  seek.mode = 2;
  EXPECT_EQ(run(seek), EINVAL);
}

}  // namespace
}  // namespace score::pario
