#include "pario/server/metadata.hpp"

#include "tests/support/pario/test_directory.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <sys/stat.h>

namespace score::pario {
namespace {

// The tests use the only server of a volume.
class MetadataTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string message;
    ASSERT_EQ(Store::open(directory_.path(), {"test", 0, 1, 4096}, store_, message), 0);
    ASSERT_EQ(files_.open(directory_.fd(), [](FileId) { return false; }), 0);
    metadata_ = std::make_unique<Metadata>(Metadata::Place{0, 1}, *store_, files_);
  }

  // Fills answer_ and returns its error.
  int run(const Request& request, std::uint64_t client = 1) {
    Transfer transfer;
    transfer.request = request;
    transfer.client = client;
    metadata_->run(transfer, now_ns_);
    flags_ = transfer.request.flags;
    answer_ = std::move(transfer.answer);
    return answer_.error;
  }

  Attributes attributes() const {
    Attributes found;
    EXPECT_TRUE(parse_body(answer_.body, found));
    return found;
  }

  FileId create(std::string_view name, std::uint32_t mode = S_IFREG | 0644) {
    EXPECT_EQ(run({.op = Op::Create, .id = kRootId, .mode = mode, .name = name}), 0);
    return attributes().id;
  }

  std::int64_t now_ns_ = 1'000;
  std::uint16_t flags_ = 0;  // of the last request, after it
  TestDirectory directory_;
  std::unique_ptr<Store> store_;
  DataFiles files_{1 << 20};
  std::unique_ptr<Metadata> metadata_;
  Answer answer_;
};

TEST_F(MetadataTest, CreatesOnce) {
  const FileId id = create("a");
  EXPECT_EQ(create("a"), id);
  EXPECT_EQ(
      run({.op = Op::Create, .flags = kExclusive, .id = kRootId, .mode = S_IFREG, .name = "a"}),
      EEXIST);
  EXPECT_EQ(run({.op = Op::Create, .id = kRootId, .mode = S_IFLNK | 0777, .name = "b"}), EINVAL);
  EXPECT_EQ(run({.op = Op::Lookup, .id = kRootId, .name = "a"}), 0);
  EXPECT_EQ(attributes().mode, S_IFREG | 0644U);
}

TEST_F(MetadataTest, RemovesDataAfterTheCommit) {
  const FileId id = create("a");
  EXPECT_EQ(run({.op = Op::Unlink, .flags = kDirectory, .id = kRootId, .name = "a"}), ENOTDIR);
  EXPECT_EQ(run({.op = Op::Unlink, .id = kRootId, .name = "a"}), 0);
  EXPECT_EQ(metadata_->take_removals(), std::vector<FileId>{id});
  EXPECT_EQ(run({.op = Op::GetAttributes, .id = id}), ENOENT);
  EXPECT_EQ(metadata_->check_exists(id), ENOENT);
}

TEST_F(MetadataTest, RepeatedChangeGetsSameAnswer) {
  const Request create{.op = Op::Create,
                       .flags = kExclusive | kOnce,
                       .id = kRootId,
                       .once = {5, 0, 1},
                       .mode = S_IFREG | 0644,
                       .name = "a"};
  const Request unlink{
      .op = Op::Unlink, .flags = kOnce, .id = kRootId, .once = {5, 1, 1}, .name = "a"};
  ASSERT_EQ(run(create), 0);
  const std::string made = answer_.body;
  const FileId id = attributes().id;
  ASSERT_EQ(store_->commit(), 0);
  ASSERT_EQ(run(create), 0);
  EXPECT_EQ(answer_.body, made);
  ASSERT_EQ(run(unlink), 0);
  EXPECT_EQ(metadata_->take_removals(), std::vector<FileId>{id});
  const FileId next = this->create("a");
  ASSERT_EQ(run(unlink), 0);
  EXPECT_EQ(attributes().id, id);
  EXPECT_EQ(metadata_->take_removals(), std::vector<FileId>{id}) << "its data may still exist";
  EXPECT_EQ(run({.op = Op::GetAttributes, .id = next}), 0);
  Request later = create;
  later.once.sequence = 2;
  EXPECT_EQ(run(later), EEXIST) << "a later change of the same name";
  later.name = "b";
  EXPECT_EQ(run(later), 0);
  EXPECT_EQ(run(create), ESTALE) << "the client has sent a later one";
  const Request reserve{
      .op = Op::Reserve, .flags = kOnce, .id = next, .once = {6, 0, UINT32_MAX}, .number = 10};
  Request other = reserve;
  other.once.sequence = 0;  // after UINT32_MAX
  ASSERT_EQ(run(reserve), 0);
  ASSERT_EQ(run(reserve), 0);
  EXPECT_EQ(answer_.number, 0U);
  ASSERT_EQ(run(other), 0);
  EXPECT_EQ(answer_.number, 10U);
}

