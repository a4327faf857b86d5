#include "scout/batch/script.hpp"

#include "base/limits.hpp"
#include "scout/batch/shell_words.hpp"
#include "scout/batch/slurm_options.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::scout {
namespace {

using Words = std::vector<std::string>;

Words all_words(const ScriptOptions& options) {
  Words words;
  for (const auto& line : options.lines) {
    words.insert(words.end(), line.words.begin(), line.words.end());
  }
  return words;
}

Words words_in(const std::string& script) {
  const auto read = read_script(script);
  EXPECT_TRUE(read) << read.error().message();
  return read ? all_words(*read) : Words{};
}

std::string refusal_of(const std::string& script) {
  const auto read = read_script(script);
  EXPECT_FALSE(read);
  return read ? "" : read.error().context();
}

TEST(Script, LinesBeforeTheFirstCommandAreOptions) {
  const auto read = read_script(
      "#!/bin/sh\n# a comment\n\n#SCORE -N 4 --ntasks=8\n#SCORE --job-name 'two words' # why\n"
      "echo start\n#SCORE --too-late\n");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->lines.size(), 2U);
  EXPECT_EQ(read->lines[0], (ScriptLine{4, {"-N", "4", "--ntasks=8"}}));
  EXPECT_EQ(read->lines[1], (ScriptLine{5, {"--job-name", "two words"}}));
}

TEST(Script, DirectivePrefixInLongerWordIsAComment) {
  EXPECT_EQ(words_in("#!/bin/sh\n#SCOREBOARD is here\n# SCORE -N 2\n#SCORE-N 2\n"),
            (Words{"-N", "2"}));
}

TEST(Script, LastLineNeedsNoNewline) {
  EXPECT_EQ(words_in("#!/bin/sh\n#SCORE -n 3"), (Words{"-n", "3"}));
}

TEST(Script, InvalidScriptIsRefusedInOneLine) {
  EXPECT_NE(refusal_of("echo\n").find("line 1"), std::string::npos);
  EXPECT_NE(refusal_of("").find("line 1"), std::string::npos);
  EXPECT_NE(refusal_of(std::string("#!/bin/sh\n\0x", 12)).find("NUL"), std::string::npos);
  EXPECT_NE(refusal_of("#!/bin/sh\r\necho\r\n").find("carriage return"), std::string::npos);
  const std::string large = "#!/bin/sh\n" + std::string(limits::kMaxScriptBytes, '#');
  EXPECT_NE(refusal_of(large).find("512 KiB"), std::string::npos);
  EXPECT_EQ(refusal_of("#!/bin/sh\n#SCORE -J 'open\n"), "line 2: a quote (') is not closed");
}

TEST(Script, WordsAreSplitAsInAShell) {
  const auto words = shell_words(R"(  -J "a \"b\"" --x='c d'e f\ g "" #rest)");
  ASSERT_TRUE(words);
  EXPECT_EQ(*words, (Words{"-J", "a \"b\"", "--x=c de", "f g", ""}));
}

TEST(Script, SlurmLinesWithEqualMeaningAreTranslated) {
  const auto read = read_script(
      "#!/bin/bash\n#SBATCH -N 2 -n8 --time=1-0:30\n#SBATCH --mem 4000 --partition debug\n"
      "#SBATCH --exclusive --output=out-%j --error=err-%x\n");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(all_words(*read),
            (Words{"--nodes=2", "--ntasks=8", "--wall-time=88200s", "--mem=4000M",
                   "--partition=debug", "--queue=exclusive", "--output=out-%j", "--error=err-%x"}));
  EXPECT_EQ(read->ignored, Words());
  EXPECT_EQ(words_in("#!/bin/sh\n#SBATCH -p debug -L matlab:2,ansys --licenses=none\n"),
            (Words{"--partition=debug", "--licenses=matlab:2,ansys", "--licenses=none"}));
}

TEST(Script, SlurmArraysAndDependenciesAreTranslated) {
  const auto read = read_script(
      "#!/bin/sh\n#SBATCH --array=0-9%2 -d afterok:3\n#SBATCH -b 16:00 --deadline=2026-12-01\n"
      "#SBATCH -a 7 --dependency singleton --output=%A_%3a --error=%A-%x\n"
      "#SBATCH --kill-on-invalid-dep=yes\n#SBATCH --kill-on-invalid-dep no\n");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(all_words(*read), (Words{"--array=0-9%2", "--dependency=afterok:3", "--begin=16:00",
                                     "--deadline=2026-12-01", "--array=7", "--dependency=singleton",
                                     "--output=%A_%3a", "--error=%A-%x", "--kill-on-invalid-dep"}));
  EXPECT_EQ(read->ignored, (Words{"line 6: ignoring #SBATCH --kill-on-invalid-dep no"}));
}

TEST(Script, SlurmSizesWithoutUnitAreMegabytes) {
  for (const auto& [given, words] :
       std::vector<std::pair<std::string, Words>>{{"4000", {"--mem=4000M"}},
                                                  {"4GB", {"--mem=4GB"}},
                                                  {"4g", {"--mem=4g"}},
                                                  {"100mb", {"--mem=100mb"}},
                                                  {"1024K", {"--mem=1024K"}},
                                                  {"0", {}}}) {
    EXPECT_EQ(words_in("#!/bin/sh\n#SBATCH --mem=" + given + "\n"), words) << given;
  }
  EXPECT_EQ(refusal_of("#!/bin/sh\n#SBATCH --mem=4X\n"),
            "line 2: --mem: '4X' is not a size; use 4000 (megabytes), 4G or 4GB");
}

TEST(Script, SlurmSizesPerCoreAreTranslated) {
  EXPECT_EQ(words_in("#!/bin/sh\n#SBATCH --mem-per-cpu=500\n"), (Words{"--mem-per-cpu=500M"}));
}

TEST(Script, CommonSlurmOptionsAreTranslated) {
  EXPECT_EQ(words_in("#!/bin/sh\n#SBATCH --open-mode=append --nice --nice=5 --gres=none\n"
                     "#SBATCH --distribution=cyclic:block -m block --begin=now --exclude=\n"),
            (Words{"--open-mode=append", "--nice=100", "--nice=5", "--gres=none",
                   "--distribution=cyclic", "--distribution=block", "--begin=now"}));
  const auto read = read_script("#!/bin/sh\n#SBATCH --distribution=plane=4 --gpus-per-node=0\n");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ignored, (Words{"line 2: ignoring #SBATCH --distribution=plane=4",
                                  "line 2: ignoring #SBATCH --gpus-per-node=0"}));
}

