#include "scout/run/mpiexec_options.hpp"

#include "scout/run/score_options.hpp"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

namespace score::scout {
namespace {

using Words = std::vector<std::string>;

class Mpiexec : public testing::Test {
 protected:
  void SetUp() override {
    app.add_option("-n,--ntasks", value);
    app.add_option("-e,--error", value);
    app.add_option("-w,--nodelist", value);
    app.add_flag("-l,--label", label);
  }

  SplitCommand split(const Words& args) {
    auto result = split_command(app, args, "");
    return result ? *result : SplitCommand{{"error"}, {result.error().message()}};
  }

  std::string error_of(const Words& args) {
    const auto result = split_command(app, args, "");
    return result ? "" : result.error().message();
  }

  static std::string file_with(const std::string& text) {
    const std::string path = testing::TempDir() + "mpiexec_words";
    std::ofstream(path) << text;
    return path;
  }

  CLI::App app;
  std::string value;
  bool label = false;
};

TEST_F(Mpiexec, WordsBecomeOptions) {
  struct Case {
    Words args;
    Words options;
  };

  const Case cases[] = {
      {{"-np", "4"}, {"--ntasks=4"}},
      {{"--np=4"}, {"--ntasks=4"}},
      {{"-n", "4"}, {"-n", "4"}},
      {{"-ppn", "2"}, {"--ntasks-per-node=2"}},
      {{"-npernode", "2"}, {"--ntasks-per-node=2"}},
      {{"-host", "a,b"}, {"--nodelist=a,b"}},
      {{"-hosts", "a:2,b:2"}, {"--nodelist=a,b", "--ntasks-per-node=2"}},
      {{"--host", "a"}, {"--nodelist=a"}},
      {{"-genvall"}, {"--export=ALL"}},
      {{"-envall"}, {"--export=ALL"}},
      {{"-genvnone"}, {"--export=NONE"}},
      {{"-genvlist", "A,B"}, {"--export=A,B"}},
      {{"-wdir", "/tmp"}, {"--chdir=/tmp"}},
      {{"--wdir=/tmp"}, {"--chdir=/tmp"}},
      {{"-prepend-rank"}, {"--label"}},
      {{"-l"}, {"-l"}},
      {{"--bind-to", "core"}, {"--cpu-bind=core"}},
      {{"-version"}, {"--version"}},
  };
  for (const auto& [args, options] : cases) {
    Words line = args;
    line.insert(line.end(), {"prog", "-np", "9"});
    const auto got = split(line);
    EXPECT_EQ(got.options, options) << args[0];
    EXPECT_EQ(got.command, (Words{"prog", "-np", "9"})) << args[0];
  }
}

TEST_F(Mpiexec, VariablesHaveNamesAndValues) {
  const auto got = split({"-genv", "A", "1,2", "-env", "B", "x y", "-env", "C", "", "prog"});
  EXPECT_EQ(got.job_variables, Words{"A=1,2"});
  EXPECT_EQ(got.variables, (Words{"B=x y", "C="}));
  EXPECT_EQ(got.command, Words{"prog"});
  EXPECT_NE(error_of({"-env", "A"}).find("missing"), std::string::npos);
  EXPECT_NE(error_of({"-env", "A=1", "prog", "x"}).find("NAME VALUE"), std::string::npos);
}

TEST_F(Mpiexec, HostFilesOfBothLibrariesAreParsed) {
  for (const char* text : {"# all\na:2\nb:2\n", "a slots=2 max_slots=4\n\tb  slots=2 # here\n"}) {
    const auto got = split({"-f", file_with(text), "prog"});
    EXPECT_EQ(got.options, (Words{"--nodelist=a,b", "--ntasks-per-node=2"})) << text;
  }
  EXPECT_EQ(split({"-hostfile", file_with("a\nb\n"), "prog"}).options, Words{"--nodelist=a,b"});
  for (const char* text : {"", "a:x\n", "a:0\n", "a:1\nb:2\n", ":2\n"}) {
    EXPECT_NE(error_of({"-machinefile", file_with(text), "prog"}), "") << text;
  }
  EXPECT_NE(error_of({"-f", "/no/such/file", "prog"}), "");
}

TEST_F(Mpiexec, RefusalNamesTheOptionToUse) {
  for (const auto& [word, hint] :
       {std::pair{"-map-by", "-m block"}, std::pair{"--mca", "OMPI_MCA_"},
        std::pair{"-launcher", "leave it out"}, std::pair{"-outfile-pattern", "-o FILE"},
        std::pair{"-verbose", "-v"}, std::pair{"-disable-auto-cleanup", "--keep-going"}}) {
    const auto error = error_of({word, "x", "prog"});
    EXPECT_NE(error.find(word), std::string::npos) << error;
    EXPECT_NE(error.find(hint), std::string::npos) << error;
  }
  EXPECT_NE(error_of({"-bind-to", "numa", "prog"}).find("none, core or socket"), std::string::npos);
}

TEST_F(Mpiexec, ScrunOptionsWithAttachedValueStay) {
  EXPECT_EQ(split({"-n4", "-efile", "-wnode1", "prog"}).options,
            (Words{"-n4", "-efile", "-wnode1"}));
}

TEST_F(Mpiexec, ConfigFileHasOneProgramPerLine) {
  const auto words = parse_config_file("# two\n-n 1 ./a 'b c'\n\n-n 2 ./d\n");
  ASSERT_TRUE(words);
  EXPECT_EQ(*words, (Words{"-n", "1", "./a", "b c", ":", "-n", "2", "./d"}));
  EXPECT_FALSE(parse_config_file("# nothing\n"));
  EXPECT_FALSE(parse_config_file("./a 'b\n"));
  EXPECT_EQ(split({"-configfile", "x"}).config_file, "x");
}

TEST_F(Mpiexec, TimeoutIsInSeconds) {
  EXPECT_EQ(*timeout_option("90"), Words{"--wall-time=90s"});
  EXPECT_EQ(*timeout_option(nullptr), Words());
  EXPECT_EQ(*timeout_option("0"), Words());
  for (const char* bad : {"-1", "1m", "x", "99999999999999"}) EXPECT_FALSE(timeout_option(bad));
}

TEST_F(Mpiexec, RandomTextIsParsedOrRefused) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (auto n = random() % 60; n > 0; --n) {
      text += "-np env:slots=2,\n #'\"\\ab"[random() % 23];
    }
    (void)parse_config_file(text);
    (void)timeout_option(text.c_str());
    (void)split_command(app, {text, "-host", text, "-env", text, text}, "");
  }
}

}  // namespace
}  // namespace score::scout
