// This file implements pm.h over Endpoint. No exception leaves it: only allocations at opening can
// fail, and they are handled.
#include "pmlib/include/pm.h"

#include "pmlib/endpoint/endpoint.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

using namespace score::pm;

struct pm_context {
  std::unique_ptr<Endpoint> endpoint;
};

namespace {

constexpr std::int64_t kRetryUs = 200;  // between attempts to get a free buffer

// pm_message.internal holds the ticket, a flag for shared memory, and then the fields of a Large.
static_assert(8 + sizeof(LargeHeader) <= sizeof(pm_message::internal));
static_assert(sizeof(pm_statistics) == sizeof(Counters));

RegionName name_of(const pm_handle& handle, std::uint64_t offset) {
  return {handle.region, handle.nonce, handle.offset + offset};
}

bool fits(const pm_handle& handle, std::uint64_t offset, std::uint64_t length) {
  return offset <= handle.length && length <= handle.length - offset && length <= UINT32_MAX;
}

int open_endpoint(pm_context** context, std::unique_ptr<Endpoint> endpoint, int error) {
  if (!endpoint) return error != 0 ? error : EINVAL;
  *context = new (std::nothrow) pm_context{std::move(endpoint)};
  return *context != nullptr ? PM_SUCCESS : ENOMEM;
}

// Returns true for own memory that is registered under this handle.
bool is_registered(const pm_context* context, const pm_handle& handle) {
  const Segment& segment = context->endpoint->segment();
  if (handle.region >= segment.geometry().regions) return false;
  const RegionEntry& region = segment.region(handle.region);
  return region.references > 0 && region.nonce == handle.nonce;
}

[[gnu::noinline]] void describe_large(pm_message& message, const ReceivedMessage& received) {
  LargeHeader large;
  std::memcpy(&large, received.bytes.data(), sizeof large);
  std::memcpy(&message.internal[1], received.bytes.data(), sizeof large);
  message.flags = PM_LARGE;
  message.data = nullptr;
  message.length = large.length;
}

template <class Transfer>
int transfer(const pm_context* context, const pm_handle* remote, std::uint64_t remote_offset,
             const pm_handle* local, std::uint64_t local_offset, std::uint64_t length,
             Transfer start) {
  if (!fits(*remote, remote_offset, length) || !fits(*local, local_offset, length) ||
      !is_registered(context, *local)) {
    return PM_EINVAL;
  }
  return start(local->offset + local_offset, name_of(*remote, remote_offset),
               static_cast<std::uint32_t>(length));
}

}  // namespace

