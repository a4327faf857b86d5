#include "scout/slurm/words/update_words.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::scout::slurm {
namespace {

using Words = std::vector<std::string>;

std::string refusal(const Words& words) {
  const auto update = read_update(words);
  return update ? "" : update.error().context();
}

TEST(UpdateWords, FieldsBecomeKeysOfChange) {
  const auto update = read_update(Words{"JobId=7,12_3", "TimeLimit=60", "JobName=a=b", "Nice=5",
                                        "MinMemoryNode=4000", "Requeue=1", "Dependency="});
  ASSERT_TRUE(update);
  EXPECT_EQ(update->jobs, (Words{"7", "12_3"}));
  EXPECT_EQ(update->changes, (Words{"wall-time=3600s", "name=a=b", "priority=-5", "mem=4000M",
                                    "requeue=yes", "after=none"}));
  EXPECT_EQ(read_update(Words{"jobid=7", "timelimit=UNLIMITED"})->changes, Words{"wall-time=none"});
}

TEST(UpdateWords, RefusalNamesTheWord) {
  EXPECT_EQ(refusal({"TimeLimit=60"}), "no job given; give JobId=JOB");
  EXPECT_EQ(refusal({"JobId=7"}).substr(0, 17), "nothing to change");
  EXPECT_EQ(refusal({"JobId=7", "Comment=x"}).substr(0, 10), "Comment=x:");
  EXPECT_EQ(refusal({"JobId=7", "TimeLimit=+60"}), "TimeLimit=+60: give the whole limit");
  EXPECT_EQ(refusal({"JobId=7", "x"}).substr(0, 2), "x:");
  EXPECT_NE(refusal({"JobId=7", "TimeLimit=long"}).find("TimeLimit=long"), std::string::npos);
}

TEST(UpdateWords, RandomWordsAreReadOrRefused) {
  std::mt19937 random(11);
  for (int round = 0; round < 20'000; ++round) {
    Words words(random() % 4);
    for (auto& word : words) {
      word = std::array{"JobId=", "TimeLimit=", "Nice=", ""}[random() % 4];
      for (auto n = random() % 6; n > 0; --n) word += static_cast<char>(random());
    }
    const auto update = read_update(words);
    if (update) {
      EXPECT_FALSE(update->jobs.empty() || update->changes.empty());
    } else {
      EXPECT_EQ(update.error().context().find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace score::scout::slurm
