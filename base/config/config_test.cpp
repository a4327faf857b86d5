#include "base/config/config.hpp"

#include "base/limits.hpp"
#include "base/os/fd.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <sys/stat.h>

namespace score {
namespace {

enum class Mode { Clock, Barrier };

struct Settings {
  std::string name = "default";
  bool verbose = false;
  std::uint32_t slots = 8;
  double share = 1.0;
  Duration quantum = 100ms;
  Bytes memory = 1_GiB;
  Mode mode = Mode::Clock;
  std::vector<std::string> hosts;
  std::vector<std::string> queues;
  std::vector<std::string> users;
};

// Reads all keys and returns the context of the first problem, or "".
std::string read(std::string_view text, Settings& out) {
  auto file = ConfigFile::parse(text, "f.toml");
  if (!file) return file.error().context();
  ConfigSection root = file->root();
  root.read("name", out.name);
  root.read("verbose", out.verbose);
  ConfigSection gang = root.section("gang");
  gang.read("slots", out.slots, 1U, 64U);
  gang.read("share", out.share, 0.0, 1.0);
  gang.read("quantum", out.quantum, limits::kMinQuantum, limits::kMaxQuantum);
  gang.read("memory", out.memory, 1_MiB, 1024_GiB);
  gang.read_choice("mode", out.mode, {{"clock", Mode::Clock}, {"barrier", Mode::Barrier}});
  gang.read("hosts", out.hosts);
  for (ConfigSection& queue : root.sections("queue")) {
    queue.read("name", out.queues.emplace_back());
  }
  for (auto& [name, user] : root.named_sections("user")) {
    bool operates = false;
    user.read("operator", operates);
    out.users.push_back(name + (operates ? "!" : ""));
  }
  const auto status = file->finish();
  return status ? "" : status.error().context();
}

std::string problem(std::string_view text) {
  Settings settings;
  return read(text, settings);
}

TEST(Config, AbsentKeysLeaveDefaults) {
  Settings settings;
  EXPECT_EQ(read("", settings), "");
  EXPECT_EQ(settings.name, "default");
  EXPECT_EQ(settings.slots, 8U);
  EXPECT_EQ(settings.quantum, 100ms);
}

TEST(Config, ReadsEveryType) {
  Settings settings;
  EXPECT_EQ(read(R"(name = "c1"
verbose = true
[gang]
slots = 16
share = 0.5
quantum = "50ms"
memory = "2G"
mode = "barrier"
hosts = ["a", "b"]
[[queue]]
name = "high"
[[queue]]
name = "low"
[user.zoe]
[user.ann]
operator = true
)",
                 settings),
            "");
  EXPECT_EQ(settings.name, "c1");
  EXPECT_TRUE(settings.verbose);
  EXPECT_EQ(settings.slots, 16U);
  EXPECT_EQ(settings.share, 0.5);
  EXPECT_EQ(settings.quantum, 50ms);
  EXPECT_EQ(settings.memory, 2_GiB);
  EXPECT_EQ(settings.mode, Mode::Barrier);
  EXPECT_EQ(settings.hosts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(settings.queues, (std::vector<std::string>{"high", "low"}));
  EXPECT_EQ(settings.users, (std::vector<std::string>{"ann!", "zoe"}));
}

TEST(Config, RefusesUnknownKeysWithTheirLine) {
  EXPECT_EQ(problem("\nnaem = 1"), "f.toml:2: unknown key 'naem'");
  EXPECT_EQ(problem("[gang]\nslots = 2\nslot = 1"), "f.toml:3: unknown key 'gang.slot'");
  EXPECT_EQ(problem("[gnag]\nslots = 2"), "f.toml:1: unknown key 'gnag'");
  EXPECT_EQ(problem("[[queue]]\nname = \"a\"\n[[queue]]\nnmae = \"b\""),
            "f.toml:4: unknown key 'queue.nmae'");
  EXPECT_EQ(problem("[user.ann]\nroot = true"), "f.toml:2: unknown key 'user.ann.root'");
  EXPECT_EQ(problem("gang.slto = 1"), "f.toml:1: unknown key 'gang.slto'");
}

TEST(Config, RefusesWrongTypesAndRanges) {
  EXPECT_EQ(problem("naem = 1\nname = 1"), "f.toml:2: name: must be a string in quotes")
      << "a reader that refuses a value may not read the others";
  EXPECT_EQ(problem("name = 1"), "f.toml:1: name: must be a string in quotes");
  EXPECT_EQ(problem("verbose = \"yes\""), "f.toml:1: verbose: must be true or false");
  EXPECT_EQ(problem("gang = 1"), "f.toml:1: gang: must be a table");
  EXPECT_EQ(problem("queue = 1"), "f.toml:1: queue: must be tables: [[queue]]");
  EXPECT_EQ(problem("[gang]\nslots = 65"), "f.toml:2: slots: 65 is not between 1 and 64");
  EXPECT_EQ(problem("[gang]\nslots = -1"), "f.toml:2: slots: -1 is not between 1 and 64");
  EXPECT_EQ(problem("[gang]\nslots = 1.0"), "f.toml:2: slots: must be an integer");
  EXPECT_EQ(problem("[gang]\nshare = nan"), "f.toml:2: share: nan is not between 0 and 1");
  EXPECT_EQ(problem("[gang]\nquantum = 100"),
            "f.toml:2: quantum: must be a duration in quotes, such as \"100ms\"");
  EXPECT_EQ(problem("[gang]\nquantum = \"0\""), "f.toml:2: quantum: 0s is below 1ms");
  EXPECT_EQ(problem("[gang]\nquantum = \"1h\""), "f.toml:2: quantum: 1h is above 10s");
  EXPECT_EQ(problem("[gang]\nmemory = -1"), "f.toml:2: memory: must be a size, such as \"512M\"");
  EXPECT_EQ(problem("[gang]\nmemory = 1"), "f.toml:2: memory: 1 is below 1M");
  EXPECT_EQ(problem("[gang]\nmode = \"both\""), "f.toml:2: mode: use one of clock, barrier");
  EXPECT_EQ(problem("[gang]\nhosts = [1]"), "f.toml:2: hosts: must be a list of strings");
  EXPECT_EQ(problem("name = 1979-05-27"), "f.toml:1: name: must be a string in quotes");
  EXPECT_EQ(problem("name = \"a\\u0000b\""), "f.toml:1: name: must not hold a NUL");
}

TEST(Config, LeavesSectionsOfOtherReadersAlone) {
  auto file = ConfigFile::parse("[other]\nx = 1\n[[other.y]]\nz = 2\n[mine]\nx = 3", "f.toml");
  ASSERT_TRUE(file);
  file->root().ignore("other");
  file->root().ignore("absent");
  const auto status = file->finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().context(), "f.toml:5: unknown key 'mine'");
}

TEST(Config, ReportsTheFirstProblemByLine) {
  EXPECT_EQ(problem("name = 1\n[gang]\nmode = \"both\""),
            "f.toml:1: name: must be a string in quotes");
  EXPECT_EQ(problem("name = 1\nx = 1"), "f.toml:1: name: must be a string in quotes");
}

TEST(Config, NamesTheLineOfASyntaxError) {
  EXPECT_EQ(problem("a = 1\nb = ").substr(0, 9), "f.toml:2:");
  EXPECT_EQ(problem("a = 1\na = 2").substr(0, 9), "f.toml:2:");
  EXPECT_EQ(problem("[a\n").substr(0, 9), "f.toml:1:");
}

TEST(Config, ReportsTheCallersOwnChecks) {
  auto file = ConfigFile::parse("a = 1\nb = 2\n", "f.toml");
  ConfigSection root = file->root();
  int value = 0;
  root.read("a", value, 0, 9);
  root.read("b", value, 0, 9);
  root.refuse("b", "must equal a");
  EXPECT_EQ(file->finish().error().context(), "f.toml:2: b: must equal a");
}

TEST(Config, RefusesHostileFiles) {
  EXPECT_TRUE(ConfigFile::parse(std::string(limits::kMaxConfigBytes + 1, '#'), "f")
                  .error()
                  .is(Errc::TooLarge));
  std::string dotted = "a";
  for (int i = 0; i < 400'000; ++i) dotted += ".a";
  EXPECT_FALSE(ConfigFile::parse(dotted + " = 1", "f"));
  EXPECT_FALSE(ConfigFile::parse("a = " + std::string(300'000, '['), "f"));
  std::string lines = "a = ";
  for (int i = 0; i < 100'000; ++i) lines += "[\n";
  EXPECT_FALSE(ConfigFile::parse(lines, "f"));
  EXPECT_FALSE(ConfigFile::parse("a = \"\xff\"", "f"));
  for (const auto* letter :
       {"\u00e9", "\u00a1", "\u1680x", "\u2010", "\u3042", "\U0001F680", "\ufefe"}) {
    EXPECT_FALSE(ConfigFile::parse(fmt::format("{} = 1", letter), "f")) << letter;
    EXPECT_FALSE(ConfigFile::parse(fmt::format("a {} = 1", letter), "f")) << letter;
    EXPECT_FALSE(ConfigFile::parse(fmt::format("a = {}", letter), "f")) << letter;
  }
  EXPECT_FALSE(ConfigFile::parse(std::string("a\0= 1", 6), "f"));
}

TEST(Config, SurvivesTruncationAndBitFlips) {
  const std::string good =
      "name = \"c1\"\n[gang]\nslots = 16\nquantum = \"50ms\"\n[[queue]]\nname = \"x\"\n";
  for (std::size_t length = 0; length <= good.size(); ++length) problem(good.substr(0, length));
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (int flips = 0; flips < 3; ++flips)
      text[random() % text.size()] = static_cast<char>(random());
    refused += problem(text).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 2000);
}

TEST(Config, NamesAMissingFile) {
  const auto file = ConfigFile::load("/no/such.toml");
  EXPECT_TRUE(file.error().is(std::errc::no_such_file_or_directory));
  EXPECT_NE(file.error().message().find("/no/such.toml"), std::string::npos);
}

TEST(Config, RefusesAFileThatOthersCanChange) {
  std::string directory = "/tmp/score-config-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/scored.toml";
  ASSERT_TRUE(replace_file(path, "", 0640));
  EXPECT_TRUE(ConfigFile::load_own(path));
  for (const mode_t mode : {0620U, 0602U, 0666U}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_TRUE(ConfigFile::load_own(path).error().is(Errc::Denied)) << mode;
  }
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  for (const mode_t mode : {0770U, 0757U}) {
    ASSERT_EQ(chmod(directory.c_str(), mode), 0);
    const auto refused = ConfigFile::load_own(path);
    EXPECT_TRUE(refused.error().is(Errc::Denied)) << mode;
    EXPECT_NE(refused.error().message().find(directory + " has mode"), std::string::npos);
  }
  ASSERT_EQ(chmod(directory.c_str(), 01777), 0);
  EXPECT_TRUE(ConfigFile::load_own(path)) << "no one else can replace it there";
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace score
