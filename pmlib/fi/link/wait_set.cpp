#include "pmlib/fi/link/wait_set.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utility>

namespace score::pm::fi {

namespace {

void watch(int epoll_fd, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

void drain(int fd) {
  std::uint64_t drained = 0;
  [[maybe_unused]] const ssize_t n = read(fd, &drained, sizeof drained);
}

}  // namespace

int WaitSet::open() {
  wait_fd_ = epoll_create1(EPOLL_CLOEXEC);
  timer_fd_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wait_fd_ < 0 || timer_fd_ < 0 || wake_fd_ < 0) return errno;
  for (const int fd : {pm_.poll_fd(), timer_fd_, wake_fd_}) watch(wait_fd_, fd);
  return 0;
}

WaitSet::~WaitSet() {
  for (const int fd : {wait_fd_, timer_fd_, wake_fd_}) {
    if (fd >= 0) close(fd);
  }
}

bool WaitSet::arm(std::int64_t most_us) {
  std::int64_t sleep_us = -1;
  if (pm_.before_select(sleep_us) != 0) return false;
  is_armed_ = true;
  if (most_us >= 0 && (sleep_us < 0 || sleep_us > most_us)) sleep_us = most_us;
  itimerspec time{};
  if (sleep_us >= 0) {
    time.it_value.tv_sec = sleep_us / 1'000'000;
    time.it_value.tv_nsec = sleep_us % 1'000'000 * 1000 + 1;  // 0 would disarm it
  }
  timerfd_settime(timer_fd_, 0, &time, nullptr);
  return true;
}

void WaitSet::after_sleep() {
  is_armed_ = false;
  pm_.after_select();
  drain(timer_fd_);
  if (has_sleepers()) return wake();  // the sleeper has to arm again
  drain(wake_fd_);
}

void WaitSet::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_fd_, &one, sizeof one);
}

bool WaitSet::begin_sleep(std::int64_t most_us, ContextState as, pm::Endpoint::Sleep& sleep) {
  if (pm_.prepare_sleep(most_us, as, sleep) != 0) return false;
  is_armed_ = true;
  add_sleeper();
  return true;
}

bool WaitSet::wait(pm::Endpoint::Sleep& sleep) const {
  std::array<pollfd, 3> news{sleep.news[0], sleep.news[1], pollfd{wake_fd_, POLLIN, 0}};
  sleep_until_event(news, sleep.timeout_us);
  std::copy_n(news.begin(), sleep.news.size(), sleep.news.begin());
  return news[2].revents != 0;
}

void WaitSet::end_sleep(const pm::Endpoint::Sleep& sleep, bool is_woken) {
  remove_sleeper();
  if (std::exchange(is_armed_, false)) pm_.end_sleep(sleep);  // otherwise another thread has
  if (is_woken && !has_sleepers()) drain(wake_fd_);
}

}  // namespace score::pm::fi