TEST_F(MetadataTest, SealedDirectoriesRefuseEntries) {
  const FileId id = create("d", S_IFDIR | 0755);
  EXPECT_EQ(run({.op = Op::Create, .id = id, .mode = S_IFREG, .name = "x"}), 0);
  EXPECT_EQ(run({.op = Op::SealDirectory, .id = id}), ENOTEMPTY);
  EXPECT_EQ(run({.op = Op::Unlink, .id = id, .name = "x"}), 0);
  EXPECT_EQ(run({.op = Op::SealDirectory, .id = id}), 0);
  EXPECT_EQ(run({.op = Op::Create, .id = id, .mode = S_IFREG, .name = "x"}), ESTALE);
  EXPECT_EQ(run({.op = Op::UnsealDirectory, .id = id}), 0);
  EXPECT_EQ(run({.op = Op::Create, .id = id, .mode = S_IFREG, .name = "x"}), 0);
  EXPECT_EQ(run({.op = Op::SealDirectory, .id = kRootId}), EBUSY);
  EXPECT_EQ(run({.op = Op::Remove, .id = kRootId}), EBUSY);
}

TEST_F(MetadataTest, RenamesReplaceFiles) {
  const FileId a = create("a");
  const FileId b = create("b");
  create("d", S_IFDIR | 0755);
  const Request rename{
      .op = Op::Rename, .id = kRootId, .number = kRootId, .name = "a", .name2 = "b"};
  Request exclusive = rename;
  exclusive.flags = kExclusive;
  EXPECT_EQ(run(exclusive), EEXIST);
  Request onto_directory = rename;
  onto_directory.name2 = "d";
  EXPECT_EQ(run(onto_directory), EISDIR);
  EXPECT_EQ(run(rename), 0);
  EXPECT_EQ(attributes().id, b);
  EXPECT_EQ(run({.op = Op::Lookup, .id = kRootId, .name = "a"}), ENOENT);
  EXPECT_EQ(run({.op = Op::Lookup, .id = kRootId, .name = "b"}), 0);
  EXPECT_EQ(attributes().id, a);
}

TEST_F(MetadataTest, FileStaysUntilItsLastName) {
  const FileId id = create("a");
  EXPECT_EQ(attributes().links, 1U);
  ASSERT_EQ(run({.op = Op::ChangeLinks, .id = id, .number = 1}), 0);
  EXPECT_EQ(attributes().links, 2U);
  ASSERT_EQ(run({.op = Op::Insert, .id = kRootId, .mode = S_IFREG, .number = id, .name = "b"}), 0);
  const Request same{.op = Op::Rename, .id = kRootId, .number = kRootId, .name = "a", .name2 = "b"};
  EXPECT_EQ(run(same), 0) << "both names stay";
  EXPECT_EQ(run({.op = Op::Unlink, .id = kRootId, .name = "a"}), 0);
  EXPECT_EQ(attributes().links, 1U);
  EXPECT_TRUE(metadata_->take_removals().empty());
  EXPECT_EQ(run({.op = Op::Remove, .flags = kNameless, .id = id}), 0);
  EXPECT_TRUE(metadata_->take_removals().empty()) << "it has a name";
  EXPECT_EQ(run({.op = Op::Unlink, .id = kRootId, .name = "b"}), 0);
  EXPECT_EQ(attributes().links, 0U);
  EXPECT_EQ(metadata_->take_removals(), std::vector<FileId>{id});
}

TEST_F(MetadataTest, RepeatedRemovalOfOneNameKeepsFile) {
  const FileId id = create("a");
  ASSERT_EQ(run({.op = Op::ChangeLinks, .id = id, .number = 1}), 0);
  const Request remove{.op = Op::Remove, .flags = kOnce, .id = id, .once = {5, 0, 1}};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(run(remove), 0);
    EXPECT_EQ(attributes().links, 1U);
    EXPECT_TRUE(metadata_->take_removals().empty());
  }
}

