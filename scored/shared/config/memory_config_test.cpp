#include "scored/shared/config/memory_config.hpp"

#include <gtest/gtest.h>

namespace score {
namespace {

struct Read {
  MemoryConfig config;
  std::string fault;
};

Read read(std::string_view text) {
  auto file = ConfigFile::parse(text, "scored.toml");
  EXPECT_TRUE(file);
  ConfigSection root = file->root();
  Read out{read_memory_config(root), {}};
  if (auto sound = file->finish(); !sound) out.fault = sound.error().context();
  return out;
}

TEST(MemoryConfig, NothingIsSharedByDefault) {
  const Read none = read("");
  EXPECT_EQ(none.config, MemoryConfig{});
  EXPECT_EQ(none.config.share, MemoryShare::Never);
}

TEST(MemoryConfig, KeysAreRead) {
  const Read all = read(
      "[memory]\nshare = \"urgent\"\nswap = \"25%\"\nleast_rate = \"50M\"\n"
      "no_park_queues = [\"high\", \"exclusive\"]\nno_park_partitions = [\"debug\"]\n"
      "cost = \"5%\"\nturn_max = \"2m\"\nidle_after = \"1h\"\nkeep_free = \"3%\"\n");
  EXPECT_EQ(all.fault, "");
  EXPECT_EQ(all.config.share, MemoryShare::Urgent);
  EXPECT_EQ(all.config.swap_percent, 25U);
  EXPECT_EQ(all.config.least_rate, Bytes(50U << 20U));
  EXPECT_EQ(all.config.cost_percent, 5U);
  EXPECT_EQ(all.config.kept_free(Bytes(1'000)), Bytes(30));
  EXPECT_EQ(all.config.turn_max, std::chrono::minutes(2));
  EXPECT_EQ(all.config.idle_after, std::chrono::hours(1));
  EXPECT_EQ(all.config.unparked_queues, (std::vector{Queue::High, Queue::Exclusive}));
  EXPECT_EQ(all.config.unparked_partitions, std::vector<std::string>{"debug"});
}

TEST(MemoryConfig, SwapMayBeASize) {
  const Read size = read("[memory]\nswap = \"2G\"\n");
  EXPECT_EQ(size.fault, "");
  EXPECT_EQ(size.config.swap, Bytes(2ULL << 30U));
  const Read kept = read("[memory]\nkeep_free = \"2G\"\n");
  EXPECT_EQ(kept.config.kept_free(Bytes(1'000)), Bytes(2ULL << 30U));
}

TEST(MemoryConfig, WrongValuesAreOneLineEach) {
  EXPECT_EQ(read("[memory]\nshare = \"often\"\n").fault,
            "scored.toml:2: share: use one of never, urgent, always");
  constexpr std::string_view kSwap =
      "scored.toml:2: swap: must be a part of the host's swap or a size, such as \"50%\" or "
      "\"16G\"";
  for (const char* wrong : {"0%", "101%", "%", "much", "-1G", "5%%", "0"}) {
    EXPECT_EQ(read(fmt::format("[memory]\nswap = \"{}\"\n", wrong)).fault, kSwap) << wrong;
  }
  for (const char* wrong : {"0%", "101%", "some", "0"}) {
    EXPECT_EQ(read(fmt::format("[memory]\nkeep_free = \"{}\"\n", wrong)).fault,
              "scored.toml:2: keep_free: must be a part of the host's memory or a size, such as "
              "\"2%\" or \"1G\"")
        << wrong;
  }
  EXPECT_EQ(read("[memory]\nno_park_queues = [\"all\"]\n").fault,
            "scored.toml:2: no_park_queues: use some of exclusive, high, normal, urgent");
  EXPECT_EQ(read("[memory]\nno_park_partitions = [\"a b\"]\n").fault,
            "scored.toml:2: no_park_partitions: must be names of partitions");
  for (const char* wrong : {"0%", "101%", "10", "%", "a%"}) {
    EXPECT_EQ(read(fmt::format("[memory]\ncost = \"{}\"\n", wrong)).fault,
              "scored.toml:2: cost: must be a part of a turn from \"1%\" to \"100%\"");
  }
  EXPECT_NE(read("[memory]\nturn_max = \"0s\"\n").fault, "");
  EXPECT_NE(read("[memory]\nleast_rate = \"0\"\n").fault, "");
}

}  // namespace
}  // namespace score
