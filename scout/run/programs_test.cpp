#include "scout/run/programs.hpp"

#include <gtest/gtest.h>

namespace score::scout {
namespace {

using Programs = std::vector<ProgramOptions>;

ProgramOptions program(std::uint32_t tasks, std::vector<std::string> command) {
  return {.tasks = tasks, .directory = {}, .export_rule = {}, .command = std::move(command)};
}

TEST(SplitPrograms, OneProgramHasAllTasks) {
  EXPECT_EQ(*split_programs({"date", "-u"}, 7), Programs{program(0, {"date", "-u"})});
}

TEST(SplitPrograms, ColonsSeparatePrograms) {
  const auto programs =
      split_programs({"a", "-n", "9", ":", "-n", "2", "b", "-n", "3", ":", "c"}, 4);
  ASSERT_TRUE(programs) << programs.error().message();
  EXPECT_EQ(*programs, (Programs{program(4, {"a", "-n", "9"}), program(2, {"b", "-n", "3"}),
                                 program(1, {"c"})}));
}

TEST(SplitPrograms, EachProgramHasOwnDirectoryAndVariables) {
  const auto programs = split_programs({"a", ":", "-D", "/tmp", "--export=A=1,B=2", "b"}, 0);
  ASSERT_TRUE(programs) << programs.error().message();
  EXPECT_EQ(programs->at(0).tasks, 1U);
  EXPECT_EQ(programs->at(1).directory, "/tmp");
  EXPECT_EQ(programs->at(1).export_rule, "A=1,B=2");
}

TEST(SplitPrograms, MissingProgramIsRefused) {
  using List = std::vector<std::string>;
  for (const List& words :
       {List{}, List{""}, List{":", "a"}, List{"a", ":"}, List{"a", ":", "-n", "0", "b"},
        List{"a", ":", "-x", "b"}, List{"a", ":", "-n", "2"}}) {
    EXPECT_FALSE(split_programs(words, 1));
  }
}

TEST(MultiProg, LinesNameTheirRanks) {
  const auto programs = parse_multi_prog("# two\n1-2 ./work 'a b' \"c d\" e\\ f\n0 ./master\n", 0);
  ASSERT_TRUE(programs) << programs.error().message();
  EXPECT_EQ(*programs,
            (Programs{program(1, {"./master"}), program(2, {"./work", "a b", "c d", "e f"})}));
}

TEST(MultiProg, StarSelectsTheRemainingRanks) {
  const auto programs = parse_multi_prog("1,3 b # odd\n* a\n", 5);
  ASSERT_TRUE(programs) << programs.error().message();
  EXPECT_EQ(*programs, (Programs{program(1, {"a"}), program(1, {"b"}), program(1, {"a"}),
                                 program(1, {"b"}), program(1, {"a"})}));
}

TEST(MultiProg, ArgumentsContainTheirRank) {
  const auto programs = parse_multi_prog("0 a\n1-2 b t%t-o%o\n", 3);
  ASSERT_TRUE(programs) << programs.error().message();
  EXPECT_EQ(*programs,
            (Programs{program(1, {"a"}), program(1, {"b", "t1-o0"}), program(1, {"b", "t2-o1"})}));
}

TEST(MultiProg, ErrorNamesTheLineOrRank) {
  struct Case {
    const char* text;
    std::uint32_t tasks;
    const char* wrong;
  };

  for (const auto& [text, tasks, wrong] :
       {Case{"0 a\n2 b\n", 0, "rank 1 has no program"}, Case{"0 a\n0 b\n", 0, "line 2: rank 0"},
        Case{"0 a\n5 b\n", 4, "rank 5 is not in a job of 4 tasks"}, Case{"* a\n", 0, "-n"},
        Case{"", 0, "no program"}, Case{"x a\n", 1, "line 1: 'x'"}, Case{"0\n", 1, "line 1"},
        Case{"0 'a\n", 1, "line 1"}, Case{"1-0 a\n", 2, "line 1"}}) {
    const auto programs = parse_multi_prog(text, tasks);
    ASSERT_FALSE(programs) << text;
    EXPECT_NE(programs.error().message().find(wrong), std::string::npos)
        << programs.error().message();
  }
}

}  // namespace
}  // namespace score::scout
