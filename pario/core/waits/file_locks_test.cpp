#include "pario/core/waits/file_locks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <random>

namespace score::pario {
namespace {

FileLock lock_of(std::uint64_t owner, std::uint64_t begin, std::uint64_t end, std::uint32_t kind) {
  return {1, owner, begin, end, 7, kind};
}

TEST(FileLocks, ExclusiveLockExcludesOthers) {
  std::vector<FileLock> locks;
  EXPECT_EQ(set_lock(locks, lock_of(1, 0, 10, kShared)), 0);
  EXPECT_EQ(set_lock(locks, lock_of(2, 5, 15, kShared)), 0);
  EXPECT_EQ(set_lock(locks, lock_of(1, 0, 10, kExclusiveLock)), EAGAIN);
  EXPECT_EQ(find_conflict(locks, lock_of(3, 12, 13, kExclusiveLock))->owner, 2U);
  EXPECT_EQ(set_lock(locks, lock_of(1, 0, 5, kExclusiveLock)), 0);
  EXPECT_EQ(set_lock(locks, lock_of(3, 4, 5, kShared)), EAGAIN);
  EXPECT_EQ(set_lock(locks, lock_of(3, 0, UINT64_MAX, kExclusiveLock | kWholeFile)), 0)
      << "locks of fcntl and flock are independent";
}

TEST(FileLocks, SameOwnerOfOtherClientIsExcluded) {
  std::vector<FileLock> locks;
  EXPECT_EQ(set_lock(locks, lock_of(1, 0, 10, kExclusiveLock)), 0);
  FileLock other = lock_of(1, 0, 10, kExclusiveLock);
  other.client = 2;
  EXPECT_EQ(set_lock(locks, other), EAGAIN);
}

TEST(FileLocks, UnlockingMiddleLeavesBothEnds) {
  std::vector<FileLock> locks;
  EXPECT_EQ(set_lock(locks, lock_of(1, 0, UINT64_MAX, kExclusiveLock)), 0);
  EXPECT_EQ(set_lock(locks, lock_of(1, 10, 20, 0)), 0);
  EXPECT_EQ(locks.size(), 2U);
  EXPECT_EQ(set_lock(locks, lock_of(2, 10, 20, kExclusiveLock)), 0);
  EXPECT_EQ(set_lock(locks, lock_of(2, 10, 21, kExclusiveLock)), EAGAIN);
  EXPECT_EQ(set_lock(locks, lock_of(1, 0, UINT64_MAX, 0)), 0);
  EXPECT_EQ(locks.size(), 1U);
}

TEST(FileLocks, NeighboursAreJoined) {
  std::vector<FileLock> locks;
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(set_lock(locks, lock_of(1, i * 10, i * 10 + 10, kShared)), 0);
  }
  EXPECT_EQ(locks.size(), 1U);
  EXPECT_EQ(locks[0], lock_of(1, 0, 1'000, kShared));
}

// Compares with one kind per byte and owner.
TEST(FileLocks, RandomLocksAreThoseOfModel) {
  constexpr std::size_t kBytes = 24;
  constexpr std::size_t kOwners = 3;
  std::mt19937 random(1);
  std::vector<FileLock> locks;
  std::array<std::array<std::uint32_t, kBytes>, kOwners> model{};
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t owner = random() % kOwners;
    const std::uint64_t begin = random() % kBytes;
    const std::uint64_t end = begin + 1 + random() % (kBytes - begin);
    const auto kind = static_cast<std::uint32_t>(random() % 3);
    bool is_free = true;
    for (std::size_t other = 0; other < kOwners; ++other) {
      for (std::uint64_t at = begin; at < end && other != owner && kind != 0; ++at) {
        if ((model[other][at] | kind) > 1 && model[other][at] != 0) is_free = false;
      }
    }
    ASSERT_EQ(set_lock(locks, lock_of(owner, begin, end, kind)), is_free ? 0 : EAGAIN);
    for (std::uint64_t at = begin; is_free && at < end; ++at) model[owner][at] = kind;
    std::array<std::array<std::uint32_t, kBytes>, kOwners> got{};
    for (const FileLock& lock : locks) {
      for (std::uint64_t at = lock.begin; at < lock.end; ++at) {
        ASSERT_EQ(got[lock.owner][at], 0U);
        got[lock.owner][at] = lock.kind;
      }
    }
    ASSERT_EQ(got, model);
  }
}

}  // namespace
}  // namespace score::pario