TEST_F(MetadataTest, FileWithoutNameIsMadeAndRemoved) {
  ASSERT_EQ(run({.op = Op::MakeFile, .id = kRootId, .mode = S_IFREG | 0600}), 0);
  const FileId id = attributes().id;
  EXPECT_EQ(attributes().links, 0U);
  EXPECT_EQ(run({.op = Op::MakeFile, .id = kRootId, .mode = S_IFDIR | 0700}), EINVAL);
  EXPECT_EQ(run({.op = Op::Remove, .flags = kNameless, .id = id}), 0);
  EXPECT_EQ(metadata_->take_removals(), std::vector<FileId>{id});
  EXPECT_EQ(run({.op = Op::GetAttributes, .id = id}), ENOENT);
}

TEST_F(MetadataTest, ExchangesNames) {
  const FileId a = create("a");
  const FileId d = create("d", S_IFDIR | 0755);
  Request exchange{.op = Op::Rename,
                   .flags = kExchange,
                   .id = kRootId,
                   .number = kRootId,
                   .name = "a",
                   .name2 = "d"};
  EXPECT_EQ(run(exchange), 0);
  EXPECT_EQ(run({.op = Op::Lookup, .id = kRootId, .name = "d"}), 0);
  EXPECT_EQ(attributes().id, a);
  EXPECT_EQ(run({.op = Op::Lookup, .id = kRootId, .name = "a"}), 0);
  EXPECT_EQ(attributes().id, d);
  exchange.name2 = "none";
  EXPECT_EQ(run(exchange), ENOENT);
}

