// Protects a link that several threads use.
#pragma once

#include <mutex>

namespace score::pm::fi {

struct LinkLock {
  std::mutex mutex;
  bool needs_lock = true;
};

// Takes a lock for its own lifetime, if it is needed.
class Guard {
 public:
  explicit Guard(LinkLock& lock) : lock_(lock), is_locked_(lock.needs_lock) {
    if (is_locked_) lock_.mutex.lock();
  }

  ~Guard() {
    if (is_locked_) lock_.mutex.unlock();
  }

  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  LinkLock& lock_;
  bool is_locked_;
};

}  // namespace score::pm::fi
