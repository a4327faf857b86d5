// Locks of fcntl(2) and flock(2). They are granted by the file's home, so they hold between all
// mounts. A lock that must wait has a thread, which asks the server again every second, because the
// threads of the session are needed to release other locks. Locks of a closed file whose server
// does not answer are released by a thread later: nothing else would end them.
#include "pario/mount/open_files.hpp"
#include "pario/mount/replies.hpp"

#include <cerrno>
#include <condition_variable>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <optional>
#include <poll.h>
#include <set>
#include <sys/file.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>

namespace score::pario {
namespace {

constexpr std::size_t kMostWaiting = 4'096;
constexpr std::uint64_t kNoEnd = UINT64_MAX;
constexpr int kPauseMs = 500;
constexpr int kMostFailures = 120;  // of a server that does not answer, one after the other

// Knows which owners may have locks, so that a close asks the server only if there are some, and
// which of them release theirs later.
class LockOwners {
 public:
  struct Owner {
    FileId file = 0;
    std::uint64_t owner = 0;
    bool is_of_flock = false;

    friend auto operator<=>(const Owner&, const Owner&) = default;
  };

  // `handle` is the open file through which the lock was taken. A late release would take the new
  // lock away, so this waits for one that has begun and prevents others.
  void add(const Owner& owner, std::uint64_t handle) {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [&] { return releasing_ != owner; });
    late_.erase(owner);
    owners_[owner] = handle;
  }

  // The caller must start a thread if this returns true. That thread calls begin_late() until it
  // returns nothing. An owner that has taken a lock in the meantime releases all with it.
  bool add_late(const Owner& owner) {
    const std::scoped_lock lock(mutex_);
    if (owners_.contains(owner)) return false;
    late_.insert(owner);
    return !std::exchange(has_thread_, true);
  }

  // Returns an owner whose locks must be released now, each in turn, or nothing.
  std::optional<Owner> begin_late(bool is_stopped) {
    const std::scoped_lock lock(mutex_);
    has_thread_ = !late_.empty() && !is_stopped;
    if (!has_thread_) return std::nullopt;
    auto next = late_.upper_bound(last_);
    if (next == late_.end()) next = late_.begin();
    last_ = *next;
    late_.erase(next);
    releasing_ = last_;
    return last_;
  }

  void end_late(bool is_released) {
    const std::scoped_lock lock(mutex_);
    if (!is_released) late_.insert(last_);
    releasing_.reset();
    released_.notify_all();
  }

  bool take(const Owner& owner) {
    const std::scoped_lock lock(mutex_);
    return owners_.erase(owner) > 0;
  }

  // Returns the owners of locks that end with this handle: it is its own owner for flock(2) and
  // for locks of open file descriptions.
  std::vector<Owner> take_all(FileId file, std::uint64_t handle) {
    const std::scoped_lock lock(mutex_);
    std::vector<Owner> taken;
    for (auto at = owners_.lower_bound({file, 0, false});
         at != owners_.end() && at->first.file == file;) {
      if (at->second != handle) {
        ++at;
        continue;
      }
      taken.push_back(at->first);
      at = owners_.erase(at);
    }
    return taken;
  }

 private:
  std::mutex mutex_;
  std::condition_variable released_;
  std::map<Owner, std::uint64_t> owners_;
  std::set<Owner> late_;
  Owner last_;  // that was released late
  std::optional<Owner> releasing_;
  bool has_thread_ = false;
};

LockOwners& lock_owners() {
  static LockOwners owners;
  return owners;
}

struct Wanted {
  FileId file = 0;
  std::uint32_t mode = 0;
  LockRequest range;
};

// Counts the threads of locks that wait, which must end before the volume is closed.
class WaitingLocks {
 public:
  bool start() {
    const std::scoped_lock lock(mutex_);
    if (is_stopped_ || count_ >= kMostWaiting) return false;
    ++count_;
    return true;
  }

  // The thread of late releases calls this. There is only one, so it has no limit.
  void start_always() {
    const std::scoped_lock lock(mutex_);
    ++count_;
  }

  void ended() {
    const std::scoped_lock lock(mutex_);
    --count_;
    changed_.notify_all();
  }

  bool is_stopped() {
    const std::scoped_lock lock(mutex_);
    return is_stopped_;
  }

