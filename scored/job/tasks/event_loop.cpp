#include "scored/job/tasks/event_loop.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

// A descriptor's number may be assigned again while an event for its former owner is still in the
// batch that epoll returned. For this reason events carry a generation in addition to the number.

namespace score::shepherd {

namespace {

std::uint64_t token_of(int fd, std::uint64_t generation) {
  return generation << 32U | static_cast<std::uint32_t>(fd);
}

}  // namespace

base::Result<EventLoop> EventLoop::create() {
  base::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return base::fail(base::errno_code(errno), "epoll_create1");
  return EventLoop(std::move(epoll));
}

base::Status EventLoop::add(int fd, std::uint32_t events, Handler handler) {
  const std::uint64_t generation = ++generation_ & 0xffffffffU;
  epoll_event event{.events = events, .data = {.u64 = token_of(fd, generation)}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return base::fail(base::errno_code(errno), "cannot watch descriptor {}", fd);
  }
  watches_[fd] = {generation, events, std::make_shared<Handler>(std::move(handler))};
  return {};
}

void EventLoop::change(int fd, std::uint32_t events) {
  const auto at = watches_.find(fd);
  if (at == watches_.end() || at->second.events == events) return;
  at->second.events = events;
  epoll_event event{.events = events, .data = {.u64 = token_of(fd, at->second.generation)}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::remove(int fd) {
  if (watches_.erase(fd) > 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

EventLoop::TimerId EventLoop::after(base::Duration delay, std::function<void()> action) {
  timers_.emplace(TimerKey{base::monotonic_now() + delay, ++last_timer_}, std::move(action));
  return last_timer_;
}

void EventLoop::cancel(TimerId timer) {
  std::erase_if(timers_, [timer](const auto& entry) { return entry.first.second == timer; });
}

int EventLoop::wait_ms() const {
  if (timers_.empty()) return -1;
  const auto left = timers_.begin()->first.first - base::monotonic_now();
  // The time is rounded up, because waking too early would spin.
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, 60'000));
}

void EventLoop::run_timers() {
  const auto now = base::monotonic_now();
  while (!stopped_ && !timers_.empty() && timers_.begin()->first.first <= now) {
    auto due = timers_.extract(timers_.begin());
    due.mapped()();
  }
}

void EventLoop::dispatch(std::uint64_t token, std::uint32_t events) {
  const auto at = watches_.find(static_cast<int>(token & 0xffffffffU));
  if (at == watches_.end() || at->second.generation != token >> 32U) return;
  const auto handler = at->second.handler;
  (*handler)(events);
}

void EventLoop::run() {
  std::array<epoll_event, 64> ready{};
  while (!stopped_) {
    const int count = epoll_wait(epoll_.get(), ready.data(), ready.size(), wait_ms());
    for (int i = 0; i < count && !stopped_; ++i) {
      const auto& event = ready[static_cast<std::size_t>(i)];
      dispatch(event.data.u64, event.events);
    }
    run_timers();
  }
}

}  // namespace score::shepherd
