#include "scored/node/hooks/hook_records.hpp"

#include "base/model/model.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace score::node {
namespace {

namespace fs = std::filesystem;

hooks::HookRequest record_of(AttemptId attempt) {
  hooks::HookRequest record;
  record.attempt = attempt.value();
  record.job = job_of(attempt).value();
  record.user = 7;
  return record;
}

class HookRecordsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "scored-records-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    place_ = name;
  }

  void TearDown() override { fs::remove_all(place_); }

  [[nodiscard]] std::string directory() const { return place_ / "hooks"; }

  fs::path place_;
  const AttemptId first_ = make_attempt(JobId(5), 0);
  const AttemptId second_ = make_attempt(JobId(5), 1);
};

TEST_F(HookRecordsTest, SurviveARestart) {
  HookRecords records(directory());
  records.load();
  ASSERT_TRUE(records.add(record_of(first_)));
  ASSERT_TRUE(records.add(record_of(second_)));
  records.remove(second_);
  HookRecords after(directory());
  after.load();
  ASSERT_EQ(after.all(), std::vector<AttemptId>{first_});
  EXPECT_EQ(after.find(first_)->user, 7U);
  EXPECT_EQ(after.find(second_), nullptr);
}

TEST_F(HookRecordsTest, KnowOtherAttemptsOfTheJob) {
  HookRecords records(directory());
  ASSERT_TRUE(records.add(record_of(first_)));
  EXPECT_TRUE(records.has_other(second_));
  EXPECT_FALSE(records.has_other(first_));
  EXPECT_FALSE(records.has_other(make_attempt(JobId(6), 0)));
}

TEST_F(HookRecordsTest, DropFilesThatAreNoRecords) {
  fs::create_directory(directory());
  const auto whole = record_of(first_);
  const std::string bytes(reinterpret_cast<const char*>(&whole), sizeof whole);
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, bytes.size() - 1}) {
    std::ofstream(directory() + "/" + std::to_string(size)) << bytes.substr(0, size);
  }
  std::ofstream(directory() + "/other") << bytes;  // the name is not the attempt's
  std::ofstream(directory() + "/random") << std::string(bytes.size(), 'x');
  HookRecords records(directory());
  records.load();
  EXPECT_TRUE(records.all().empty());
  EXPECT_TRUE(fs::is_empty(directory()));
}

}  // namespace
}  // namespace score::node
