#include "base/model/resources.hpp"

#include "base/limits.hpp"

#include <gtest/gtest.h>

namespace score::inline base {
namespace {

using Words = std::vector<std::string>;

TEST(Constraint, ReadsSimpleFormsOfSlurm) {
  EXPECT_EQ(parse_constraint("ib").value(), Words{"ib"});
  EXPECT_EQ(parse_constraint("ib&big").value(), (Words{"ib", "big"}));
  EXPECT_EQ(parse_constraint("ib & big&ib").value(), (Words{"ib", "big"}));
  EXPECT_EQ(parse_constraint("a|b").value(), Words{"a|b"});
  EXPECT_EQ(format_constraint(Words{"a", "b"}), "a&b");
  EXPECT_EQ(format_constraint(Words{"a|b"}), "a|b");
}

TEST(Constraint, RejectsOtherFormsWithOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "'' is not the name of a feature"},
      {"a&", "'' is not the name of a feature"},
      {"|a", "'' is not the name of a feature"},
      {"a b", "'a b' is not the name of a feature"},
      {"a&b|c", "'a&b|c' has both & and |: use one of them"},
      {"[a|b]", "'[' in '[a|b]': only 'a&b' (all of them) and 'a|b' (one of them)"},
      {"a*2", "'*' in 'a*2': only 'a&b' (all of them) and 'a|b' (one of them)"},
      {"!a", "'!' in '!a': only 'a&b' (all of them) and 'a|b' (one of them)"},
      {"(a&b)", "'(' in '(a&b)': only 'a&b' (all of them) and 'a|b' (one of them)"},
      {"a,b", "',' in 'a,b': only 'a&b' (all of them) and 'a|b' (one of them)"},
  };
  for (const auto& [text, why] : cases) {
    const auto read = parse_constraint(text);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error().context(), why);
  }
  std::string many = "f0";
  for (std::size_t i = 1; i <= limits::kMaxFeatures; ++i) many += fmt::format("&f{}", i);
  EXPECT_EQ(parse_constraint(many).error().context(), "more than 16 features");
  EXPECT_FALSE(parse_constraint(std::string(100'000, 'a')).has_value());
  EXPECT_FALSE(parse_constraint(std::string("a\0b", 3)).has_value());
  EXPECT_FALSE(parse_constraint("a\x1b[31m").has_value());
}

TEST(Constraint, MatchesNodesWithAllOrOneFeature) {
  const Words node{"ib", "big"};
  EXPECT_TRUE(has_features(node, {}));
  EXPECT_TRUE(has_features(node, Words{"ib", "big"}));
  EXPECT_FALSE(has_features(node, Words{"ib", "fast"}));
  EXPECT_TRUE(has_features(node, Words{"fast|ib"}));
  EXPECT_FALSE(has_features(node, Words{"fast|slow"}));
  EXPECT_FALSE(has_features({}, Words{"ib"}));
}

TEST(Licenses, ReadsNamesAndCounts) {
  using Many = std::vector<License>;
  EXPECT_EQ(parse_licenses("matlab").value(), (Many{{"matlab", 1}}));
  EXPECT_EQ(parse_licenses("matlab:2, ansys").value(), (Many{{"matlab", 2}, {"ansys", 1}}));
  EXPECT_EQ(format_licenses(Many{{"matlab", 2}, {"ansys", 1}}), "matlab:2,ansys:1");
  EXPECT_EQ(format_licenses({}), "");
}

TEST(Licenses, RejectsOtherTextsWithOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "'' is not NAME[:COUNT]"},
      {"a,", "'' is not NAME[:COUNT]"},
      {":2", "':2' is not NAME[:COUNT]"},
      {"a:2:3", "'a:2:3' is not NAME[:COUNT]"},
      {"a b", "'a b' is not NAME[:COUNT]"},
      {"a:", "'a:': the count is not between 1 and 1000000"},
      {"a:0", "'a:0': the count is not between 1 and 1000000"},
      {"a:-1", "'a:-1': the count is not between 1 and 1000000"},
      {"a:1000001", "'a:1000001': the count is not between 1 and 1000000"},
      {"a:9999999999999999999", "'a:9999999999999999999': the count is not between 1 and 1000000"},
      {"a,a:2", "'a' is there twice"},
  };
  for (const auto& [text, why] : cases) {
    const auto read = parse_licenses(text);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error().context(), why);
  }
  EXPECT_FALSE(parse_licenses(std::string(100'000, 'a')).has_value());
  EXPECT_FALSE(parse_licenses("a\x1b[31m").has_value());
}

// A text that is accepted must be printed as a text with the same meaning.
TEST(Licenses, RandomBytesAreReadOrRejected) {
  constexpr std::string_view kBytes = "ab:,0129- \0\xff";
  std::uint32_t state = 7;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::uint32_t length = state % 12; length > 0; --length) {
      state = state * 1'664'525U + 1'013'904'223U;
      text += kBytes[(state >> 16U) % kBytes.size()];
    }
    state = state * 1'664'525U + 1'013'904'223U;
    const auto read = parse_licenses(text);
    if (!read) continue;
    EXPECT_EQ(parse_licenses(format_licenses(*read)).value(), *read) << text;
  }
}