TEST(Script, UnknownResourcesAreRefused) {
  for (const char* option : {"--gpus=2", "-G 2", "--gpus-per-task=1", "--gpus-per-socket=1",
                             "--tmp=10G", "--bb=x", "--bbf=x"}) {
    const auto refusal = refusal_of(std::string("#!/bin/sh\n#SBATCH ") + option + "\n");
    EXPECT_TRUE(refusal.starts_with("line 2: #SBATCH --")) << option << ": " << refusal;
  }
  EXPECT_EQ(words_in("#!/bin/sh\n#SBATCH --gpus=0 --tmp=none\n"), Words());
}

TEST(Script, InvalidSlurmLineIsRefused) {
  EXPECT_EQ(refusal_of("#!/bin/sh\n#SBATCH --array\n"), "line 2: #SBATCH --array needs a value");
  EXPECT_EQ(refusal_of("#!/bin/sh\n#SBATCH --nodes\n"), "line 2: #SBATCH --nodes needs a value");
  EXPECT_EQ(refusal_of("#!/bin/sh\n#SBATCH four\n"), "line 2: 'four' is not an option");
}

TEST(Script, SlurmTimesAreConverted) {
  EXPECT_EQ(slurm_time("30").value_or("-"), "1800s");
  EXPECT_EQ(slurm_time("1:30").value_or("-"), "90s");
  EXPECT_EQ(slurm_time("2:00:05").value_or("-"), "7205s");
  EXPECT_EQ(slurm_time("1-12").value_or("-"), "129600s");
  EXPECT_EQ(slurm_time("UNLIMITED").value_or("-"), "");
  for (const char* bad : {"", "x", "1:2:3:4", "-", "1-", "99999999999999999999", "-5"}) {
    EXPECT_FALSE(slurm_time(bad)) << bad;
  }
}

TEST(Script, RandomBytesAndTruncationsAreHandled) {
  const std::string whole =
      "#!/bin/sh\n#SCORE -N 2 -J \"a b\\\"\" --mem=1G\n#SBATCH -t 1-2:3:4 --mem=7G -p x -J 'y'\n";
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    (void)read_script(whole.substr(0, size));
  }
  std::mt19937 random(20261123);
  for (int round = 0; round < 20'000; ++round) {
    std::string text = round % 2 == 0 ? whole : "#!\n#SBATCH ";
    for (int change = 0; change < 12; ++change) {
      const char byte = static_cast<char>(random() % 256);
      if (round % 2 != 0) text += byte;
      text[2 + random() % (text.size() - 2)] = byte;
    }
    const auto read = read_script(text);
    if (!read) continue;
    for (const auto& line : read->lines) EXPECT_FALSE(line.words.empty());
  }
}

}  // namespace
}  // namespace score::scout
