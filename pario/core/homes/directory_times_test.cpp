#include "pario/core/homes/directory_times.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <set>

namespace score::pario {
namespace {

constexpr FileId kDirectory = make_id(5, 0);

TEST(DirectoryTimes, NewDirectoryNeedsNoOtherServer) {
  DirectoryTimes times(100);
  EXPECT_TRUE(times.is_open(kDirectory)) << "made before this process";
  times.made(kDirectory);
  EXPECT_FALSE(times.is_open(kDirectory));
  times.reported(kDirectory);
  EXPECT_TRUE(times.is_open(kDirectory));
  times.settle(kDirectory, times.version(kDirectory), 7);
  EXPECT_FALSE(times.is_open(kDirectory));
  EXPECT_EQ(times.time(kDirectory), 7);
}

TEST(DirectoryTimes, OldVersionIsNotTaken) {
  DirectoryTimes times(100);
  const std::uint64_t unknown = times.version(kDirectory);
  times.reported(kDirectory);
  times.settle(kDirectory, unknown, 7);
  EXPECT_TRUE(times.is_open(kDirectory));
  const std::uint64_t version = times.version(kDirectory);
  times.clear();
  EXPECT_NE(times.version(kDirectory), unknown);
  times.settle(kDirectory, version, 7);
  times.settle(kDirectory, unknown, 7);
  EXPECT_TRUE(times.is_open(kDirectory));
}

TEST(DirectoryTimes, FullTableForgetsAll) {
  DirectoryTimes times(100);
  times.made(kDirectory);
  for (FileId i = 0; i < DirectoryTimes::kMostDirectories; ++i) times.made(make_id(100 + i, 0));
  EXPECT_TRUE(times.is_open(kDirectory));
}

// Plays servers, clients and restarts in any order of their steps. A status that begins after a
// change was answered has its time or a later one.
struct World {
  DirectoryTimes home{1'000};
  std::array<std::int64_t, 3> changed{};
  std::array<bool, 3> has_reported{};
  std::array<std::optional<std::size_t>, 3> reporting{};  // an answer waits for this report
  std::int64_t now = 0;
  std::int64_t answered = 0;  // time of the latest change that was answered

  struct Client {
    int step = 0;
    std::uint64_t version = 0;
    std::int64_t least = 0;
    std::int64_t time = 0;
  };

  Client client;

  void change(std::size_t server) {
    changed[server] = ++now;
    if (reporting[server]) return;
    if (!has_reported[server]) {
      has_reported[server] = true;
      reporting[server] = server;
    } else {
      answered = now;
    }
  }

  void deliver(std::size_t server) {
    if (!reporting[server]) return;
    home.reported(kDirectory);
    reporting[server].reset();
    answered = std::max(answered, changed[server]);
  }

  void step_client() {
    if (client.step == 0) {
      client = {1, home.version(kDirectory), answered, home.time(kDirectory)};
      if (home.is_open(kDirectory)) return;
      ASSERT_GE(client.time, client.least);
      client.step = 0;
    } else if (client.step <= 3) {
      const auto server = static_cast<std::size_t>(client.step++ - 1);
      has_reported[server] = false;
      client.time = std::max(client.time, changed[server]);
    } else {
      ASSERT_GE(client.time, client.least);
      home.settle(kDirectory, client.version, client.time);
      client.step = 0;
    }
  }
};

TEST(DirectoryTimes, StatusSeesEveryAnsweredChange) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    World world;
    for (int i = 0; i < 400; ++i) {
      const std::size_t server = random() % 3;
      switch (random() % 8) {
        case 0:
          world.change(server);
          break;
        case 1:
        case 2:
          world.deliver(server);
          break;
        case 3:
          if (random() % 20 == 0) world.home.clear();
          if (random() % 20 == 0) world.has_reported[server] = world.reporting[server].has_value();
          break;
        default:
          ASSERT_NO_FATAL_FAILURE(world.step_client()) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace score::pario
