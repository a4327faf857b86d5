#include "pmlib/devices/xdp_device.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace score::pm {

namespace {

std::uint32_t load(std::uint32_t* index) {
  return std::atomic_ref(*index).load(std::memory_order_acquire);
}

void store(std::uint32_t* index, std::uint32_t value) {
  std::atomic_ref(*index).store(value, std::memory_order_release);
}

}  // namespace

std::unique_ptr<XdpDevice> XdpDevice::attach(XdpParts parts, int& error) {
  std::unique_ptr<XdpDevice> device(new XdpDevice(parts));
  error = device->map();
  if (error != 0) device.reset();
  return device;
}

XdpDevice::~XdpDevice() {
  if (memory_ != nullptr) munmap(memory_, parts_.shape.bytes());
  close_parts(parts_);
}

// Continues at the ring positions of the previous user of the socket.
int XdpDevice::map() {
  if (const int error = rings_.map(parts_.socket); error != 0) return error;
  const std::size_t bytes = parts_.shape.bytes();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, parts_.memory, 0);
  if (memory == MAP_FAILED) return errno;
  memory_ = static_cast<std::byte*>(memory);
  received_ = load(rings_.received.consumer);
  sent_ = load(rings_.sent.producer);
  return 0;
}

// The kernel sends only in this call, at most kBatch frames. After a frame that it dropped, it
// continues only with the next call.
void XdpDevice::push() {
  for (std::size_t i = 0; i <= kXdpSend / kBatch; ++i) {
    is_waiting_ = sendto(parts_.socket, nullptr, 0, MSG_DONTWAIT, nullptr, 0) < 0;
    if (!is_waiting_) return;
  }
}

// A place is free again when the kernel has taken its frame from the ring, because the kernel
// copies. The entries of the ring of completed frames are only removed.
std::size_t XdpDevice::send(const PeerAddress& to, std::span<const FrameOut> frames) {
  store(rings_.completed.consumer, load(rings_.completed.producer));
  const std::uint32_t room = kXdpSend - (sent_ - load(rings_.sent.consumer));
  const std::size_t count = std::min<std::size_t>(frames.size(), room);
  const EthernetHeader header = ethernet_header(to, parts_.shape.own);
  for (const FrameOut& frame : frames.first(count)) {
    const std::uint64_t place = std::uint64_t{kXdpReceive + sent_ % kXdpSend} * parts_.shape.space;
    std::byte* start = memory_ + place;
    std::memcpy(start, header.data(), header.size());
    const std::byte* end = put_frame(frame, start + header.size());
    rings_.sent.at(sent_++) = {place, static_cast<std::uint32_t>(end - start), 0};
  }
  store(rings_.sent.producer, sent_);
  push();
  return count;
}

std::size_t XdpDevice::receive(FrameSink& sink, std::size_t limit) {
  if (is_waiting_) [[unlikely]]
    push();
  const std::uint32_t arrived = load(rings_.received.producer) - received_;
  if (arrived == 0) return 0;
  // Places are used in turn as long as no frame was dropped. So this place is probably the right
  // one, and its cache line arrives from the processor that has filled it together with the ring's
  // entry.
  const std::uint64_t space = parts_.shape.space;
  __builtin_prefetch(memory_ + received_ % kXdpReceive * space + kXdpFrameAt);
  const auto count = static_cast<std::uint32_t>(std::min<std::size_t>({arrived, limit, kBatch}));
  std::uint32_t freed = load(rings_.free.producer);
  for (std::uint32_t i = 0; i < count; ++i) {
    const xdp_desc& frame = rings_.received.at(received_ + i);
    if (frame.addr + frame.len <= kXdpReceive * space) {
      take_frame({memory_ + frame.addr, frame.len}, sink);
    }
    rings_.free.at(freed++) = frame.addr / space * space;
  }
  received_ += count;
  store(rings_.received.consumer, received_);
  store(rings_.free.producer, freed);
  return count;
}

}  // namespace score::pm
