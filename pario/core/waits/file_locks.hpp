// Computes the locks of one file, as fcntl(2) and flock(2) describe them. The two kinds do not
// exclude each other. A server stores the locks of a file as one list, without an order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace score::pario {

// The bits of the field `mode` of a Lock request, and of FileLock::kind. Without kShared and
// kExclusive the range is unlocked.
inline constexpr std::uint32_t kShared = 1;
inline constexpr std::uint32_t kExclusiveLock = 2;
inline constexpr std::uint32_t kWholeFile = 4;     // a lock of flock(2)
inline constexpr std::uint32_t kTestLock = 8;      // only find a lock that is in the way
inline constexpr std::uint32_t kWaitForLock = 16;  // EAGAIN only after a second
inline constexpr std::uint32_t kDropClient = 32;   // the client is lost; there is no LockRequest
inline constexpr std::uint32_t kAllLockBits = 63;

// The data of a Lock request.
struct LockRequest {
  std::uint64_t owner = 0;  // of the locks, within the client
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // the first byte behind the range; UINT64_MAX: no end
  std::uint64_t process = 0;
};

// One lock, as it is stored, and as it is returned by kTestLock (kind 0: none is in the way).
struct FileLock {
  std::uint64_t client = 0;
  std::uint64_t owner = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t process = 0;
  std::uint32_t kind = 0;  // kShared or kExclusiveLock, with kWholeFile

  friend bool operator==(const FileLock&, const FileLock&) = default;
};

inline constexpr std::size_t kMostLocks = 20'000;  // of a file

// Returns the lock that is in the way of `wanted`, or null.
const FileLock* find_conflict(const std::vector<FileLock>& locks, const FileLock& wanted);

// Sets or removes (kind without kShared and kExclusiveLock) the range of an owner. EAGAIN: another
// lock is in the way. ENOLCK: the file has too many locks. Nothing has changed then.
int set_lock(std::vector<FileLock>& locks, const FileLock& wanted);

}  // namespace score::pario
