#include "base/text/path_pattern.hpp"

#include "base/errc.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace score::inline base {
namespace {

PatternValues values() {
  PatternValues out;
  out.job = 12;
  out.rank = 3;
  out.node = "n0";
  out.node_index = 1;
  out.job_name = "a/b";
  out.user = "ann";
  return out;
}

TEST(PathPattern, LettersAreReplaced) {
  EXPECT_EQ(*expand_pattern("out.%j.%t.%N.%n", values()), "out.12.3.n0.1");
  EXPECT_EQ(*expand_pattern("%4t-%12j-100%%", values()), "0003-0000000012-100%");
  EXPECT_EQ(*expand_pattern("plain", values()), "plain");
  EXPECT_EQ(*expand_pattern("%x-%u-%J-%s-%A-%3a", values()), "a_b-ann-12-0-12-000");
}

TEST(PathPattern, StepIsPartOfTheLongNumber) {
  PatternValues step = values();
  step.step = "4";
  EXPECT_EQ(*expand_pattern("%J %s %3s %j", step), "12.4 4 004 12");
}

TEST(PathPattern, UnknownLettersAreRejected) {
  for (const char* wrong : {"%", "%q", "a%5", "%-t", "%S"}) {
    EXPECT_TRUE(expand_pattern(wrong, values()).error().is(Errc::Malformed)) << wrong;
    EXPECT_FALSE(check_pattern(wrong)) << wrong;
  }
  EXPECT_TRUE(check_pattern("%j %J %A %a %s %t %n %N %u %x %%"));
}

TEST(PathPattern, ScopeFollowsTheLetters) {
  EXPECT_TRUE(scope_of("o.%t").per_rank);
  EXPECT_FALSE(scope_of("o.%t").per_node);
  EXPECT_TRUE(scope_of("o.%N").per_node);
  EXPECT_TRUE(scope_of("o.%n").per_node);
  EXPECT_FALSE(scope_of("o.%j.%%t").per_rank);
  EXPECT_FALSE(scope_of("o.%t.%").per_rank);
}

TEST(PathPattern, ParentDirectoryEndsAtTheRoot) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a", "."}, {"a/b", "a"}, {"a//b/", "a"}, {"/a", "/"}, {"//a", "/"}, {"/", "/"}, {"", "."}};
  for (const auto& [path, parent] : cases) EXPECT_EQ(parent_directory(path), parent) << path;
}

}  // namespace
}  // namespace score::inline base
