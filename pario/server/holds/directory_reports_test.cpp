#include "pario/server/holds/directory_reports.hpp"

#include "tests/support/pario/asked_requests.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace score::pario {
namespace {

constexpr FileId kOne = make_id(5, 1);
constexpr FileId kTwo = make_id(5, 2);

class DirectoryReportsTest : public testing::Test {
 protected:
  void change(FileId first, FileId second = 0) {
    auto transfer = std::make_unique<Transfer>();
    transfer->touched = {first, second};
    reports_.run(std::move(transfer));
  }

  AskedRequests peers_;
  int answered_ = 0;
  DirectoryReports reports_{peers_, [this](const TransferPtr& one) {
                              ++answered_;
                              EXPECT_EQ(one->touched, (std::array<FileId, 2>{}));
                            }};
};

TEST_F(DirectoryReportsTest, ChangeIsAnsweredWhenHomeKnows) {
  change(kOne);
  change(kOne);
  EXPECT_EQ(answered_, 0);
  ASSERT_EQ(peers_.asked.size(), 1U) << "one report";
  EXPECT_EQ(peers_.asked[0].server, 1U);
  EXPECT_EQ(peers_.asked[0].request.op, Op::ReportChange);
  EXPECT_EQ(peers_.asked[0].request.id, kOne);
  peers_.answer(0);
  EXPECT_EQ(answered_, 2);
  change(kOne);
  EXPECT_EQ(answered_, 3);
  EXPECT_TRUE(peers_.asked.empty());
}

TEST_F(DirectoryReportsTest, NextChangeAfterQuestionIsReported) {
  change(kOne);
  reports_.asked(kOne);  // while the report is on its way
  change(kOne);
  EXPECT_EQ(peers_.asked.size(), 2U);
  peers_.answer(0);
  EXPECT_EQ(answered_, 1);
  peers_.answer(0);
  EXPECT_EQ(answered_, 2);
  reports_.asked(kOne);
  change(kOne);
  EXPECT_EQ(peers_.asked.size(), 1U);
  peers_.answer(0);
  reports_.clear();
  change(kOne);
  EXPECT_EQ(peers_.asked.size(), 1U);
}

TEST_F(DirectoryReportsTest, RenameWaitsForBothHomes) {
  change(kOne, kTwo);
  ASSERT_EQ(peers_.asked.size(), 2U);
  peers_.answer(0);
  EXPECT_EQ(answered_, 0);
  peers_.answer(0);
  EXPECT_EQ(answered_, 1);
}

TEST_F(DirectoryReportsTest, LostHomeDelaysOnlyFirstChange) {
  change(kOne);
  peers_.answer(EIO);
  EXPECT_EQ(answered_, 1);
  change(kOne);
  EXPECT_EQ(answered_, 2);
  EXPECT_TRUE(peers_.asked.empty());
  change(kTwo);
  EXPECT_EQ(peers_.asked.size(), 1U) << "a different home";
}

}  // namespace
}  // namespace score::pario
