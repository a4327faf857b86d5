#include "pario/server/holds/purges.hpp"

#include "tests/support/pario/asked_requests.hpp"
#include "tests/support/pario/test_directory.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <sys/stat.h>

namespace score::pario {
namespace {

constexpr std::uint32_t kServers = 3;

// The tests use the first of three servers.
class PurgesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string message;
    ASSERT_EQ(Store::open(directory_.path(), {"test", 0, kServers, 4096}, store_, message), 0);
  }

  // Makes a file that lost its name while client 1 had it open.
  FileId kept_file(bool is_wide) {
    FileId id = 0;
    Inode inode{S_IFREG | 0600, is_wide ? 1U : 0U, 0, 0};
    EXPECT_EQ(store_->make_id(id), 0);
    EXPECT_EQ(uses().keep(id, inode, 0), 0);
    EXPECT_EQ(uses().keep_open(id, 1, 0), 0);
    return id;
  }

  FileUses& uses() {
    if (!uses_) uses_ = std::make_unique<FileUses>(*store_);
    return *uses_;
  }

  TestDirectory directory_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<FileUses> uses_;
  AskedRequests peers_;
  static constexpr std::int64_t kLater = NamelessFiles::kOpenNs + 1;
};

TEST_F(PurgesTest, FileIsRemovedOnceNoClientHasIt) {
  const FileId id = kept_file(false);
  Purges purges({0, kServers}, uses(), *store_, peers_);
  purges.tick(true, 0);
  EXPECT_TRUE(peers_.asked.empty());
  purges.tick(true, kLater);
  purges.tick(true, kLater);
  ASSERT_EQ(peers_.asked.size(), 1U) << "asked once";
  EXPECT_EQ(peers_.asked[0].server, 0U);
  EXPECT_EQ(peers_.asked[0].request.op, Op::Remove);
  EXPECT_EQ(peers_.asked[0].request.flags, kPurge);
  EXPECT_EQ(peers_.asked[0].request.id, id);
  peers_.answer(EIO);
  purges.tick(true, kLater);
  EXPECT_EQ(peers_.asked.size(), 1U) << "tried again";
}

TEST_F(PurgesTest, DataOnOtherServersGoesFirst) {
  const FileId id = kept_file(true);
  Purges purges({0, kServers}, uses(), *store_, peers_);
  purges.tick(true, 0);
  purges.tick(true, kLater);
  ASSERT_EQ(peers_.asked.size(), 2U);
  EXPECT_EQ(peers_.asked[0].server, 1U);
  EXPECT_EQ(peers_.asked[1].server, 2U);
  EXPECT_EQ(peers_.asked[0].request.flags, 0);
  peers_.answer(0);
  peers_.answer(EIO);
  EXPECT_TRUE(peers_.asked.empty()) << "the home must not forget a file of which data is left";
  purges.tick(true, kLater);
  ASSERT_EQ(peers_.asked.size(), 2U);
  peers_.answer(0);
  peers_.answer(0);
  ASSERT_EQ(peers_.asked.size(), 1U);
  EXPECT_EQ(peers_.asked[0].request.id, id);
  EXPECT_EQ(peers_.asked[0].request.flags, kPurge);
}

TEST_F(PurgesTest, OnlyLeaderRemovesAndKnowsFilesFromStore) {
  kept_file(false);
  uses_.reset();  // this server was restarted
  Purges purges({0, kServers}, uses(), *store_, peers_);
  purges.tick(false, kLater);
  EXPECT_TRUE(peers_.asked.empty());
  purges.tick(true, kLater);
  EXPECT_TRUE(peers_.asked.empty()) << "clients have time to report the file again";
  purges.tick(true, 2 * kLater);
  EXPECT_EQ(peers_.asked.size(), 1U);
}

}  // namespace
}  // namespace score::pario
