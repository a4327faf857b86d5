#include "pmlib/shmem/copy_choice.hpp"

#include <gtest/gtest.h>

#include <array>

namespace score::pm {
namespace {

constexpr std::uint32_t kLength = 65'536;
constexpr std::uint64_t kTrialBytes = CopyChoice::kTurns * CopyChoice::kTurnBytes;

// Simulates writes that take a given time.
struct Stream {
  std::array<std::uint64_t, 2> ns{1000, 1000};  // per write, for each way
  std::uint64_t now = 0;
  CopyChoice choice = {};

  // Returns how many writes went through the kernel.
  std::uint64_t write(std::uint64_t bytes, std::uint32_t length = kLength) {
    std::uint64_t by_kernel = 0;
    for (std::uint64_t i = 0; i < bytes / length; ++i) {
      const CopyWay way = choice.choose(length, 0, [this] { return now; });
      now += ns[static_cast<std::size_t>(way)];
      by_kernel += way == CopyWay::Kernel ? 1 : 0;
    }
    return by_kernel;
  }
};

TEST(CopyChoice, BeginsWithPoolAndTriesBoth) {
  Stream s;
  EXPECT_EQ(s.write(CopyChoice::kTurnBytes), 0u);
  EXPECT_EQ(s.write(CopyChoice::kTurnBytes), CopyChoice::kTurnBytes / kLength);
  EXPECT_EQ(s.write(CopyChoice::kTurnBytes), 0u);
}

TEST(CopyChoice, KeepsQuickerWay) {
  constexpr std::uint64_t kSome = 64 << 20;
  Stream kernel{.ns = {2000, 1000}};
  kernel.write(kTrialBytes);
  EXPECT_EQ(kernel.write(kSome), kSome / kLength);
  Stream pool{.ns = {1000, 2000}};
  pool.write(kTrialBytes);
  EXPECT_EQ(pool.write(kSome), 0u);
}

TEST(CopyChoice, SinglePauseIsIgnored) {
  Stream s{.ns = {1000, 500}};
  s.write(CopyChoice::kTurnBytes + kLength);
  s.now += 1'000'000'000;  // in the kernel's turn
  s.write(kTrialBytes - CopyChoice::kTurnBytes - kLength);
  EXPECT_EQ(s.write(1 << 20), (1 << 20) / kLength);
}

TEST(CopyChoice, TriesAgainAfterKeptBytes) {
  Stream s{.ns = {1000, 500}};
  s.write(kTrialBytes + CopyChoice::kKeptBytes);
  s.ns = {500, 1000};
  s.write(kTrialBytes);
  EXPECT_EQ(s.write(1 << 20), 0u);
}

TEST(CopyChoice, LengthClassesAreTriedSeparately) {
  Stream s{.ns = {1000, 500}};
  s.write(kTrialBytes);
  EXPECT_EQ(s.write(CopyChoice::kTurnBytes, 8192), 0u);
  EXPECT_EQ(s.write(kTrialBytes, 2048), 0u);
  EXPECT_EQ(s.write(1 << 20), (1 << 20) / kLength);
  EXPECT_EQ(s.choice.choose(UINT32_MAX, 0, [] { return 0u; }), CopyWay::Pool);
}

// Two writes of a megabyte are in flight: the kernel's have completed when they return, the pool's
// have not.
TEST(CopyChoice, WritesInFlightCountOnlyForTheirWay) {
  constexpr std::uint32_t kMegabyte = 1 << 20;
  constexpr std::uint64_t kPoolNs = 100'000, kKernelNs = 70'000;
  CopyChoice choice;
  std::uint64_t now = 0, pool_ends = 0;  // of all writes given to the pool
  std::array<std::uint64_t, 2> ends{};
  CopyWay way = CopyWay::Pool;
  for (unsigned i = 0; i < 40; ++i) {
    now = std::max(now, ends[i % 2]);
    const std::uint64_t under_way = ends[(i + 1) % 2] > now ? kMegabyte : 0;
    way = choice.choose(kMegabyte, under_way, [&] { return now; });
    if (way == CopyWay::Kernel) {
      ends[i % 2] = now += kKernelNs;
      pool_ends = std::max(pool_ends, now);  // the pool makes no progress in the meantime
      ends[(i + 1) % 2] += ends[(i + 1) % 2] > now - kKernelNs ? kKernelNs : 0;
    } else {
      ends[i % 2] = pool_ends = std::max(pool_ends, now) + kPoolNs;
    }
  }
  EXPECT_EQ(way, CopyWay::Kernel);
}

}  // namespace
}  // namespace score::pm
