// These tests use the store as one of two: what one commits, the other has, too.
#include "base/os/fd.hpp"
#include "scored/head/store/commit_log.hpp"
#include "scored/head/store/store.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sys/stat.h>

namespace score::head {
namespace {

class StoreLogTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "store_log.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    place_ = name;
    for (const char* head : {"/a", "/b"}) ASSERT_EQ(::mkdir((place_ + head).c_str(), 0700), 0);
  }

  void TearDown() override { std::filesystem::remove_all(place_); }

  Store open(const char* head) {
    auto store = Store::open(place_ + head);
    EXPECT_TRUE(store) << store.error().message();
    return *std::move(store);
  }

  static Change job(std::uint64_t id) {
    AddJob add;
    add.info.id = JobId(id);
    add.info.user = UserId(1000);
    add.info.name = "job";
    add.spec = std::string(1000, 'x');
    return add;
  }

  static std::string apply(Store& store, std::vector<Change> changes) {
    const Status done = store.apply(changes);
    EXPECT_TRUE(done) << done.error().message();
    return store.take_changes();
  }

  // Replaces the database of `to` by a copy of `from`.
  void copy(Store& from, Store& to) {
    ASSERT_TRUE(from.copy_to(place_ + "/copy"));
    const Status replaced = to.replace_with(place_ + "/copy");
    ASSERT_TRUE(replaced) << replaced.error().message();
  }

  std::string place_;
};

TEST_F(StoreLogTest, ShippedChangesMakeTheStoresEqual) {
  Store a = open("/a");
  Store b = open("/b");
  ASSERT_TRUE(a.begin_log(Epoch(7)));
  copy(a, b);
  SaveEnd end;
  end.id = JobId(1);
  end.progress.state = JobState::Completed;
  end.status = "status";
  const std::vector<std::vector<Change>> groups = {
      {job(1), job(2)},
      {SaveSetting{"quantum", "50ms"}, Change(end)},
      {SaveSetting{"quantum", std::nullopt}},
      {Barrier()},
  };
  std::uint64_t sequence = 0;
  for (const auto& group : groups) {
    const std::string changes = apply(a, group);
    const Status stored = b.apply_shipped(changes, {Epoch(7), ++sequence});
    ASSERT_TRUE(stored) << stored.error().message();
  }
  EXPECT_EQ(a.log_sequence(), 4U);
  EXPECT_EQ(*a.open_log(), (gang::LogPosition{Epoch(7), 4}));
  EXPECT_EQ(*b.open_log(), (gang::LogPosition{Epoch(7), 4}));
  EXPECT_EQ(*a.active_jobs(), *b.active_jobs());
  EXPECT_EQ(b.active_jobs()->size(), 1U);
  EXPECT_EQ(*a.settings(), *b.settings());
  EXPECT_EQ(*b.last_job(), JobId(2)) << "a number is not given again";
}

TEST_F(StoreLogTest, MismatchedChangesAreRefused) {
  Store a = open("/a");
  Store b = open("/b");
  ASSERT_TRUE(a.begin_log(Epoch(7)));
  copy(a, b);
  const std::string first = apply(a, {job(1)});
  const std::string second = apply(a, {SaveSetting{"quantum", "50ms"}});
  EXPECT_FALSE(b.apply_shipped(second, {Epoch(7), 2})) << "the first one is missing";
  EXPECT_FALSE(b.apply_shipped(first, {Epoch(7), 2}));
  EXPECT_FALSE(b.apply_shipped("no changeset", {Epoch(7), 1}));
  EXPECT_FALSE(b.apply_shipped("", {Epoch(7), 1}));
  EXPECT_EQ(*b.open_log(), (gang::LogPosition{Epoch(7), 0}));
  EXPECT_TRUE(b.active_jobs()->empty());
  EXPECT_TRUE(b.apply_shipped(first, {Epoch(7), 1})) << "it works as before";
}

TEST_F(StoreLogTest, DamagedChangesAreRefused) {
  Store a = open("/a");
  Store b = open("/b");
  ASSERT_TRUE(a.begin_log(Epoch(7)));
  copy(a, b);
  const std::string whole = apply(a, {job(1), SaveSetting{"quantum", "50ms"}});
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    const Status stored = b.apply_shipped(whole.substr(0, length), {Epoch(7), 1});
    ASSERT_FALSE(stored) << length;
    EXPECT_NE(stored.error().message().find("checksum"), std::string::npos) << length;
  }
  for (std::size_t i = 0; i < whole.size(); i += 5) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    EXPECT_FALSE(b.apply_shipped(damaged, {Epoch(7), 1})) << i;
  }
  EXPECT_FALSE(b.apply_shipped(whole + "x", {Epoch(7), 1}));
  EXPECT_TRUE(b.active_jobs()->empty());
  EXPECT_TRUE(b.apply_shipped(whole, {Epoch(7), 1}));
}

TEST_F(StoreLogTest, ReplacedDatabaseIsKept) {
  Store a = open("/a");
  {
    Store b = open("/b");
    ASSERT_TRUE(b.apply(std::vector<Change>{job(9)}));
    copy(a, b);
    EXPECT_TRUE(b.active_jobs()->empty());
    for (int i = 0; i < 20; ++i) copy(a, b);
    ASSERT_TRUE(b.apply(std::vector<Change>{job(10)}));
  }
  EXPECT_EQ(open("/b").active_jobs()->size(), 1U) << "also after a restart";
  EXPECT_TRUE(std::filesystem::exists(place_ + "/b/jobs.db.before"));
}

