#pragma once
// One thread, one epoll. Callbacks may add, change and remove descriptors and timers freely, their
// own included: what was removed is not called any more, even if it was ready already.

#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <sys/epoll.h>
#include <unordered_map>

namespace score::shepherd {

class EventLoop {
 public:
  using Handler = std::function<void(std::uint32_t events)>;
  using TimerId = std::uint64_t;  // 0: none

  static base::Result<EventLoop> create();

  // events: EPOLLIN ..., level-triggered; 0 still reports EPOLLHUP and EPOLLERR. The descriptor
  // stays the caller's: remove() before closing it. Errors: errno codes.
  base::Status add(int fd, std::uint32_t events, Handler handler);
  void change(int fd, std::uint32_t events);
  void remove(int fd);  // unknown: nothing happens

  TimerId after(base::Duration delay, std::function<void()> action);
  void cancel(TimerId timer);

  void run();  // until stop()

  void stop() { stopped_ = true; }

 private:
  struct Watch {
    std::uint64_t generation;
    std::uint32_t events;
    std::shared_ptr<Handler> handler;  // kept while it runs, should it remove itself
  };

  using TimerKey = std::pair<base::TimePoint, TimerId>;

  explicit EventLoop(base::UniqueFd epoll) : epoll_(std::move(epoll)) {}

  int wait_ms() const;
  void run_timers();
  void dispatch(std::uint64_t token, std::uint32_t events);

  base::UniqueFd epoll_;
  std::unordered_map<int, Watch> watches_;  // [fd]
  std::uint64_t generation_ = 0;
  std::map<TimerKey, std::function<void()>> timers_;
  TimerId last_timer_ = 0;
  bool stopped_ = false;
};

}  // namespace score::shepherd
