#include "base/text/hostlist.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace score {
namespace {

using Names = std::vector<std::string>;

TEST(ExpandHostlist, ReadsNamesRangesAndBrackets) {
  EXPECT_EQ(expand_hostlist("head").value(), (Names{"head"}));
  EXPECT_EQ(expand_hostlist("node[00-02,70],head").value(),
            (Names{"node00", "node01", "node02", "node70", "head"}));
  EXPECT_EQ(expand_hostlist("n[9-11]").value(), (Names{"n9", "n10", "n11"}));
  EXPECT_EQ(expand_hostlist("n[099-101]").value(), (Names{"n099", "n100", "n101"}));
  EXPECT_EQ(expand_hostlist("r[1-2]n[1-2].x").value(),
            (Names{"r1n1.x", "r1n2.x", "r2n1.x", "r2n2.x"}));
  EXPECT_EQ(expand_hostlist(" a , b ").value(), (Names{"a", "b"}));
  EXPECT_EQ(expand_hostlist("a,a").value(), (Names{"a", "a"}));
  EXPECT_EQ(expand_hostlist("").value(), Names());
  EXPECT_EQ(expand_hostlist("  ").value(), Names());
}

TEST(ExpandHostlist, RejectsMalformedLists) {
  for (const auto* text :
       {",",        "a,",     ",a",     "a,,b",   "n[",    "n]",    "n[1",
        "n1]",      "n[]",    "n[,]",   "n[1,]",  "n[1-]", "n[-1]", "n[2-1]",
        "n[1-2-3]", "n[a-b]", "n[0x1]", "n[[1]]", "n[1]]", "n[ 1]", "a b",
        "a;b",      "a\nb",   "-a",     ".a",     "a/b",   "a$b",   "n[1-9999999999]",
        "n[+1]",    "\xff"}) {
    const auto names = expand_hostlist(text);
    ASSERT_FALSE(names) << text;
    EXPECT_TRUE(names.error().is(Errc::Malformed)) << text << ": " << names.error().message();
  }
}

TEST(ExpandHostlist, RejectsHostileSizesAtOnce) {
  for (const auto* text : {"n[0-999999999]", "n[0-16384]", "n[0-999][0-999]",
                           "n[1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9]"}) {
    EXPECT_TRUE(expand_hostlist(text).error().is(Errc::TooLarge)) << text;
  }
  EXPECT_TRUE(expand_hostlist(std::string(65, 'a')).error().is(Errc::TooLarge));
  const auto many_long_names = fmt::format("{:a>200000}[0-16383]", "");
  EXPECT_TRUE(expand_hostlist(many_long_names).error().is(Errc::TooLarge));
  EXPECT_TRUE(expand_hostlist(std::string(300'000, ',')).error().is(Errc::TooLarge));
  EXPECT_TRUE(expand_hostlist("a,b,c", 2).error().is(Errc::TooLarge));
  std::string ranges = "n[1";
  for (int i = 0; i < 40'000; ++i) ranges += ",1";
  EXPECT_TRUE(expand_hostlist(ranges + "]").error().is(Errc::TooLarge));
}

TEST(ExpandHostlist, AcceptsTheLargestCluster) {
  EXPECT_EQ(expand_hostlist("node[0-16383]")->size(), 16'384U);
}

TEST(ExpandHostlist, SurvivesRandomText) {
  constexpr std::string_view kAlphabet = "n0129[]-,. ";
  std::mt19937 random(1);
  int good = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string text(random() % 16, ' ');
    for (char& c : text) c = kAlphabet[random() % kAlphabet.size()];
    const auto names = expand_hostlist(text, 500);
    if (!names) continue;
    ++good;
    EXPECT_LE(names->size(), 500U);
    EXPECT_TRUE(std::ranges::all_of(*names, is_host_name)) << text;
  }
  EXPECT_GT(good, 100);
}

TEST(CompressHostlist, CombinesRanges) {
  EXPECT_EQ(compress_hostlist(Names{"node00", "node01", "node02", "node70", "head"}),
            "node[00-02,70],head");
  EXPECT_EQ(compress_hostlist(Names{"n10", "n9", "n11"}), "n[9-11]");
  EXPECT_EQ(compress_hostlist(Names{"n1"}), "n1");
  EXPECT_EQ(compress_hostlist(Names{"n1", "n01", "n2"}), "n[1,01,2]");
  EXPECT_EQ(compress_hostlist(Names{"n1", "n1"}), "n1");
  EXPECT_EQ(compress_hostlist(Names{"node", "node1", "node2"}), "node,node[1-2]");
  EXPECT_EQ(compress_hostlist(Names{"r1n1.x", "r1n2.x"}), "r1n[1-2].x");
  EXPECT_EQ(compress_hostlist(Names{}), "");
}

TEST(CompressHostlist, ExpandsToTheSameSet) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::set<std::string> names;
    for (unsigned i = 0; i < random() % 60; ++i) {
      const auto width = random() % 4;
      names.insert(fmt::format("{}{:0{}}{}", random() % 2 == 0 ? "n" : "rack1-", random() % 120,
                               width, random() % 4 == 0 ? ".example" : ""));
    }
    const auto text = compress_hostlist(Names(names.begin(), names.end()));
    const auto back = expand_hostlist(text);
    ASSERT_TRUE(back) << text;
    EXPECT_EQ(std::set<std::string>(back->begin(), back->end()), names) << text;
    EXPECT_EQ(back->size(), names.size()) << text;
  }
}

TEST(CompressInOrder, CombinesAdjacentNames) {
  EXPECT_EQ(compress_in_order(Names{"n1", "n2", "n3", "n5"}), "n[1-3,5]");
  EXPECT_EQ(compress_in_order(Names{"n10", "n9", "n10", "n11"}), "n[10,9-11]");
  EXPECT_EQ(compress_in_order(Names{"n1", "head", "head", "n2", "m3"}), "n1,head,head,n2,m3");
  EXPECT_EQ(compress_in_order(Names{}), "");
}

TEST(CompressInOrder, ExpandsToTheSameNamesInOrder) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    Names names;
    for (unsigned i = 0; i < random() % 60; ++i) {
      const auto width = random() % 4;
      names.push_back(fmt::format("{}{:0{}}{}", random() % 9 == 0 ? "rack1-" : "n", random() % 20,
                                  width, random() % 9 == 0 ? ".example" : ""));
    }
    const auto text = compress_in_order(names);
    ASSERT_EQ(expand_hostlist(text).value(), names) << text;
  }
}

TEST(CompressInOrder, AcceptsAClusterInAnyOrder) {
  Names names;
  for (std::uint32_t i = 0; i < limits::kMaxNodes; ++i) names.push_back(fmt::format("n{:05}", i));
  EXPECT_EQ(compress_in_order(names), "n[00000-16383]");
  std::ranges::shuffle(names, std::mt19937(3));
  EXPECT_EQ(expand_hostlist(compress_in_order(names)).value(), names);
}

TEST(CompressHostlist, CountsHostsAndNotTheirDomain) {
  const Names names = {"n1.hpc2.example.org", "n2.hpc2.example.org", "n3.hpc2.example.org"};
  EXPECT_EQ(compress_hostlist(names), "n[1-3].hpc2.example.org");
  EXPECT_EQ(compress_in_order(names), "n[1-3].hpc2.example.org");
  EXPECT_EQ(compress_hostlist(Names{"a.hpc1", "a.hpc2"}), "a.hpc[1-2]");
}

TEST(CompressHostlist, KeepsNumbersThatAreTooLong) {
  const Names names = {"n12345678901234567890", "n12345678901234567891"};
  EXPECT_EQ(expand_hostlist(compress_hostlist(names)).value(), names);
}

TEST(Hostlist, ErrorsNameTheFault) {
  const auto fault = [](std::string_view text) { return expand_hostlist(text).error().context(); };
  EXPECT_EQ(fault("n[3-1]"), "the range 3-1 goes down; write 1-3");
  EXPECT_EQ(fault("n[a-b]"), "'a-b' in brackets is not a number or a range such as 00-07");
  EXPECT_EQ(fault("FOO=1"), "'FOO=1' is not a host name");
  EXPECT_EQ(fault("a,,b"), "a host name is missing between two commas");
  EXPECT_EQ(fault("n[1-2"), "a '[' is not closed");
  EXPECT_EQ(fault("n1]"), "']' without its other bracket");
}

}  // namespace
}  // namespace score
