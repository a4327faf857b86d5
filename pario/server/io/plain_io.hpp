// Carries out the requests of io_uring where the system call is refused: threads read and write
// files, and sockets are polled. One thread uses it.
#pragma once

#include "base/os/fd.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <liburing.h>
#include <mutex>
#include <poll.h>
#include <thread>
#include <vector>

namespace score::pario {

class PlainIo {
 public:
  // As in io_uring, the value is that of the system call, or -errno.
  struct Result {
    std::uint64_t user_data = 0;
    int value = 0;
  };

  PlainIo();
  // Waits for the requests that threads carry out. Other requests have no results.
  ~PlainIo();
  PlainIo(const PlainIo&) = delete;
  PlainIo& operator=(const PlainIo&) = delete;

  // Returns a request to fill in, for example by io_uring_prep_recv(). It knows the requests that
  // Ring's users make. Only regular files are read and written.
  io_uring_sqe* next() { return &prepared_.emplace_back(); }

  // Starts all requests, waits for at least one result, at most `timeout_us` (less than 0: for
  // ever), and adds all available results. A signal ends the wait. Returns an errno value.
  int turn(std::int64_t timeout_us, std::vector<Result>& results);

 private:
  struct Timeout {
    std::int64_t due_us = 0;
    std::uint64_t user_data = 0;
  };

  void start(const io_uring_sqe& request, std::vector<Result>& results);
  void remove_poll(const io_uring_sqe& request, std::vector<Result>& results);
  int wait(std::int64_t timeout_us);
  void collect(std::vector<Result>& results);
  void take_done(std::vector<Result>& results);
  void work();

  std::deque<io_uring_sqe> prepared_;
  std::vector<io_uring_sqe> waiting_;  // for their descriptor
  std::vector<Timeout> timeouts_;
  std::vector<pollfd> polled_;  // event_, then those of waiting_
  UniqueFd event_;              // is readable when done_ is not empty
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopped_ = false;
  std::deque<io_uring_sqe> jobs_;
  std::vector<Result> done_;
  std::vector<std::thread> threads_;
};

}  // namespace score::pario
