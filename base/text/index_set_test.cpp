#include "base/text/index_set.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace score {
namespace {

IndexSet set_of(std::string_view text) {
  const auto set = IndexSet::parse(text, 1'000'000);
  EXPECT_TRUE(set) << text << ": " << set.error().message();
  return set ? *set : IndexSet();
}

std::string error_of(std::string_view text) {
  const auto set = IndexSet::parse(text, 1'000'000);
  return set ? set->text() : set.error().context();
}

TEST(IndexSet, ReadsListsRangesAndSteps) {
  EXPECT_EQ(set_of("0-99").text(), "0-99");
  EXPECT_EQ(set_of("1,3,5-9:2").text(), "1-9:2");
  EXPECT_EQ(set_of("7").size(), 1U);
  EXPECT_EQ(set_of("5,1,3-4,4").text(), "1,3-5");
  EXPECT_EQ(set_of("0-10:5").text(), "0-10:5");
  EXPECT_EQ(set_of("0-9:5").text(), "0,5");
  EXPECT_EQ(set_of("0-999998:2").size(), 500'000U);
  EXPECT_EQ(set_of("0-999998:2").text(), "0-999998:2");
}

TEST(IndexSet, RejectsMalformedLists) {
  for (const char* text : {"", ",", "1,", "-", "1-", "-1", "2-1", "1:2", "1-2:", "1-5:0", "a",
                           "1-a", "1 ", "1--2", "1-2-3", "1-5:2:2", ":", "1,:2-3", "0x1"}) {
    EXPECT_EQ(IndexSet::parse(text, 10).error().code(), make_error_code(Errc::Malformed)) << text;
  }
}

TEST(IndexSet, RefusesLargeSetsWithoutMakingThem) {
  EXPECT_EQ(error_of("0-999999999"), "1000000000 numbers; at most 1000000 are possible");
  EXPECT_EQ(error_of("0-1000000"), "1000001 numbers; at most 1000000 are possible");
  EXPECT_EQ(error_of("1000000000"), "1000000000 is larger than 999999999");
  EXPECT_EQ(error_of("0-99999999999999999999"), "99999999999999999999 is larger than 999999999");
  EXPECT_FALSE(IndexSet::parse(std::string(100'000, '1'), 10));
  std::string many = "0-999999";
  for (int i = 0; i < 5'000; ++i) many += ",0-999999";
  EXPECT_EQ(error_of(many), "5001000000 numbers; at most 1000000 are possible");
}

TEST(IndexSet, FindsTheNext) {
  const IndexSet set = set_of("2,5-11:3,20-21");
  EXPECT_EQ(set.next(0), 2U);
  EXPECT_EQ(set.next(3), 5U);
  EXPECT_EQ(set.next(9), 11U);
  EXPECT_EQ(set.next(12), 20U);
  EXPECT_EQ(set.next(22), std::nullopt);
  EXPECT_TRUE(set.contains(8));
  EXPECT_FALSE(set.contains(9));
  EXPECT_EQ(set.rest(6).text(), "8-11:3,20-21");
  EXPECT_EQ(set.rest(6).size(), 4U);
  EXPECT_EQ(IndexSet().next(0), std::nullopt);
}

TEST(IndexSet, WithoutRemovesNumbers) {
  EXPECT_EQ(set_of("0-9").without(set_of("3-5,9")).text(), "0-2,6-8");
  EXPECT_TRUE(set_of("1-3").without(set_of("0-9")).empty());
  EXPECT_EQ(set_of("1-3").without(IndexSet()).text(), "1-3");
}

TEST(IndexSet, BehavesLikeASet) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::set<std::uint32_t> model;
    std::string text;
    for (unsigned i = 0; i < 1 + random() % 6; ++i) {
      const auto first = static_cast<std::uint32_t>(random() % 40);
      const auto last = first + static_cast<std::uint32_t>(random() % 30);
      const std::uint32_t step = 1 + random() % 4;
      if (!text.empty()) text += ',';
      text += std::to_string(first) + "-" + std::to_string(last) + ":" + std::to_string(step);
      for (std::uint32_t at = first; at <= last; at += step) model.insert(at);
    }
    const IndexSet set = set_of(text);
    EXPECT_EQ(set.size(), model.size());
    for (std::uint32_t at = 0; at < 80; ++at) {
      const auto next = model.lower_bound(at);
      EXPECT_EQ(set.next(at), next == model.end() ? std::nullopt : std::optional(*next)) << text;
      EXPECT_EQ(set.rest(at).size(), static_cast<std::uint32_t>(std::distance(next, model.end())));
    }
    if (set.empty()) continue;
    EXPECT_EQ(set_of(set.text()).text(), set.text());
  }
}

TEST(IndexSet, AcceptsOrRejectsAnyBytes) {
  std::mt19937 random(9);
  constexpr std::string_view kBytes = "0123456789,-:% \x01\xff";
  for (int round = 0; round < 20'000; ++round) {
    std::string text(random() % 24, '\0');
    for (char& byte : text) byte = kBytes[random() % kBytes.size()];
    const auto set = IndexSet::parse(text, 1'000);
    if (!set) continue;
    EXPECT_LE(set->size(), 1'000U);
  }
}

}  // namespace
}  // namespace score