TEST(Generic, ReadsNameCountAndMemory) {
  using Many = std::vector<GenericResource>;
  EXPECT_EQ(parse_generic("gpu").value(), (Many{{"gpu", 1}}));
  EXPECT_EQ(parse_generic("gpu:2,nic").value(), (Many{{"gpu", 2}, {"nic", 1}}));
  EXPECT_EQ(parse_generic("gpu:mem=1G").value(), (Many{{"gpu", 1, Bytes(1U << 30U)}}));
  for (const char* text : {"gpu:1", "gpu:2:mem=10G", "gpu:256,nic:1:mem=5M"}) {
    EXPECT_EQ(format_generic(parse_generic(text).value()), text);
  }
  EXPECT_EQ(format_shares(std::vector<GenericShare>{{"gpu", {0, 3}}, {"nic", {1}}}),
            "gpu:0,3;nic:1");
}

TEST(Generic, RejectsOtherFormsWithOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "'' is not NAME[:COUNT][:mem=SIZE]"},
      {",", "'' is not NAME[:COUNT][:mem=SIZE]"},
      {"gpu,", "'' is not NAME[:COUNT][:mem=SIZE]"},
      {":2", "':2' is not NAME[:COUNT][:mem=SIZE]"},
      {"g pu", "'g pu' is not NAME[:COUNT][:mem=SIZE]"},
      {"gpu:0", "'gpu:0': the count is not between 1 and 256"},
      {"gpu:-1", "'gpu:-1': the count is not between 1 and 256"},
      {"gpu:1000000000", "'gpu:1000000000': the count is not between 1 and 256"},
      {"gpu:99999999999999999999",
       "'gpu:99999999999999999999': the count is not between 1 and 256"},
      {"gpu:a100:2", "'gpu:a100:2': the count is not between 1 and 256"},
      {"gpu:", "'gpu:': the count is not between 1 and 256"},
      {"gpu:1:mem=", "'gpu:1:mem=': the memory is not a size, such as 10G"},
      {"gpu:1:mem=0", "'gpu:1:mem=0': the memory is not a size, such as 10G"},
      {"gpu:1:2", "'gpu:1:2' is not NAME[:COUNT][:mem=SIZE]"},
      {"gpu:mem=1G:2", "'gpu:mem=1G:2' is not NAME[:COUNT][:mem=SIZE]"},
      {"gpu,gpu:2", "'gpu' is there twice"},
  };
  for (const auto& [text, why] : cases) {
    const auto read = parse_generic(text);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error().context(), why);
  }
  std::string many = "k0";
  for (std::size_t i = 1; i <= limits::kMaxGenericKinds; ++i) many += fmt::format(",k{}", i);
  EXPECT_EQ(parse_generic(many).error().context(), "more than 16 kinds");
  EXPECT_FALSE(parse_generic(std::string(100'000, 'g')).has_value());
}

}  // namespace
}  // namespace score::inline base
