#include "pario/server/io/plain_io.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace score::pario {
namespace {

constexpr int kThreads = 8;  // requests that the disk works on at once
constexpr std::int64_t kSecondUs = 1'000'000;

std::int64_t now_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecondUs + now.tv_nsec / 1'000;
}

template <typename T>
T* pointer(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

int result_of(ssize_t returned) {
  return returned < 0 ? -errno : static_cast<int>(returned);
}

// Waits for the disk.
int use_file(const io_uring_sqe& request) {
  const auto offset = static_cast<off_t>(request.off);
  if (request.opcode == IORING_OP_FSYNC) return result_of(::fdatasync(request.fd));
  char* memory = pointer<char>(request.addr);
  return result_of(request.opcode == IORING_OP_READ
                       ? ::pread(request.fd, memory, request.len, offset)
                       : ::pwrite(request.fd, memory, request.len, offset));
}

// Does not wait. MSG_WAITALL is not possible here; the caller repeats a part.
int use_socket(const io_uring_sqe& request) {
  const int flags = (static_cast<int>(request.msg_flags) & ~MSG_WAITALL) | MSG_DONTWAIT;
  if (request.opcode == IORING_OP_RECV) {
    return result_of(::recv(request.fd, pointer<char>(request.addr), request.len, flags));
  }
  if (request.opcode == IORING_OP_SENDMSG) {
    return result_of(::sendmsg(request.fd, pointer<msghdr>(request.addr), flags));
  }
  return result_of(::accept4(request.fd, pointer<sockaddr>(request.addr),
                             pointer<socklen_t>(request.addr2),
                             static_cast<int>(request.accept_flags)));
}

short events_of(const io_uring_sqe& request) {
  if (request.opcode == IORING_OP_POLL_ADD) return static_cast<short>(request.poll32_events);
  return request.opcode == IORING_OP_SENDMSG ? POLLOUT : POLLIN;
}

}  // namespace

PlainIo::PlainIo() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  // Signals end the loop, so its thread must receive them.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PlainIo::~PlainIo() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

int PlainIo::turn(std::int64_t timeout_us, std::vector<Result>& results) {
  for (const io_uring_sqe& request : std::exchange(prepared_, {})) start(request, results);
  if (const int error = wait(results.empty() ? timeout_us : 0)) return error;
  collect(results);
  return 0;
}

void PlainIo::start(const io_uring_sqe& request, std::vector<Result>& results) {
  switch (request.opcode) {
    case IORING_OP_READ:
    case IORING_OP_WRITE:
    case IORING_OP_FSYNC: {
      const std::scoped_lock lock(mutex_);
      jobs_.push_back(request);
      changed_.notify_one();
      return;
    }
    case IORING_OP_TIMEOUT: {
      const auto* time = pointer<__kernel_timespec>(request.addr);
      const std::int64_t length_us = time->tv_sec * kSecondUs + time->tv_nsec / 1'000;
      timeouts_.push_back({now_us() + length_us, request.user_data});
      return;
    }
    case IORING_OP_POLL_REMOVE:
      return remove_poll(request, results);
    case IORING_OP_SENDMSG:  // there is usually room
      if (const int value = use_socket(request); value != -EAGAIN) {
        results.push_back({request.user_data, value});
        return;
      }
      break;
    default:
      break;
  }
  waiting_.push_back(request);
}

void PlainIo::remove_poll(const io_uring_sqe& request, std::vector<Result>& results) {
  const auto found = std::ranges::find(waiting_, request.addr, &io_uring_sqe::user_data);
  if (found == waiting_.end()) return;
  results.push_back({found->user_data, -ECANCELED});
  waiting_.erase(found);
}

int PlainIo::wait(std::int64_t timeout_us) {
  for (const Timeout& timeout : timeouts_) {
    const std::int64_t left = std::max(timeout.due_us - now_us(), std::int64_t{0});
    if (timeout_us < 0 || left < timeout_us) timeout_us = left;
  }
  polled_.assign(1, {event_.get(), POLLIN, 0});
  for (const io_uring_sqe& request : waiting_) {
    polled_.push_back({request.fd, events_of(request), 0});
  }
  const timespec time{timeout_us / kSecondUs, timeout_us % kSecondUs * 1'000};
  const int found =
      ::ppoll(polled_.data(), polled_.size(), timeout_us < 0 ? nullptr : &time, nullptr);
  if (found < 0) polled_.clear();
  return found < 0 && errno != EINTR ? errno : 0;
}

void PlainIo::collect(std::vector<Result>& results) {
  if (polled_.empty()) return;  // after a signal
  if (polled_[0].revents != 0) take_done(results);
  std::size_t at = 0;
  std::erase_if(waiting_, [&](const io_uring_sqe& request) {
    const short events = polled_[++at].revents;
    if (events == 0) return false;
    const int value = request.opcode == IORING_OP_POLL_ADD ? events : use_socket(request);
    if (value == -EAGAIN) return false;
    results.push_back({request.user_data, value});
    return true;
  });
  const std::int64_t now = now_us();
  std::erase_if(timeouts_, [&](const Timeout& timeout) {
    if (timeout.due_us > now) return false;
    results.push_back({timeout.user_data, -ETIME});
    return true;
  });
}

void PlainIo::take_done(std::vector<Result>& results) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(event_.get(), &count, sizeof count);
  const std::scoped_lock lock(mutex_);
  results.insert(results.end(), done_.begin(), done_.end());
  done_.clear();
}

void PlainIo::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_stopped_ || !jobs_.empty(); });
    if (is_stopped_) return;
    const io_uring_sqe job = jobs_.front();
    jobs_.pop_front();
    lock.unlock();
    const int value = use_file(job);
    lock.lock();
    done_.push_back({job.user_data, value});
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
  }
}

}  // namespace score::pario
