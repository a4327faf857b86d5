#pragma once
// Runs callbacks for descriptors and timers, with one thread and one epoll instance. Callbacks may
// add, change and remove descriptors and timers freely, including their own. A removed callback is
// no longer called, even if it was already due.

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

  // Watches a descriptor. events: EPOLLIN ..., level-triggered; 0 still reports EPOLLHUP and
  // EPOLLERR. The caller keeps ownership of the descriptor and must call remove() before closing
  // it. Errors: errno codes.
  base::Status add(int fd, std::uint32_t events, Handler handler);
  void change(int fd, std::uint32_t events);
  void remove(int fd);  // does nothing for an unknown descriptor

  TimerId after(base::Duration delay, std::function<void()> action);
  void cancel(TimerId timer);

  void run();  // until stop()

  void stop() { stopped_ = true; }

 private:
  struct Watch {
    std::uint64_t generation;
    std::uint32_t events;
    std::shared_ptr<Handler> handler;  // kept alive while it runs, in case it removes itself
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