TEST_F(StoreLogTest, DamagedCopyReplacesNothing) {
  Store b = open("/b");
  ASSERT_TRUE(b.apply(std::vector<Change>{job(9)}));
  ASSERT_TRUE(replace_file(place_ + "/copy", std::string(100'000, 'x'), 0600));
  EXPECT_FALSE(b.replace_with(place_ + "/copy"));
  EXPECT_EQ(b.active_jobs()->size(), 1U);
}

TEST_F(StoreLogTest, NewerCopyReplacesNothing) {
  Store a = open("/a");
  Store b = open("/b");
  ASSERT_TRUE(b.apply(std::vector<Change>{job(9)}));
  ASSERT_TRUE(a.copy_to(place_ + "/copy"));
  {
    auto copy = Database::open(place_ + "/copy", Database::Mode::ReadWrite);
    ASSERT_TRUE(copy);
    ASSERT_TRUE(copy->execute("PRAGMA user_version = 99"));
  }
  const Status replaced = b.replace_with(place_ + "/copy");
  ASSERT_FALSE(replaced);
  EXPECT_NE(replaced.error().message().find("schema version 99"), std::string::npos);
  EXPECT_EQ(b.active_jobs()->size(), 1U);
}

TEST_F(StoreLogTest, SingleHeadStoreStartsAtItsIncarnation) {
  Store a = open("/a");
  ASSERT_TRUE(a.begin_incarnation());
  ASSERT_TRUE(a.begin_incarnation());
  EXPECT_EQ(*a.open_log(), (gang::LogPosition{Epoch(2), 0}));
  ASSERT_TRUE(a.raise_incarnation(Epoch(9)));
  EXPECT_EQ(*a.greatest_incarnation(), Epoch(9));
  ASSERT_TRUE(a.raise_incarnation(Epoch(3)));
  EXPECT_EQ(*a.greatest_incarnation(), Epoch(9));
  EXPECT_EQ(*a.open_log(), (gang::LogPosition{Epoch(2), 0})) << "a term is no change";
  ASSERT_TRUE(a.forget_log());
  EXPECT_EQ(*a.open_log(), (gang::LogPosition{Epoch(9), 0}));
}

TEST_F(StoreLogTest, VotesSurviveARestartAndACopy) {
  {
    Store fresh = open("/a");
    EXPECT_EQ(fresh.stored_terms(0)->greatest, Epoch(0));
    ASSERT_TRUE(fresh.store_vote(0, Epoch(5)));
    ASSERT_TRUE(fresh.raise_incarnation(Epoch(8)));
  }
  Store a = open("/a");
  EXPECT_EQ(a.stored_terms(0)->granted, Epoch(5));
  EXPECT_EQ(a.stored_terms(0)->greatest, Epoch(8));
  // The second head installs the first one's database, whose term it granted.
  const Change leader = SaveSetting{std::string(kLogHead), "0"};
  ASSERT_TRUE(a.apply(std::span(&leader, 1)));
  ASSERT_TRUE(a.begin_log(Epoch(8)));
  ASSERT_TRUE(a.copy_to(place_ + "/copy"));
  Store b = open("/b");
  ASSERT_TRUE(b.replace_with(place_ + "/copy"));
  EXPECT_EQ(b.stored_terms(1)->granted, Epoch(8));
  EXPECT_EQ(b.stored_terms(0)->granted, Epoch(5)) << "the vote of the first head";
}

TEST_F(StoreLogTest, OlderStoreGrantsNoEarlierTerm) {
  Store a = open("/a");
  ASSERT_TRUE(a.raise_incarnation(Epoch(7)));
  EXPECT_EQ(a.stored_terms(0)->granted, Epoch(7));
}

// Terms are greater than every incarnation, so a second number for this head might be a term in
// which the other head is elected.
TEST_F(StoreLogTest, ElectedHeadUsesItsTermAsIncarnation) {
  Store a = open("/a");
  ASSERT_TRUE(a.raise_incarnation(Epoch(7)));
  ASSERT_TRUE(a.begin_log(Epoch(7)));
  EXPECT_EQ(*a.begin_incarnation(), Epoch(7));
  EXPECT_EQ(*a.greatest_incarnation(), Epoch(7));
}

TEST_F(StoreLogTest, RepliesOfALogWaitForRelease) {
  Store a = open("/a");
  ASSERT_TRUE(a.begin_log(Epoch(7)));
  asio::io_context io;
  auto work = asio::make_work_guard(io);
  CommitLog commits(io, std::move(a));
  std::vector<std::uint64_t> committed;
  int answered = 0;
  commits.on_committed([&](std::uint64_t sequence, const std::string& changes) {
    EXPECT_FALSE(changes.empty());
    committed.push_back(sequence);
  });
  commits.add(job(1), [&](const Status& stored) { answered += stored ? 1 : 100; });
  while (committed.empty()) io.run_one();
  commits.add(job(2), [&](const Status& stored) { answered += stored ? 1 : 100; });
  while (committed.size() < 2) io.run_one();
  EXPECT_EQ(answered, 0);
  EXPECT_EQ(commits.pending(), 2U);
  commits.release(1);
  EXPECT_EQ(answered, 1);
  std::optional<std::uint64_t> copied;
  commits.copy(place_ + "/copy",
               [&](const Result<std::uint64_t>& sequence) { copied = *sequence; });
  while (!copied) io.run_one();
  EXPECT_EQ(*copied, 2U);
  commits.release(2);
  EXPECT_EQ(answered, 2);
  EXPECT_EQ(commits.pending(), 0U);
}

}  // namespace
}  // namespace score::head
