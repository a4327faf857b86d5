#include "pario/core/waits/file_locks.hpp"

#include <algorithm>
#include <cerrno>

namespace score::pario {
namespace {

constexpr std::uint32_t kTypes = kShared | kExclusiveLock;

bool is_of_same_owner(const FileLock& a, const FileLock& b) {
  return a.client == b.client && a.owner == b.owner &&
         (a.kind & kWholeFile) == (b.kind & kWholeFile);
}

}  // namespace

const FileLock* find_conflict(const std::vector<FileLock>& locks, const FileLock& wanted) {
  if ((wanted.kind & kTypes) == 0) return nullptr;
  const auto conflicts = [&wanted](const FileLock& lock) {
    return lock.begin < wanted.end && wanted.begin < lock.end &&
           ((lock.kind | wanted.kind) & kExclusiveLock) != 0 &&
           (lock.kind & kWholeFile) == (wanted.kind & kWholeFile) &&
           !is_of_same_owner(lock, wanted);
  };
  const auto found = std::ranges::find_if(locks, conflicts);
  return found == locks.end() ? nullptr : &*found;
}

// The parts of the owner's locks outside of the range stay. Neighbours of one kind are joined.
int set_lock(std::vector<FileLock>& locks, const FileLock& wanted) {
  if (find_conflict(locks, wanted) != nullptr) return EAGAIN;
  std::vector<FileLock> left;
  FileLock added = wanted;
  for (const FileLock& lock : locks) {
    const bool is_own = is_of_same_owner(lock, wanted);
    const bool touches = lock.begin <= added.end && added.begin <= lock.end;
    if (is_own && touches && lock.kind == wanted.kind) {
      added.begin = std::min(added.begin, lock.begin);
      added.end = std::max(added.end, lock.end);
      continue;
    }
    if (!is_own || lock.begin >= wanted.end || wanted.begin >= lock.end) {
      left.push_back(lock);
      continue;
    }
    FileLock part = lock;
    part.end = wanted.begin;
    if (part.begin < part.end) left.push_back(part);
    part = lock;
    part.begin = wanted.end;
    if (part.begin < part.end) left.push_back(part);
  }
  if ((wanted.kind & kTypes) != 0) left.push_back(added);
  if (left.size() > kMostLocks && left.size() > locks.size()) return ENOLCK;
  locks.swap(left);
  return 0;
}

}  // namespace score::pario
