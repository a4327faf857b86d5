#include "base/request/job_keys.hpp"

#include <gtest/gtest.h>

#include <set>

namespace score {
namespace {

TEST(JobKeys, EachIsFoundByNameOptionAndNumber) {
  std::set<std::string_view> names;
  for (const JobKeyRule& rule : job_keys()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_EQ(find_job_key(rule.name), &rule);
    EXPECT_EQ(find_job_key(rule.option), &rule);
    EXPECT_EQ(find_job_key(static_cast<std::uint32_t>(rule.key)), &rule);
    EXPECT_FALSE(rule.value.empty());
  }
}

TEST(JobKeys, UnknownNamesAndNumbersAreNotFound) {
  EXPECT_EQ(find_job_key("tim"), nullptr);
  EXPECT_EQ(find_job_key(""), nullptr);
  EXPECT_EQ(find_job_key(static_cast<std::uint32_t>(job_keys().size())), nullptr);
  EXPECT_EQ(find_job_key(UINT32_MAX), nullptr);
}

}  // namespace
}  // namespace score
