#include "scout/change/change.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::scout {
namespace {

std::string refusal(const std::vector<std::string>& words) {
  const auto change = split_change(words);
  return change ? "" : change.error().context();
}

TEST(SplitChange, SeparatesJobsFromKeys) {
  const auto change = split_change({"7", "time=2h", "12_[1-3]", "name=a=b", "requeue=yes"});
  ASSERT_TRUE(change);
  EXPECT_EQ(change->jobs, (std::vector<std::string>{"7", "12_[1-3]"}));
  EXPECT_EQ(change->keys, (std::vector{JobKey::Time, JobKey::Name, JobKey::Requeue}));
  EXPECT_EQ(change->options,
            (std::vector<std::string>{"--time=2h", "--job-name=a=b", "--requeue"}));
}

TEST(SplitChange, NoneRemovesTheRequest) {
  const auto change = split_change({"7", "wall-time=none", "after=none"});
  ASSERT_TRUE(change);
  EXPECT_EQ(change->keys, (std::vector{JobKey::ElapsedTime, JobKey::After}));
  EXPECT_TRUE(change->options.empty());
  EXPECT_EQ(split_change({"7", "queue=none"})->options,
            std::vector<std::string>{"--queue=none"});  // the parser of options refuses it
}

TEST(SplitChange, RefusalNamesTheKey) {
  EXPECT_NE(refusal({"7", "tim=2h"}).find("unknown key 'tim' (did you mean time?)"),
            std::string::npos);
  EXPECT_EQ(refusal({"7", "time=1h", "time=2h"}), "time is given twice");
  EXPECT_EQ(refusal({"7", "name=a", "job-name=b"}), "name is given twice");
  EXPECT_EQ(refusal({"7", "mem="}), "mem= needs a value; none removes it");
  EXPECT_EQ(refusal({"7", "requeue=maybe"}), "requeue: 'maybe' is neither yes nor no");
  EXPECT_EQ(refusal({"time=1h"}), "no job given");
  EXPECT_EQ(refusal({"7"}).substr(0, 17), "nothing to change");
}

TEST(SplitChange, RandomBytesAreRefusedOrSplit) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::string> words(random() % 4);
    for (std::string& word : words) {
      word = std::array{"time", "name", "a", ""}[random() % 4];
      for (auto n = random() % 6; n > 0; --n) word += static_cast<char>(random());
      if (random() % 2 == 0) word += "=" + std::string(random() % 3, static_cast<char>(random()));
    }
    const auto change = split_change(words);
    if (!change) continue;
    EXPECT_FALSE(change->jobs.empty() || change->keys.empty());
  }
}

}  // namespace
}  // namespace score::scout
