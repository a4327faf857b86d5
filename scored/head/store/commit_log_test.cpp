#include "scored/head/store/commit_log.hpp"

#include "tests/support/head/failing_disk.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <stdlib.h>

namespace score::head {
namespace {

namespace fs = std::filesystem;

class CommitLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "score_log_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }

  void TearDown() override { fs::remove_all(directory_); }

  // Runs the loop; stops when `done` returns true, or when nothing arrives for a while.
  template <typename Predicate>
  bool run_until(Predicate done) {
    io_.restart();
    const auto work = asio::require(io_.get_executor(), asio::execution::outstanding_work.tracked);
    while (!done()) {
      if (io_.run_one_for(std::chrono::seconds(120)) == 0) return false;
    }
    return true;
  }

  static AddJob job(std::uint64_t id) {
    AddJob add;
    add.info.id = JobId(id);
    add.spec = std::string(2000, 'e');
    return add;
  }

  std::string directory_;
  asio::io_context io_{1};
};

TEST_F(CommitLogTest, AnswersInOrderAfterTheCommit) {
  CommitLog log(io_, Store::open(directory_).value());
  std::vector<int> answers;
  log.ask({job(1)}, [&](const Status& status) { answers.push_back(status ? 1 : -1); });
  log.add(SaveProgress{JobId(1), {}}, [&](const Status&) { answers.push_back(2); });
  log.after([&](const Status&) { answers.push_back(3); });
  EXPECT_TRUE(answers.empty());
  ASSERT_TRUE(run_until([&] { return answers.size() == 3; }));
  EXPECT_EQ(answers, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(log.pending(), 0u);
}

TEST_F(CommitLogTest, RefusesFailedRequestAndKeepsEvents) {
  CommitLog log(io_, Store::open(directory_).value());
  int refused = 0;
  int stored = 0;
  log.ask({job(1)}, [&](const Status& status) { stored += status ? 1 : 0; });
  ASSERT_TRUE(run_until([&] { return stored == 1; }));
  log.ask({job(1)}, [&](const Status& status) { refused += status ? 0 : 1; });
  log.add(SaveSetting{"slots", "3"}, [&](const Status& status) { stored += status ? 1 : 0; });
  ASSERT_TRUE(run_until([&] { return refused == 1 && stored == 2; }));
}

TEST_F(CommitLogTest, StoresAllOfARequestOrNothing) {
  {
    CommitLog log(io_, Store::open(directory_).value());
    int answers = 0;
    log.ask({SaveSetting{"slots", "3"}, job(1), job(1)}, [&](const Status& status) {
      EXPECT_FALSE(status);
      ++answers;
    });
    ASSERT_TRUE(run_until([&] { return answers == 1; }));
    log.ask({SaveSetting{"fill", "on"}, job(1)}, [&](const Status& status) {
      EXPECT_TRUE(status);
      ++answers;
    });
    ASSERT_TRUE(run_until([&] { return answers == 2; }));
  }
  const auto settings = Store::open(directory_).value().settings().value();
  EXPECT_FALSE(settings.contains("slots"));
  EXPECT_TRUE(settings.contains("fill"));
}

// After an fsync error the frames of the refused changes are complete in the log, but must not take
// effect later.
TEST_F(CommitLogTest, RefusedChangesStayAbsentAfterTheNextCommit) {
  FailingDisk disk;
  {
    CommitLog log(io_, Store::open(directory_).value());
    int refused = 0;
    disk.set(FailingDisk::Mode::BadSyncs);
    log.ask({job(1)}, [&](const Status& status) { refused += status ? 0 : 1; });
    ASSERT_TRUE(run_until([&] { return refused == 1; }));
    disk.set(FailingDisk::Mode::Works);
    bool is_stored = false;
    log.after([&](const Status&) { is_stored = true; });
    ASSERT_TRUE(run_until([&] { return is_stored; }));
    EXPECT_EQ(log.pending(), 0U);
    fs::copy(directory_, directory_ + ".crash", fs::copy_options::recursive);
  }
  fs::remove(directory_ + ".crash/jobs.db-shm");
  EXPECT_TRUE(Store::open(directory_ + ".crash").value().active_jobs().value().empty());
  fs::remove_all(directory_ + ".crash");
}

TEST_F(CommitLogTest, StoresWhatIsLeftWhenStopped) {
  {
    CommitLog log(io_, Store::open(directory_).value());
    for (std::uint64_t id = 1; id <= 50; ++id) log.add(job(id));
    log.stop();
  }
  EXPECT_EQ(Store::open(directory_).value().active_jobs().value().size(), 50u);
}

// There are 16 clients; each one waits for its reply before its next submission. The number is only
// printed, because it depends on the disk.
TEST_F(CommitLogTest, SharesCommitsBetweenWaitingClients) {
  constexpr std::uint64_t kClients = 16;
  constexpr std::uint64_t kEach = 100;
  CommitLog log(io_, Store::open(directory_).value());
  std::uint64_t next = 0;
  std::uint64_t answered = 0;
  std::function<void(std::uint64_t)> submit = [&](std::uint64_t left) {
    log.ask({job(++next)}, [&, left](const Status& status) {
      ASSERT_TRUE(status);
      ++answered;
      if (left > 1) submit(left - 1);
    });
  };
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t client = 0; client < kClients; ++client) submit(kEach);
  ASSERT_TRUE(run_until([&] { return answered == kClients * kEach; }));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(log.commits(), kClients * kEach);
  std::printf("%.0f acknowledged submissions/s, %.1f a commit\n",
              static_cast<double>(answered) / took.count(),
              static_cast<double>(answered) / static_cast<double>(log.commits()));
}

}  // namespace
}  // namespace score::head
