#include "scout/slurm/words/submit_words.hpp"

#include "scout/slurm/words/option_words.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace score::scout::slurm {
namespace {

using Words = std::vector<std::string>;

const std::vector<OptionForm> kForms = {{"jobs", 'j', Takes::Value},
                                        {"noheader", 'h'},
                                        {"nodes", 'N', Takes::Value},
                                        {"nice", 0, Takes::Maybe},
                                        {"array", 'r'}};

std::string read(const Words& args, Order order = Order::Any) {
  const auto line = read_options(kForms, args, order);
  if (!line) return line.error().context();
  std::string text;
  for (const auto& option : line->options) {
    text += std::string(option.name) + (option.has_value ? "=" + option.value : "") + " ";
  }
  for (const auto& word : line->words) text += "[" + word + "]";
  return text;
}

TEST(OptionWords, LettersAreJoinedAndNamesShortened) {
  EXPECT_EQ(read({"-hr", "-j5", "-N", "2"}), "noheader array jobs=5 nodes=2 ");
  EXPECT_EQ(read({"--job", "1,2", "--nod=3", "--nice"}), "jobs=1,2 nodes=3 nice ");
  EXPECT_EQ(read({"x", "-h", "--", "-r"}), "noheader [x][-r]");
  EXPECT_EQ(read({"-h", "prog", "-r"}, Order::OptionsFirst), "noheader [prog][-r]");
}

TEST(OptionWords, UnknownOptionIsNamed) {
  EXPECT_EQ(read({"--noheadr"}), "unknown option --noheadr; did you mean --noheader?");
  EXPECT_EQ(read({"-hx"}), "unknown option -x");
  EXPECT_EQ(read({"--no"}), "--no is not complete: --noheader and --nodes begin with it");
  EXPECT_EQ(read({"-j"}), "--jobs needs a value");
  EXPECT_EQ(read({"--array=3"}), "--array takes no value");
}

Words words_of(const std::vector<GivenOption>& options) {
  const auto translated = translate(options, {"wrap"});
  return translated ? translated->words : Words{translated.error().context()};
}

TEST(SubmitWords, OptionsBecomeOurs) {
  EXPECT_EQ(words_of({{"nodes", "2", true},
                      {"mem", "500", true},
                      {"time", "5", true},
                      {"partition", "high", true},
                      {"export", "NIL", true},
                      {"wrap", "x", true},
                      {"comment", "nothing", true},
                      {"exclusive", "", false}}),
            (Words{"--nodes=2", "--mem=500M", "--wall-time=300s", "--queue=high", "--export=NONE",
                   "--queue=exclusive"}));
  EXPECT_EQ(words_of({{"gpus", "2", true}}),
            (Words{"--gpus=2: give the number per node: --gpus-per-node=N or --gres=gpu:N"}));
  EXPECT_EQ(words_of({{"mail-type", "END,STAGE_OUT", true}, {"partition", "debug", true}}),
            (Words{"--mail-type=END", "--partition=debug"}));
}

TEST(SubmitWords, DependenciesThatAreMissingHereAreRefused) {
  EXPECT_TRUE(check_dependency("afterok:1:2,afterany:3_4,singleton"));
  EXPECT_TRUE(check_dependency("afterok:1?afterok:2"));
  EXPECT_TRUE(check_dependency("after:7+5"));
  for (const char* text : {"aftercorr:7"}) {
    const auto refused = check_dependency(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_TRUE(refused.error().context().starts_with(std::string("--dependency=") + text));
  }
}

TEST(SubmitWords, VariablesAreOptions) {
  const std::map<std::string, const char*> variables = {
      {"SBATCH_ACCOUNT", "physics"}, {"SBATCH_TIMELIMIT", "10"}, {"SBATCH_EXCLUSIVE", "1"}};
  const auto value_of = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second;
  };
  EXPECT_EQ(words_of(options_in_environment("SBATCH_", value_of)),
            (Words{"--account=physics", "--queue=exclusive", "--wall-time=600s"}));
}

TEST(SubmitWords, StepsLeaveOutOptionsOfTheJob) {
  const std::vector<GivenOption> options = {{"exclusive", "", false},
                                            {"cpu-bind", "verbose,cores", true},
                                            {"mpi", "pmix_v4", true},
                                            {"label", "", false},
                                            {"kill-on-bad-exit", "1", true}};
  const auto step = translate_run(options, true);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->words, (Words{"--cpu-bind=core", "--mpi=pmix", "--label"}));
  EXPECT_EQ(step->ignored, Words());
  const auto job = translate_run(options, false);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->words.back(), "--queue=exclusive");
}

TEST(SubmitWords, RandomWordsAreReadOrRefused) {
  const auto forms = submit_forms({{"wrap", 0, Takes::Value}});
  std::mt19937 random(20261129);
  for (int round = 0; round < 20'000; ++round) {
    Words args;
    for (int i = 0; i < 3; ++i) {
      std::string word = "--";
      word.resize(random() % 3);
      for (int j = 0; j < 6; ++j)
        word += static_cast<char>(random() % 2 == 0 ? 'a' + random() % 26 : random() % 256);
      args.push_back(std::move(word));
    }
    const auto line = read_options(forms, args, Order::OptionsFirst);
    if (line) (void)translate(line->options, {});
  }
}

}  // namespace
}  // namespace score::scout::slurm
