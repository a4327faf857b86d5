// Event queues carry no completions, only the events that the application writes.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <sys/types.h>
#include <vector>

namespace score::pm::fi {

// Any thread may call these functions. They return 0, a number of bytes or a negative errno.
class EventQueue : public fid_eq {
 public:
  using Base = fid_eq;
  static constexpr std::size_t kMostEvents = 4096;  // chosen; then -FI_EAGAIN

  // Behaves as fi_eq_open(3), with the wait objects none, unspecified, FD and yield.
  static int open(const fi_eq_attr* attr, fid_eq** queue, void* context);
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  ssize_t read(std::uint32_t* event, std::span<std::byte> to, bool is_peek);
  ssize_t write(std::uint32_t event, std::span<const std::byte> bytes);
  bool has_news();

  bool can_wait() const { return fd_ >= 0; }

  // Returns a descriptor that is readable while there are events; -1 without a wait object.
  int wait_fd() const { return fd_; }

  // Sleeps until there is an event and may return early. Returns false at once if the time
  // (Link::now_us()) has passed.
  bool wait_until(std::uint64_t deadline_us) const;

 private:
  explicit EventQueue(void* context);

  struct Event {
    std::uint32_t number;
    std::vector<std::byte> bytes;
  };

  std::mutex mutex_;
  std::deque<Event> events_;
  int fd_ = -1;
};

}  // namespace score::pm::fi
