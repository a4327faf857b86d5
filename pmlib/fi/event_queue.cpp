// The provider completes every call before it returns, so it never writes an event of its own. All
// events that an application reads are its own, written perhaps to wake a waiting thread.
#include "pmlib/fi/event_queue.hpp"

#include "pmlib/fi/objects/no_ops.hpp"
#include "pmlib/fi/objects/objects.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace score::pm::fi {

namespace {

int close_events(fid* f) {
  delete &object_of<EventQueue>(f);
  return 0;
}

int control_events(fid* f, int command, void* argument) {
  if (argument == nullptr) return -FI_EINVAL;
  const EventQueue& queue = object_of<EventQueue>(f);
  if (!queue.can_wait()) return -FI_ENODATA;
  if (command == FI_GETWAIT) {
    *static_cast<int*>(argument) = queue.wait_fd();
    return 0;
  }
  if (command != FI_GETWAITOBJ) return -FI_ENOSYS;
  *static_cast<fi_wait_obj*>(argument) = FI_WAIT_FD;
  return 0;
}

ssize_t read_event(fid_eq* eq, std::uint32_t* event, void* buffer, std::size_t length,
                   std::uint64_t flags) {
  return static_cast<EventQueue*>(eq)->read(event, {static_cast<std::byte*>(buffer), length},
                                            (flags & FI_PEEK) != 0);
}

ssize_t wait_event(fid_eq* eq, std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                   std::uint64_t flags) {
  auto& queue = *static_cast<EventQueue*>(eq);
  if (!queue.can_wait()) return -FI_EINVAL;
  const std::uint64_t deadline = deadline_of(timeout);
  for (;;) {
    const ssize_t n = read_event(eq, event, buffer, length, flags);
    if (n != -FI_EAGAIN || !queue.wait_until(deadline)) return n;
  }
}

ssize_t read_event_error(fid_eq*, fi_eq_err_entry*, std::uint64_t) {
  return -FI_EAGAIN;
}

ssize_t write_event(fid_eq* eq, std::uint32_t event, const void* buffer, std::size_t length,
                    std::uint64_t) {
  const auto* bytes = static_cast<const std::byte*>(buffer);
  return static_cast<EventQueue*>(eq)->write(event, {bytes, length});
}

const char* event_error_text(fid_eq*, int error, const void*, char*, std::size_t) {
  return std::strerror(error);
}

fi_ops events_fid_ops = {sizeof(fi_ops), close_events, no_op,  control_events,
                         no_op,          nullptr,      nullptr};
fi_ops_eq events_ops = {sizeof(fi_ops_eq), read_event, read_event_error,
                        write_event,       wait_event, event_error_text};

}  // namespace

int EventQueue::open(const fi_eq_attr* attr, fid_eq** queue, void* context) {
  const fi_wait_obj wait = attr != nullptr ? attr->wait_obj : FI_WAIT_NONE;
  if (wait != FI_WAIT_NONE && wait != FI_WAIT_UNSPEC && wait != FI_WAIT_FD &&
      wait != FI_WAIT_YIELD) {
    return -FI_ENOSYS;
  }
  auto* const made = new (std::nothrow) EventQueue(context);
  if (made == nullptr) return -FI_ENOMEM;
  if (wait != FI_WAIT_NONE) made->fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wait != FI_WAIT_NONE && made->fd_ < 0) {
    const int error = errno;
    delete made;
    return -error;
  }
  *queue = made;
  return 0;
}

EventQueue::EventQueue(void* context)
    : fid_eq{{FI_CLASS_EQ, context, &events_fid_ops}, &events_ops} {}

EventQueue::~EventQueue() {
  if (fd_ >= 0) ::close(fd_);
}

ssize_t EventQueue::read(std::uint32_t* event, std::span<std::byte> to, bool is_peek) {
  if (event == nullptr) return -FI_EINVAL;
  const std::lock_guard lock(mutex_);
  if (events_.empty()) return -FI_EAGAIN;
  const Event& first = events_.front();
  if (to.size() < first.bytes.size()) return -FI_ETOOSMALL;
  if (to.data() == nullptr && !first.bytes.empty()) return -FI_EINVAL;
  *event = first.number;
  std::copy(first.bytes.begin(), first.bytes.end(), to.begin());
  const auto n = static_cast<ssize_t>(first.bytes.size());
  if (is_peek) return n;
  events_.pop_front();
  std::uint64_t drained = 0;
  if (events_.empty() && fd_ >= 0) {
    [[maybe_unused]] const ssize_t got = ::read(fd_, &drained, sizeof drained);
  }
  return n;
}

ssize_t EventQueue::write(std::uint32_t event, std::span<const std::byte> bytes) {
  if (bytes.data() == nullptr && !bytes.empty()) return -FI_EINVAL;
  const std::lock_guard lock(mutex_);
  if (events_.size() >= kMostEvents) return -FI_EAGAIN;
  events_.push_back({event, {bytes.begin(), bytes.end()}});
  const std::uint64_t one = 1;
  if (fd_ >= 0) {
    [[maybe_unused]] const ssize_t n = ::write(fd_, &one, sizeof one);
  }
  return static_cast<ssize_t>(bytes.size());
}

bool EventQueue::has_news() {
  const std::lock_guard lock(mutex_);
  return !events_.empty();
}

bool EventQueue::wait_until(std::uint64_t deadline_us) const {
  const std::uint64_t now = Link::now_us();
  if (now >= deadline_us) return false;
  constexpr std::uint64_t kMostMs = 1'000'000;
  int timeout_ms = -1;
  if (deadline_us != UINT64_MAX) {
    timeout_ms = static_cast<int>(std::min((deadline_us - now) / 1000 + 1, kMostMs));
  }
  pollfd ready{fd_, POLLIN, 0};
  poll(&ready, 1, timeout_ms);
  return true;
}

}  // namespace score::pm::fi
