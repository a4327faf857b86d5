// The descriptor on which the threads of a link sleep, and the threads that sleep there now.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"

#include <cstdint>

namespace score::pm::fi {

class WaitSet {
 public:
  explicit WaitSet(pm::Endpoint& pm) : pm_(pm) {}

  ~WaitSet();
  WaitSet(const WaitSet&) = delete;
  WaitSet& operator=(const WaitSet&) = delete;

  // Makes the descriptors. Returns 0 or an errno. Called once, first.
  int open();

  int fd() const { return wait_fd_; }

  // Prepares for a sleep on fd() that ends after `most_us` (negative: never) or sooner. Returns
  // false if there is something to receive.
  bool arm(std::int64_t most_us);

  // Undoes what arm() did; each turn of the link calls it first.
  void disarm() {
    if (is_armed_) [[unlikely]]
      after_sleep();
  }

  // Makes fd() readable until the next turn without sleeping threads. Any thread may call this,
  // without the lock.
  void wake();

  // A thread calls add_sleeper() after arm(), before it sleeps on fd(), and remove_sleeper()
  // afterwards. Other threads wake it when they make progress, because it would not notice what
  // they receive, and when they send, because its timeout does not include their retransmissions.
  void add_sleeper() { ++sleepers_; }

  void remove_sleeper() { --sleepers_; }

  bool has_sleepers() const { return sleepers_ > 0; }

  void wake_sleepers() {
    if (has_sleepers()) wake();
  }

  // The three steps of a sleep of at most `most_us` in the state `as`. begin_sleep() returns false
  // if there is something to do. wait() is called without the lock and returns true if wake() has
  // ended it; end_sleep() takes that as `is_woken`.
  bool begin_sleep(std::int64_t most_us, ContextState as, pm::Endpoint::Sleep& sleep);
  bool wait(pm::Endpoint::Sleep& sleep) const;
  void end_sleep(const pm::Endpoint::Sleep& sleep, bool is_woken);

 private:
  [[gnu::noinline]] void after_sleep();

  pm::Endpoint& pm_;
  int wait_fd_ = -1;
  int timer_fd_ = -1;
  int wake_fd_ = -1;
  bool is_armed_ = false;
  int sleepers_ = 0;
};

}  // namespace score::pm::fi
