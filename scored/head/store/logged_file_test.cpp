#include "scored/head/store/logged_file.hpp"

#include "base/os/fd.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <vector>

namespace score::head {
namespace {

class LoggedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "logged_file.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    start();
  }

  void TearDown() override {
    file_.reset();
    commits_.reset();
    std::filesystem::remove_all(directory_);
  }

  // Starts as one of two heads, whose log the test releases.
  void start() {
    file_.reset();
    commits_.reset();
    auto store = Store::open(directory_);
    ASSERT_TRUE(store) << store.error().message();
    ASSERT_TRUE(store->write_files());
    ASSERT_TRUE(store->begin_log(Epoch(1)));
    commits_.emplace(io_, *std::move(store));
    commits_->on_committed(
        [this](std::uint64_t sequence, const std::string&) { committed_ = sequence; });
    file_.emplace(*commits_, directory_, kNodeKeysFile);
  }

  void append(const std::string& text) {
    const auto next = std::make_shared<std::string>();
    const auto make = [this, next, text]() -> Result<std::string> {
      *next = text_ + text;
      return *next;
    };
    file_->change(make, [this, next](const Result<LogReceipt>& logged) {
      done_.push_back(logged.has_value());
      if (logged) text_ = *next;
    });
  }

  void wait_committed(std::uint64_t sequence) {
    io_.restart();
    const auto work = asio::require(io_.get_executor(), asio::execution::outstanding_work.tracked);
    while (committed_ < sequence) io_.run_one();
  }

  std::string on_disk() const {
    const auto text = read_file(directory_ + "/node-keys", 1000);
    return text ? *text : "none";
  }

  asio::io_context io_;
  std::string directory_;
  std::optional<CommitLog> commits_;
  std::optional<LoggedFile> file_;
  std::uint64_t committed_ = 0;
  std::string text_;
  std::vector<bool> done_;
};

TEST_F(LoggedFileTest, TextIsInForceAfterFollowerStoredIt) {
  append("a");
  wait_committed(1);
  EXPECT_TRUE(done_.empty());
  EXPECT_EQ(on_disk(), "none");
  commits_->release(1);
  EXPECT_EQ(done_, std::vector<bool>{true});
  EXPECT_EQ(on_disk(), "a");
}

TEST_F(LoggedFileTest, ChangeWaitsForTheOneBefore) {
  append("a");
  append("b");
  wait_committed(1);
  commits_->release(1);
  wait_committed(2);
  EXPECT_EQ(on_disk(), "a");
  commits_->release(2);
  EXPECT_EQ(on_disk(), "ab");
  EXPECT_EQ(text_, "ab");
}

TEST_F(LoggedFileTest, RefusedChangeLetsTheNextOnePass) {
  file_->change([]() -> Result<std::string> { return fail(Errc::Exists, "used"); },
                [this](const Result<LogReceipt>& logged) { done_.push_back(logged.has_value()); });
  append("a");
  wait_committed(1);
  commits_->release(1);
  EXPECT_EQ(done_, (std::vector<bool>{false, true}));
}

TEST_F(LoggedFileTest, ChangesBeyondTheLimitAreRefused) {
  for (int i = 0; i < 1000; ++i) append("a");
  EXPECT_EQ(done_.size(), 1000U - 256U);
}

// The head may be killed between the log and the file.
TEST_F(LoggedFileTest, StartWritesTheTextOfTheLog) {
  append("a");
  wait_committed(1);
  ASSERT_TRUE(replace_file(directory_ + "/node-keys", "older", 0600));
  start();
  EXPECT_EQ(on_disk(), "a");
}

TEST_F(LoggedFileTest, FileOfAnOlderReleaseIsShared) {
  ASSERT_TRUE(replace_file(directory_ + "/node-keys", "old", 0600));
  file_->share();
  wait_committed(1);
  std::filesystem::remove(directory_ + "/node-keys");
  start();
  EXPECT_EQ(on_disk(), "old");
}

}  // namespace
}  // namespace score::head