extern "C" {

int pm_open(pm_context** context) {
  try {
    *context = nullptr;
    int error = 0;
    auto endpoint = Endpoint::open_inherited(error);
    const char* path = std::getenv("PM_ADDRESS_FILE");
    const char* rank = std::getenv("PM_RANK");
    if (!endpoint && error == ENOENT && path != nullptr && rank != nullptr) {
      return pm_open_file(path, static_cast<std::uint32_t>(std::strtoul(rank, nullptr, 10)),
                          context, nullptr, 0);
    }
    return open_endpoint(context, std::move(endpoint), error);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int pm_open_file(const char* path, uint32_t rank, pm_context** context, char* message,
                 size_t message_bytes) {
  try {
    *context = nullptr;
    int error = 0;
    std::string text;
    auto endpoint = Endpoint::open_file(path, rank, error, text);
    if (message != nullptr && message_bytes > 0) {
      const std::size_t n = std::min(text.size(), message_bytes - 1);
      std::memcpy(message, text.data(), n);
      message[n] = '\0';
    }
    return open_endpoint(context, std::move(endpoint), error);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

void pm_close(pm_context* context) {
  delete context;
}

uint32_t pm_self(const pm_context* context) {
  return context->endpoint->rank();
}

uint32_t pm_size(const pm_context* context) {
  return context->endpoint->size();
}

uint32_t pm_mtu(const pm_context* context, uint32_t dest) {
  return context->endpoint->message_bytes(dest);
}

// --- messages ----------------------------------------------------------------------------------

int pm_get_send_buffer(pm_context* context, uint32_t dest, void** buffer, size_t length) {
  if (length > UINT32_MAX) return PM_EMSGSIZE;
  std::byte* bytes = nullptr;
  const int error =
      context->endpoint->get_send_buffer(dest, static_cast<std::uint32_t>(length), &bytes);
  if (error == 0) *buffer = bytes;
  return error;
}

int pm_send(pm_context* context) {
  context->endpoint->end_silence();
  return context->endpoint->send();
}

void pm_cancel(pm_context* context) {
  context->endpoint->cancel_send();
}

int pm_send_message(pm_context* context, uint32_t dest, const void* data, size_t length) {
  void* buffer = nullptr;
  int error = pm_get_send_buffer(context, dest, &buffer, length);
  for (; error == PM_ENOBUFS; error = pm_get_send_buffer(context, dest, &buffer, length)) {
    context->endpoint->wait(kRetryUs);
  }
  if (error != 0) return error;
  if (length > 0) std::memcpy(buffer, data, length);
  for (error = pm_send(context); error == PM_ENOBUFS; error = pm_send(context)) {
    context->endpoint->wait(kRetryUs);
  }
  return error;
}

int pm_send_datagram(pm_context* context, const uint32_t* ranks, size_t count, const void* data,
                     size_t length) {
  context->endpoint->end_silence();
  return context->endpoint->send_datagram({ranks, count},
                                          {static_cast<const std::byte*>(data), length});
}

int pm_receive(pm_context* context, pm_message* message) {
  ReceivedMessage received;
  int error = context->endpoint->receive(received);
  if (error == PM_EAGAIN && context->endpoint->rest_if_silent()) {
    error = context->endpoint->receive(received);
  }
  message->source = received.source;
  if (error != 0) return error;
  context->endpoint->end_silence();
  message->internal[0] = words_of(received.ticket, received.by_shmem ? 1 : 0);
  message->flags = received.kind == FrameKind::Datagram ? PM_DATAGRAM : 0;
  message->data = received.bytes.data();
  message->length = received.bytes.size();
  if (received.kind == FrameKind::Large) [[unlikely]]
    describe_large(*message, received);
  return PM_SUCCESS;
}

void pm_release_receive_buffer(pm_context* context, const pm_message* message) {
  ReceivedMessage received;
  received.ticket = static_cast<std::uint32_t>(message->internal[0]);
  received.by_shmem = message->internal[0] >> 32 != 0;
  context->endpoint->release(received);
}

// --- remote memory -----------------------------------------------------------------------------

int pm_register(pm_context* context, void* address, uint64_t length, pm_handle* handle) {
  std::uint32_t region = 0;
  std::uint64_t offset = 0;
  const int error = context->endpoint->add_region(address, length, region, offset);
  if (error != 0) return error;
  *handle = {region, context->endpoint->segment().region(region).nonce, offset, length};
  return PM_SUCCESS;
}

int pm_deregister(pm_context* context, const pm_handle* handle) {
  if (!is_registered(context, *handle)) return PM_EINVAL;
  return context->endpoint->drop_region(handle->region);
}

void pm_set_cache(pm_context* context, unsigned percent) {
  context->endpoint->regions().set_lazy_percent(percent);
}

int pm_write(pm_context* context, uint32_t dest, const pm_handle* remote, uint64_t remote_offset,
             const pm_handle* local, uint64_t local_offset, uint64_t length, pm_op* op) {
  return transfer(context, remote, remote_offset, local, local_offset, length,
                  [&](std::uint64_t offset, RegionName name, std::uint32_t bytes) {
                    return context->endpoint->write(dest, local->region, offset, name, bytes, *op);
                  });
}

int pm_read(pm_context* context, uint32_t dest, const pm_handle* remote, uint64_t remote_offset,
            const pm_handle* local, uint64_t local_offset, uint64_t length, pm_op* op) {
  return transfer(context, remote, remote_offset, local, local_offset, length,
                  [&](std::uint64_t offset, RegionName name, std::uint32_t bytes) {
                    return context->endpoint->read(dest, local->region, offset, name, bytes, *op);
                  });
}

int pm_test(pm_context* context, pm_op op) {
  return context->endpoint->test(op);
}

int pm_send_large(pm_context* context, uint32_t dest, const pm_handle* local, uint64_t local_offset,
                  uint64_t length, pm_op* op) {
  if (!fits(*local, local_offset, length) || !is_registered(context, *local)) return PM_EINVAL;
  return context->endpoint->announce(dest, local->region, local->offset + local_offset, length,
                                     *op);
}

int pm_fetch(pm_context* context, const pm_message* message, const pm_handle* local,
             uint64_t local_offset, pm_op* op) {
  if ((message->flags & PM_LARGE) == 0 || !fits(*local, local_offset, message->length) ||
      !is_registered(context, *local)) {
    return PM_EINVAL;
  }
  LargeHeader large;
  std::memcpy(static_cast<void*>(&large), &message->internal[1], sizeof large);
  return context->endpoint->fetch(message->source, large, local->region,
                                  local->offset + local_offset, *op);
}

// --- progress and waiting ----------------------------------------------------------------------

int pm_progress(pm_context* context) {
  return context->endpoint->progress() ? 1 : 0;
}

int pm_wait(pm_context* context, int64_t timeout_us) {
  return context->endpoint->wait(timeout_us);
}

int pm_quiet(const pm_context* context) {
  return context->endpoint->is_quiet() ? 1 : 0;
}

int pm_get_fd(const pm_context* context) {
  return context->endpoint->poll_fd();
}

int pm_before_select(pm_context* context, int64_t* timeout_us) {
  return context->endpoint->before_select(*timeout_us);
}

void pm_after_select(pm_context* context) {
  context->endpoint->after_select();
}

void pm_idle(pm_context* context) {
  context->endpoint->declare_idle(true);
}

void pm_busy(pm_context* context) {
  context->endpoint->declare_idle(false);
}

// --- save, restore, information ----------------------------------------------------------------

size_t pm_context_bytes(const pm_context* context) {
  return context->endpoint->image_bytes();
}

int pm_save(const pm_context* context, void* image, size_t bytes) {
  return context->endpoint->save({static_cast<std::byte*>(image), bytes});
}

int pm_restore(pm_context* context, const void* image, size_t bytes) {
  return context->endpoint->restore({static_cast<const std::byte*>(image), bytes});
}

int pm_rebind(pm_context* context, const pm_handle* handle, void* address) {
  return context->endpoint->regions().rebind(handle->region, address);
}

void pm_get_statistics(const pm_context* context, pm_statistics* statistics, size_t bytes) {
  std::memcpy(statistics, &context->endpoint->counters(), std::min(bytes, sizeof(Counters)));
}

const char* pm_strerror(int error) {
  switch (error) {
    case PM_SUCCESS:
      return "success";
    case PM_EAGAIN:
      return "no message";
    case PM_EINPROGRESS:
      return "operation still running";
    case PM_ENOBUFS:
      return "no free buffer; call pm_progress() and try again";
    case PM_EBUSY:
      return "in use";
    case PM_EINVAL:
      return "invalid argument";
    case PM_EMSGSIZE:
      return "message too long";
    case PM_EACCES:
      return "memory not registered";
    case PM_EPEER:
      return "peer has died or left";
    case PM_ETIMEDOUT:
      return "timed out";
    case ENOENT:
      return "no context given to this process";
    case ENOSPC:
      return "table or buffer too small";
    case ENODEV:
      return "no network device reaches these peers";
    case ENOSYS:
      return "libfabric or its provider is missing";
    default:
      return "system error, see errno";
  }
}

uint32_t pm_version(void) {
  return PM_VERSION_MAJOR << 16 | PM_VERSION_MINOR;
}

}  // extern "C"