  void stop() {
    std::unique_lock lock(mutex_);
    is_stopped_ = true;
    changed_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t count_ = 0;
  bool is_stopped_ = false;
};

WaitingLocks& waiting_locks() {
  static WaitingLocks locks;
  return locks;
}

// A server that is restarted does not make a waiting lock fail.
void wait_for_lock(fuse_req_t request, Volume& volume, const Wanted& wanted) {
  int failures = 0;
  int error = EAGAIN;
  while (error == EAGAIN) {
    if (fuse_req_interrupted(request) != 0 || waiting_locks().is_stopped()) {
      error = EINTR;
      break;
    }
    error = volume.lock(wanted.file, wanted.mode | kWaitForLock, wanted.range);
    if (error != EIO) {
      failures = 0;
      continue;
    }
    if (++failures == kMostFailures) break;
    error = EAGAIN;
    ::poll(nullptr, 0, kPauseMs);
  }
  // If the reply comes too late, the kernel knows nothing of the lock.
  if (fuse_reply_err(request, error) != 0 && error == 0) {
    static_cast<void>(volume.lock(wanted.file, wanted.mode & kWholeFile, wanted.range));
  }
  waiting_locks().ended();
}

void take_lock(fuse_req_t request, const Wanted& wanted, bool waits) {
  Volume& volume = volume_of(request);
  const int error = volume.lock(wanted.file, wanted.mode, wanted.range);
  if (error != EAGAIN || !waits) {
    fuse_reply_err(request, error);
    return;
  }
  if (!waiting_locks().start()) {
    fuse_reply_err(request, ENOLCK);
    return;
  }
  std::thread([request, &volume, wanted] { wait_for_lock(request, volume, wanted); }).detach();
}

std::uint32_t mode_of(int type) {
  if (type == F_RDLCK) return kShared;
  return type == F_WRLCK ? kExclusiveLock : 0;
}

// The kernel gives ranges from the beginning of the file; the length 0 has no end.
Wanted wanted_of(fuse_ino_t number, const fuse_file_info* info, const struct flock* lock) {
  const auto begin = static_cast<std::uint64_t>(lock->l_start);
  const bool has_end = lock->l_len != 0;
  const std::uint64_t end = has_end ? begin + static_cast<std::uint64_t>(lock->l_len) : kNoEnd;
  return {id_of(number),
          mode_of(lock->l_type),
          {info->lock_owner, begin, end, static_cast<std::uint64_t>(lock->l_pid)}};
}

void test_lock(fuse_req_t request, fuse_ino_t number, fuse_file_info* info, struct flock* lock) {
  const Wanted wanted = wanted_of(number, info, lock);
  FileLock found;
  const int error =
      volume_of(request).lock(wanted.file, wanted.mode | kTestLock, wanted.range, &found);
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }

  struct flock answer {};

  answer.l_type = F_UNLCK;
  if (found.kind != 0) {
    answer.l_type = (found.kind & kExclusiveLock) != 0 ? F_WRLCK : F_RDLCK;
    answer.l_whence = SEEK_SET;
    answer.l_start = static_cast<off_t>(found.begin);
    answer.l_len = found.end == kNoEnd ? 0 : static_cast<off_t>(found.end - found.begin);
    answer.l_pid = static_cast<pid_t>(found.process);
  }
  fuse_reply_lock(request, &answer);
}

void set_lock_of(fuse_req_t request, fuse_ino_t number, fuse_file_info* info, struct flock* lock,
                 int waits) {
  const Wanted wanted = wanted_of(number, info, lock);
  if (wanted.mode != 0) lock_owners().add({wanted.file, info->lock_owner, false}, info->fh);
  take_lock(request, wanted, waits != 0);
}

void set_whole_lock(fuse_req_t request, fuse_ino_t number, fuse_file_info* info, int operation) {
  std::uint32_t mode = kWholeFile;
  if ((operation & LOCK_SH) != 0) mode |= kShared;
  if ((operation & LOCK_EX) != 0) mode |= kExclusiveLock;
  const FileId file = id_of(number);
  if (mode != kWholeFile) lock_owners().add({file, info->lock_owner, true}, info->fh);
  const auto process = static_cast<std::uint64_t>(fuse_req_ctx(request)->pid);
  take_lock(request, {file, mode, {info->lock_owner, 0, kNoEnd, process}},
            (operation & LOCK_NB) == 0);
}

// Returns false if the server does not answer.
bool try_release(Volume& volume, const LockOwners::Owner& owner) {
  const std::uint32_t mode = owner.is_of_flock ? kWholeFile : 0;
  return volume.lock(owner.file, mode, {owner.owner, 0, kNoEnd, 0}) != EIO;
}

void release_late(Volume& volume) {
  while (const auto owner = lock_owners().begin_late(waiting_locks().is_stopped())) {
    const bool is_released = try_release(volume, *owner);
    lock_owners().end_late(is_released);
    if (!is_released) ::poll(nullptr, 0, kPauseMs);
  }
  waiting_locks().ended();
}

void release(Volume& volume, const LockOwners::Owner& owner) {
  if (try_release(volume, owner) || !lock_owners().add_late(owner)) return;
  waiting_locks().start_always();
  std::thread([&volume] { release_late(volume); }).detach();
}

// This is called with each close(2): the locks of fcntl(2) of the process end.
void flush(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  const LockOwners::Owner owner{id_of(number), info->lock_owner, false};
  if (lock_owners().take(owner)) release(volume_of(request), owner);
  fuse_reply_err(request, 0);
}

}  // namespace

void release_locks(Volume& volume, FileId file, std::uint64_t handle) {
  for (const LockOwners::Owner& owner : lock_owners().take_all(file, handle)) {
    release(volume, owner);
  }
}

void end_waiting_locks() {
  waiting_locks().stop();
}

void add_lock_operations(fuse_lowlevel_ops& operations) {
  operations.getlk = test_lock;
  operations.setlk = set_lock_of;
  operations.flock = set_whole_lock;
  operations.flush = flush;
}

}  // namespace score::pario
