// Fabric and event queue: the objects that have little to do here.
#include "pmlib/fi/fabric.hpp"

#include "pmlib/fi/objects/no_ops.hpp"
#include "pmlib/fi/objects/objects.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace score::pm::fi {

namespace {

int close_fabric(fid* f) {
  delete &object_of<Fabric>(f);
  return 0;
}

int close_events(fid* f) {
  delete &object_of<EventQueue>(f);
  return 0;
}

int open_in_fabric(fid_fabric*, fi_info* info, fid_domain** domain, void* context) {
  return open_domain(*info, domain, context);
}

int open_in_fabric2(fid_fabric*, fi_info* info, fid_domain** domain, std::uint64_t, void* context) {
  return open_domain(*info, domain, context);
}

int open_events(fid_fabric*, fi_eq_attr* attr, fid_eq** eq, void* context) {
  if (attr != nullptr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC) {
    return -FI_ENOSYS;
  }
  *eq = new (std::nothrow) EventQueue(context);
  return *eq != nullptr ? 0 : -FI_ENOMEM;
}

int try_wait(fid_fabric*, fid** fids, int count) {
  for (int i = 0; i < count; ++i) {
    int error = 0;
    if (fids[i]->fclass == FI_CLASS_CQ) error = object_of<Cq>(fids[i]).try_wait();
    if (fids[i]->fclass == FI_CLASS_CNTR) error = object_of<Counter>(fids[i]).try_wait();
    if (error != 0) return error;
  }
  return 0;
}

ssize_t read_event(fid_eq* eq, std::uint32_t* event, void* buffer, std::size_t length,
                   std::uint64_t flags) {
  return static_cast<EventQueue*>(eq)->read(event, buffer, length, flags);
}

ssize_t wait_event(fid_eq* eq, std::uint32_t* event, void* buffer, std::size_t length, int,
                   std::uint64_t flags) {
  return read_event(eq, event, buffer, length, flags);
}

ssize_t read_event_error(fid_eq*, fi_eq_err_entry*, std::uint64_t) {
  return -FI_EAGAIN;
}

ssize_t write_event(fid_eq* eq, std::uint32_t event, const void* buffer, std::size_t length,
                    std::uint64_t) {
  return static_cast<EventQueue*>(eq)->write(event, buffer, length);
}

const char* event_error_text(fid_eq*, int error, const void*, char*, std::size_t) {
  return std::strerror(error);
}

fi_ops fabric_fid_ops = {sizeof(fi_ops), close_fabric, no_op, no_op, no_op, nullptr, nullptr};
fi_ops_fabric fabric_ops = {
    sizeof(fi_ops_fabric), open_in_fabric, no_op, open_events, no_op, try_wait, open_in_fabric2};
fi_ops events_fid_ops = {sizeof(fi_ops), close_events, no_op, no_op, no_op, nullptr, nullptr};
fi_ops_eq events_ops = {sizeof(fi_ops_eq), read_event, read_event_error,
                        write_event,       wait_event, event_error_text};

}  // namespace

int Fabric::open(fi_fabric_attr* attr, fid_fabric** fabric, void* context) {
  auto* made = new (std::nothrow) Fabric();
  if (made == nullptr) return -FI_ENOMEM;
  made->fid = {FI_CLASS_FABRIC, context, &fabric_fid_ops};
  made->ops = &fabric_ops;
  made->api_version = attr->api_version;
  *fabric = made;
  return 0;
}

EventQueue::EventQueue(void* context)
    : fid_eq{{FI_CLASS_EQ, context, &events_fid_ops}, &events_ops} {}

ssize_t EventQueue::read(std::uint32_t* event, void* buffer, std::size_t length,
                         std::uint64_t flags) {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) return -FI_EAGAIN;
  const Event& first = events_.front();
  if (length < first.bytes.size()) return -FI_ETOOSMALL;
  *event = first.number;
  std::copy(first.bytes.begin(), first.bytes.end(), static_cast<std::byte*>(buffer));
  const auto n = static_cast<ssize_t>(first.bytes.size());
  if ((flags & FI_PEEK) == 0) events_.pop_front();
  return n;
}

ssize_t EventQueue::write(std::uint32_t event, const void* buffer, std::size_t length) {
  const std::lock_guard lock(mutex_);
  const auto* bytes = static_cast<const std::byte*>(buffer);
  events_.push_back({event, {bytes, bytes + length}});
  return static_cast<ssize_t>(length);
}

}  // namespace score::pm::fi
