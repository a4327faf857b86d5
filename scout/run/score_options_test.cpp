#include "scout/run/score_options.hpp"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

namespace score::scout {
namespace {

using Words = std::vector<std::string>;

class Split : public testing::Test {
 protected:
  void SetUp() override {
    app.add_option("-N,--nodes", nodes);
    app.add_option("--ntasks-per-node,--ppn", ppn);
    app.add_option("--server", server);
    app.add_flag("-l,--label", label);
    app.add_option("--wall-time", wall_time);
    app.add_option("--immediate", immediate)->expected(0, 1);
  }

  Words rewritten(std::string_view group) {
    auto words = rewrite_score_group(app, group);
    return words ? *words : Words{"error: " + words.error().context()};
  }

  SplitCommand split(const Words& args, std::string_view environment = "") {
    auto result = split_command(app, args, environment);
    return result ? *result : SplitCommand{{"error"}, {result.error().context()}};
  }

  CLI::App app;
  std::uint32_t nodes = 0;
  std::uint32_t ppn = 0;
  std::string server;
  std::string wall_time;
  std::string immediate;
  bool label = false;
};

using ScoreGroup = Split;

TEST_F(ScoreGroup, GroupIsDashLettersAndEqualSign) {
  EXPECT_TRUE(is_score_group("-nodes=8"));
  EXPECT_TRUE(is_score_group("-scored=comp7"));
  EXPECT_FALSE(is_score_group("-o=file")) << "a getopt option with its value";
  EXPECT_FALSE(is_score_group("--nodes=8"));
  EXPECT_FALSE(is_score_group("-nodes"));
  EXPECT_FALSE(is_score_group("nodes=8"));
  EXPECT_FALSE(is_score_group("-"));
  EXPECT_FALSE(is_score_group(""));
}

TEST_F(ScoreGroup, BecomesOurOptions) {
  EXPECT_EQ(rewritten("-nodes=8x2,scored=comp7"),
            (Words{"--nodes=8", "--ntasks-per-node=2", "--server=comp7"}));
  EXPECT_EQ(rewritten("hosts=16/2"), (Words{"--nodes=8", "--ntasks-per-node=2"}));
  EXPECT_EQ(rewritten("-nodes=4"), Words{"--nodes=4"});
  EXPECT_EQ(rewritten("-hosts=4-8"), Words{"--nodes=4-8"});
  EXPECT_EQ(rewritten("--nodes=4"), Words{"--nodes=4"}) << "in SCORE_OPTIONS";
}

TEST_F(ScoreGroup, EveryLongOptionIsAKey) {
  EXPECT_EQ(rewritten("-nodes=2,wall-time=5m,label"),
            (Words{"--nodes=2", "--wall-time=5m", "--label"}));
  EXPECT_EQ(split({"-label=true", "prog"}).options, Words{"--label=true"});
}

TEST_F(ScoreGroup, UnknownKeysAreRefused) {
  for (const char* group :
       {"-nodes=", "-nodes=x", "-nodes=0", "-nodes=8x", "-nodes=8x0", "-nodes=9/2",
        "-nodes=99999999999", "-bogus=1", "-nodes=8,,", "-nodes=8,bogus", "-nodes=8,=5"}) {
    EXPECT_FALSE(rewrite_score_group(app, group)) << group;
  }
}

TEST_F(Split, ScoreKeysNeedNoDash) {
  const auto result = split({"-l", "hosts=2", "prog", "hosts=3"});
  EXPECT_EQ(result.options, (Words{"-l", "--nodes=2"}));
  EXPECT_EQ(result.command, (Words{"prog", "hosts=3"}));
  EXPECT_EQ(split({"nodes=8x2,label", "prog"}).options,
            (Words{"--nodes=8", "--ntasks-per-node=2", "--label"}));
  EXPECT_EQ(split({"--", "hosts=2"}).command, Words{"hosts=2"});
  EXPECT_EQ(split({"./hosts=2"}).command, Words{"./hosts=2"});
  EXPECT_EQ(split({"env=1", "prog"}).command, (Words{"env=1", "prog"}));
}

TEST_F(Split, CommandStartsAtTheFirstNonOption) {
  const auto result = split({"-N", "8", "-l", "--ppn", "2", "prog", "-N", "--label"});
  EXPECT_EQ(result.options, (Words{"-N", "8", "-l", "--ppn", "2"}));
  EXPECT_EQ(result.command, (Words{"prog", "-N", "--label"}));
}

TEST_F(Split, AttachedAndSeparateValuesAreFound) {
  EXPECT_EQ(split({"-N8", "prog"}).command, Words{"prog"});
  EXPECT_EQ(split({"-lN", "8", "prog"}).command, Words{"prog"});
  EXPECT_EQ(split({"--nodes=8", "prog"}).command, Words{"prog"});
  EXPECT_EQ(split({"--", "-prog"}).command, Words{"-prog"});
}

TEST_F(Split, OptionalValueNeedsAnEqualSign) {
  const auto bare = split({"--immediate", "prog", "x"});
  EXPECT_EQ(bare.options, Words{"--immediate"});
  EXPECT_EQ(bare.command, (Words{"prog", "x"}));
  EXPECT_EQ(split({"--immediate=2s", "prog"}).command, Words{"prog"});
}

TEST_F(Split, WordsOfTheCommandStayUnchanged) {
  EXPECT_EQ(split({"-nodes=2", "prog", "-nodes=8"}).command, (Words{"prog", "-nodes=8"}));
}

TEST_F(Split, CommandLineOverridesTheEnvironment) {
  EXPECT_EQ(split({"-nodes=8", "prog"}, "nodes=2,scored=x").options,
            (Words{"--nodes=2", "--server=x", "--nodes=8"}));
}

TEST_F(Split, UnknownOptionsAreLeftToTheParser) {
  EXPECT_EQ(split({"--bogus", "prog"}).options, Words{"--bogus"});
}

TEST_F(Split, LongOptionsOfTheCommandStay) {
  std::string hosts;
  app.add_option("--hosts", hosts);
  EXPECT_EQ(split({"--hosts", "a,b", "x"}).options, (Words{"--hosts", "a,b"}));
  EXPECT_EQ(split({"--hosts=a,b", "x"}).options, Words{"--hosts=a,b"});
  EXPECT_EQ(split({"-host", "a,b", "x"}).options.at(0), "--nodelist=a,b");
}

}  // namespace
}  // namespace score::scout