TEST_F(MetadataTest, TimesAreSetSeparatelyAndBefore1970) {
  const FileId id = create("a");
  const auto early = static_cast<std::uint64_t>(std::int64_t{-5'000'000'000});
  const Request accessed{.op = Op::SetTime, .id = id, .mode = kSetAccessed, .other = early};
  ASSERT_EQ(run(accessed), 0);
  ASSERT_EQ(run({.op = Op::GetAttributes, .id = id}), 0);
  EXPECT_EQ(attributes().accessed_ns, -5'000'000'000);
  EXPECT_EQ(attributes().modified_ns, 1'000);
  const Request modified{.op = Op::SetTime, .id = id, .mode = kSetModified, .number = early};
  ASSERT_EQ(run(modified), 0);
  ASSERT_EQ(run({.op = Op::GetAttributes, .id = id}), 0);
  EXPECT_EQ(attributes().modified_ns, -5'000'000'000);
  EXPECT_EQ(attributes().changed_ns, 1'000) << "the time of the change follows the clock";
}

TEST_F(MetadataTest, LayoutIsInTheNumber) {
  const Request local{
      .op = Op::Create, .flags = kLocalLayout, .id = kRootId, .mode = S_IFDIR | 0700, .name = "d"};
  ASSERT_EQ(run(local), 0);
  const FileId id = attributes().id;
  EXPECT_TRUE(is_local(id));
  EXPECT_EQ(home_of(id), 0U);
  EXPECT_FALSE(is_local(create("a")));
  EXPECT_EQ(run({.op = Op::GetAttributes, .id = id}), 0);
  ASSERT_EQ(run({.op = Op::MakeFile, .flags = kLocalLayout, .id = id, .mode = S_IFREG | 0600}), 0);
  EXPECT_TRUE(is_local(attributes().id));
  Request forwarded = local;
  forwarded.name = "e";
  forwarded.flags |= kForwarded;
  forwarded.forwarded.new_id = make_id(50, 0);
  ASSERT_EQ(run(forwarded), 0) << "as the leader's follower";
  EXPECT_EQ(attributes().id, make_id(50, 0) | kLocalBit);
}

// The tests use one of two servers.
class DirectoryHomeTest : public MetadataTest {
 protected:
  void SetUp() override {
    std::string message;
    ASSERT_EQ(Store::open(directory_.path(), {"test", 0, 2, 4096}, store_, message), 0);
    ASSERT_EQ(files_.open(directory_.fd(), [](FileId) { return false; }), 0);
    metadata_ = std::make_unique<Metadata>(Metadata::Place{0, 2}, *store_, files_, 100);
  }

  // Returns a name whose entry is on this server.
  static std::string name_in(FileId directory, int number = 0) {
    for (int i = number;; ++i) {
      const std::string name = "n" + std::to_string(i);
      if (entry_server(directory, name, 2) == 0) return name;
    }
  }
};

TEST_F(DirectoryHomeTest, OtherServersAreAskedOnlyAfterReports) {
  const FileId id = create(name_in(kRootId), S_IFDIR | 0755);
  EXPECT_EQ(attributes().wide, 0U) << "a new directory";
  ASSERT_EQ(run({.op = Op::ReportChange, .id = id}), 0);
  ASSERT_EQ(run({.op = Op::GetAttributes, .id = id}), 0);
  EXPECT_EQ(attributes().wide, 1U);
  const std::uint64_t version = attributes().size;
  ASSERT_EQ(run({.op = Op::SettleTime, .id = id, .number = 9'000, .other = version + 1}), 0);
  ASSERT_EQ(run({.op = Op::GetAttributes, .id = id}), 0);
  EXPECT_EQ(attributes().wide, 1U) << "not the version";
  ASSERT_EQ(run({.op = Op::SettleTime, .id = id, .number = 9'000, .other = version}), 0);
  ASSERT_EQ(run({.op = Op::GetAttributes, .id = id}), 0);
  EXPECT_EQ(attributes().wide, 0U);
  EXPECT_EQ(attributes().modified_ns, 9'000);
  ASSERT_EQ(run({.op = Op::SetTime, .id = id, .mode = kSetModified, .number = 500}), 0);
  ASSERT_EQ(run({.op = Op::GetAttributes, .id = id}), 0);
  EXPECT_EQ(attributes().modified_ns, 500);
  EXPECT_EQ(run({.op = Op::ReportChange, .id = make_id(9, 1)}), EINVAL) << "not its home";
  EXPECT_EQ(run({.op = Op::SettleTime, .id = make_id(9, 1)}), EINVAL);
}

TEST_F(DirectoryHomeTest, ChangesNameDirectoriesOfOtherHomes) {
  const auto touched = [&](const Request& request) {
    Transfer transfer;
    transfer.request = request;
    metadata_->run(transfer, now_ns_);
    EXPECT_EQ(transfer.answer.error, 0);
    return transfer.touched;
  };
  const FileId far = make_id(9, 1);
  const std::string name = name_in(far);
  const std::string other = name_in(kRootId);
  const std::array<FileId, 2> one{far, 0};
  Request create{.op = Op::Create, .id = far, .mode = S_IFREG | 0600, .name = name};
  EXPECT_EQ(touched(create), one);
  const Request rename{
      .op = Op::Rename, .id = kRootId, .number = far, .name = other, .name2 = name};
  this->create(other);
  EXPECT_EQ(touched(rename), (std::array<FileId, 2>{0, far}));
  create.name = name;
  create.flags = kForwarded;
  EXPECT_EQ(touched(create), (std::array<FileId, 2>{})) << "the leader reports";
  EXPECT_EQ(touched({.op = Op::Lookup, .id = far, .name = name}), (std::array<FileId, 2>{}));
}

TEST_F(MetadataTest, ReservesSpaceForAppends) {
  const FileId id = create("a");
  const Request reserve{.op = Op::Reserve, .id = id, .number = 10, .other = 100};
  EXPECT_EQ(run(reserve), 0);
  EXPECT_EQ(answer_.number, 100U);
  EXPECT_EQ(run(reserve), 0);
  EXPECT_EQ(answer_.number, 110U);
  EXPECT_EQ(run({.op = Op::Truncate, .id = id, .number = 0}), 0);
  EXPECT_EQ(run({.op = Op::Reserve, .id = id, .number = 10, .other = 0}), 0);
  EXPECT_EQ(answer_.number, 0U);
  EXPECT_EQ(run({.op = Op::Reserve, .id = id, .number = kMaxOffset, .other = 0}), EFBIG);
}

TEST_F(MetadataTest, FileInUseElsewhereIsKeptWithoutName) {
  const FileId id = create("a");
  EXPECT_EQ(run({.op = Op::Lookup, .id = kRootId, .name = "a"}, 2), 0);
  EXPECT_EQ(run({.op = Op::Unlink, .id = kRootId, .name = "a"}), 0);
  EXPECT_EQ(flags_ & kKept, kKept);
  EXPECT_TRUE(metadata_->take_removals().empty());
  EXPECT_EQ(run({.op = Op::GetAttributes, .id = id}), ENOENT);
  EXPECT_EQ(run({.op = Op::GetAttributes, .flags = kOpened, .id = id}), 0);
  EXPECT_EQ(attributes().links, 0U);
  EXPECT_EQ(metadata_->check_exists(id), 0);
  EXPECT_EQ(run({.op = Op::Remove, .flags = kPurge, .id = id}), 0);
  EXPECT_TRUE(metadata_->take_removals().empty()) << "it is still needed";
  now_ns_ += NamelessFiles::kOpenNs;
  EXPECT_EQ(metadata_->uses().expired(now_ns_), std::vector<FileId>{id});
  EXPECT_EQ(run({.op = Op::Remove, .flags = kPurge, .id = id}), 0);
  EXPECT_EQ(metadata_->take_removals(), std::vector<FileId>{id});
  EXPECT_EQ(run({.op = Op::GetAttributes, .flags = kOpened, .id = id}), ENOENT);
}

TEST_F(MetadataTest, FileOfItsRemoverIsRemovedAtOnce) {
  const FileId id = create("a");
  EXPECT_EQ(run({.op = Op::GetAttributes, .flags = kOpened, .id = id}), 0);
  EXPECT_EQ(run({.op = Op::Unlink, .id = kRootId, .name = "a"}), 0);
  EXPECT_EQ(metadata_->take_removals(), std::vector<FileId>{id});
}

TEST_F(MetadataTest, FileThatItsRemoverOpensIsKept) {
  const FileId id = create("a");
  EXPECT_EQ(run({.op = Op::Lookup, .flags = kWillOpen, .id = kRootId, .name = "a"}), 0);
  EXPECT_EQ(run({.op = Op::Unlink, .id = kRootId, .name = "a"}), 0);
  EXPECT_EQ(run({.op = Op::GetAttributes, .flags = kOpened, .id = id}), 0);
}

TEST_F(MetadataTest, KeptFileSurvivesRestart) {
  const FileId id = create("a");
  EXPECT_EQ(run({.op = Op::Lookup, .id = kRootId, .name = "a"}, 2), 0);
  EXPECT_EQ(run({.op = Op::Unlink, .id = kRootId, .name = "a"}), 0);
  metadata_ = std::make_unique<Metadata>(Metadata::Place{0, 1}, *store_, files_);
  EXPECT_EQ(metadata_->uses().load(now_ns_), 0);
  EXPECT_TRUE(metadata_->uses().is_kept(id));
  EXPECT_TRUE(metadata_->uses().expired(now_ns_).empty());
  EXPECT_EQ(metadata_->uses().expired(now_ns_ + NamelessFiles::kOpenNs).size(), 1U);
}

TEST_F(MetadataTest, FollowerKeepsWhatItsLeaderKeeps) {
  const FileId id = create("a");
  EXPECT_EQ(run({.op = Op::Unlink, .flags = kForwarded | kKept, .id = kRootId, .name = "a"}), 0);
  EXPECT_TRUE(metadata_->uses().is_kept(id));
  create("b");
  EXPECT_EQ(run({.op = Op::Lookup, .id = kRootId, .name = "b"}, 2), 0);
  EXPECT_EQ(run({.op = Op::Unlink, .flags = kForwarded, .id = kRootId, .name = "b"}), 0);
  EXPECT_EQ(metadata_->take_removals().size(), 1U);
}

TEST_F(MetadataTest, LocksAreStoredUntilTheirClientIsLost) {
  const FileId id = create("a");
  const auto lock = [&](std::uint64_t client, std::uint32_t mode) {
    LockRequest range{5, 0, 10, 0};
    Transfer transfer;
    transfer.request = {.op = Op::Lock, .id = id, .mode = mode, .number = client};
    Buffers buffers;
    if (mode != kDropClient) {
      transfer.request.data_bytes = sizeof range;
      transfer.data = buffers.take(sizeof range);
      std::memcpy(transfer.data.get(), &range, sizeof range);
    }
    metadata_->run(transfer, now_ns_);
    return transfer.answer.error;
  };
  EXPECT_EQ(lock(7, kExclusiveLock), 0);
  EXPECT_EQ(lock(8, kShared), EAGAIN);
  std::vector<FileId> locked;
  EXPECT_EQ(store_->list_locked(locked), 0);
  EXPECT_EQ(locked, std::vector<FileId>{id});
  EXPECT_EQ(lock(7, kDropClient), 0);
  EXPECT_EQ(lock(8, kShared), 0);
  EXPECT_EQ(lock(8, kAllLockBits + 1), EINVAL);
}

}  // namespace
}  // namespace score::pario
