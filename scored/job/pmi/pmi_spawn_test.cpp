#include "scored/job/pmi/pmi_spawn.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "proto/frames/key_values.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::shepherd {
namespace {

// Passes the lines between mcmd=spawn and endcmd to the reader, including endcmd.
base::Result<bool> take_all(PmiSpawnReader& reader, std::string_view lines) {
  reader.begin();
  base::Result<bool> last = false;
  for (const auto line : base::split(lines, '\n')) {
    if (line.empty()) continue;
    last = reader.take(line);
    if (!last) return last;
  }
  return last;
}

constexpr std::string_view kOne =
    "nprocs=2\nexecname=./a b\ntotspawns=1\nspawnssofar=1\narg1=-x\narg2=\narg3=a=b c\nargcnt=3\n"
    "preput_num=1\npreput_key_0=PARENT_ROOT_PORT_NAME\npreput_val_0=tag#0$x$\n"
    "info_num=3\ninfo_key_0=wdir\ninfo_val_0=/tmp\ninfo_key_1=other\ninfo_val_1=1\n"
    "info_key_2=path\ninfo_val_2=/opt:/usr/bin\nendcmd\n";

TEST(PmiSpawn, ReadsCommandOfMpich) {
  PmiSpawnReader reader;
  const auto whole = take_all(reader, kOne);
  ASSERT_TRUE(whole && *whole);
  ASSERT_EQ(reader.whole().programs.size(), 1U);
  const auto& program = reader.whole().programs[0];
  EXPECT_EQ(program.tasks(), 2U);
  EXPECT_EQ(program.directory(), "/tmp");
  EXPECT_EQ(reader.whole().search, std::vector<std::string>{"/opt:/usr/bin"});
  const std::vector<std::string> words(program.argv().begin(), program.argv().end());
  EXPECT_EQ(words, (std::vector<std::string>{"./a b", "-x", "", "a=b c"}));
  const auto pairs = proto::parse_key_values(reader.whole().key_values);
  ASSERT_TRUE(pairs);
  ASSERT_EQ(pairs->size(), 1U);
  EXPECT_EQ((*pairs)[0].key, "PARENT_ROOT_PORT_NAME");
  EXPECT_EQ((*pairs)[0].value, "tag#0$x$");
}

std::string program_of(std::uint32_t number, std::uint32_t total) {
  return fmt::format("nprocs=1\nexecname=p{}\ntotspawns={}\nspawnssofar={}\nendcmd\n", number,
                     total, number);
}

TEST(PmiSpawn, SeveralProgramsFormOneSpawn) {
  PmiSpawnReader reader;
  EXPECT_EQ(*take_all(reader, program_of(1, 2)), false);
  EXPECT_EQ(*take_all(reader, program_of(2, 2)), true);
  ASSERT_EQ(reader.whole().programs.size(), 2U);
  EXPECT_EQ(reader.whole().programs[1].argv(0), "p2");
  EXPECT_EQ(reader.whole().search, (std::vector<std::string>{"", ""}));
}

TEST(PmiSpawn, ProgramsOutOfOrderAreRefused) {
  for (const auto& second : {program_of(1, 2), program_of(3, 2), program_of(2, 3)}) {
    PmiSpawnReader reader;
    EXPECT_EQ(*take_all(reader, program_of(1, 2)), false);
    EXPECT_FALSE(take_all(reader, second)) << second;
  }
}

TEST(PmiSpawn, CountsWithoutMatchingLinesAreRefused) {
  const std::string named = "execname=a\n";
  for (const std::string lines :
       {"endcmd\n", "nprocs=1\nendcmd\n", "execname=\nendcmd\n", "nprocs=0\nexecname=a\nendcmd\n",
        "nprocs=-1\nexecname=a\nendcmd\n", "nprocs=4294967295\nexecname=a\nendcmd\n",
        "argcnt=1048576\nexecname=a\narg1=x\nendcmd\n", "argcnt=99999999999\nexecname=a\nendcmd\n",
        "preput_num=1000000\nexecname=a\nendcmd\n",
        "preput_num=1\npreput_key_0=k\nexecname=a\nendcmd\n",
        "preput_num=1\npreput_key_0=\npreput_val_0=v\nexecname=a\nendcmd\n",
        "info_num=2\ninfo_key_0=wdir\ninfo_val_0=/\nexecname=a\nendcmd\n",
        "nonsense\nexecname=a\nendcmd\n", "=x\nexecname=a\nendcmd\n",
        "totspawns=0\nexecname=a\nendcmd\n"}) {
    PmiSpawnReader reader;
    EXPECT_FALSE(take_all(reader, lines)) << lines;
  }
  PmiSpawnReader long_one;
  const std::string line = "x=" + std::string(8000, 'y');
  base::Result<bool> taken = false;
  for (std::size_t i = 0; taken && i <= base::limits::kMaxPmiBytesPerTask / 8000; ++i) {
    taken = long_one.take(line);
  }
  EXPECT_FALSE(taken) << "it would grow for ever";
}

TEST(PmiSpawn, TruncatedOrChangedCommandsStartNoOtherProgram) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string lines(kOne);
    for (int changes = 0; changes < 3; ++changes) {
      lines[random() % lines.size()] = static_cast<char>(random() % 256);
    }
    lines.resize(random() % lines.size() + 1);
    PmiSpawnReader reader;
    const auto whole = take_all(reader, lines);
    if (!whole || !*whole) continue;
    for (const auto& program : reader.whole().programs) {
      EXPECT_GT(program.tasks(), 0U);
      EXPECT_FALSE(program.argv(0).empty());
    }
  }
}

}  // namespace
}  // namespace score::shepherd
