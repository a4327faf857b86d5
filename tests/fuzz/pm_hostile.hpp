// The fuzz targets of PM's frames share this code: a context with small limits, a link that
// delivers what the fuzzer generates, and frames that fit the context.
#pragma once

#include "pmlib/channel/channel.hpp"
#include "tests/model/sim_network.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

namespace score::pm::fuzz {

inline void require(bool promise) {
  if (!promise) std::abort();
}

class InputDevice final : public PacketDevice {
 public:
  InputDevice() : fd_(eventfd(0, EFD_CLOEXEC)) {}

  ~InputDevice() override { close(fd_); }

  std::vector<std::vector<std::byte>> frames;

  std::size_t send(const PeerAddress&, std::span<const FrameOut> out) override {
    return out.size();
  }

  std::size_t receive(FrameSink& sink, std::size_t) override {
    for (const auto& frame : frames) sink.on_frame(frame);
    const std::size_t n = frames.size();
    frames.clear();
    return n;
  }

  int poll_fd() const override { return fd_; }

  std::size_t frame_bytes() const override { return 1024; }

 private:
  int fd_;
};

class StepClock final : public JobClock {
 public:
  Microseconds now() override { return now_ += 100; }

 private:
  Microseconds now_ = 0;
};

inline void make_fit(std::vector<std::byte>& frame, FrameAuth auth) {
  if (frame.size() < sizeof(FrameHeader)) return;
  FrameHeader h;
  std::memcpy(&h, frame.data(), sizeof h);
  h.magic = kFrameMagic;
  h.version = kFrameVersion;
  h.flags %= 2;
  h.reserved = 0;
  h.channel = 1;
  h.key = 7;
  h.generation = 1;
  h.destination = 0;
  h.source %= 2;
  h.number %= 8;
  h.word %= 8;
  h.length = static_cast<std::uint16_t>(frame.size() - sizeof h);
  if (auth == FrameAuth::Tag) {
    seal_by_tag(h, 7, {}, std::span(frame).subspan(sizeof h));
  } else {
    seal(h, crc32c(0, frame.data() + sizeof h, h.length));
  }
  std::memcpy(frame.data(), &h, sizeof h);
}

// Region 0 is registered; region 1 is only remembered.
class HostileContext {
 public:
  explicit HostileContext(FrameAuth auth, std::uint32_t links = 1)
      : layout_(*SegmentLayout::of(geometry(links))), memory_(layout_.total) {
    segment = format_segment(memory_.data(), geometry(links), layout_,
                             {.key = 7, .generation = 1, .channel = 1, .window = 8, .auth = auth});
    segment.region(0) = {reinterpret_cast<std::uintptr_t>(open_.data()), open_.size(), 5, 1, 0};
    segment.region(1) = {reinterpret_cast<std::uintptr_t>(closed_.data()), closed_.size(), 5, 0, 0};
  }

  Segment segment;

  void check() {
    require(validate_image(memory_.span()) == 0);
    for (const std::byte b : closed_) require(b == std::byte{0xee});
  }

 private:
  static Geometry geometry(std::uint32_t links) {
    Geometry g;
    g.size = 2;
    g.payload_bytes = 256;
    g.send_buffers = g.receive_buffers = g.descriptors = 4;
    g.regions = g.operations = 2;
    g.inbox_entries = 8;
    g.pool_buffers = 1;
    g.pool_buffer_bytes = 256;
    g.links = links;
    return g;
  }

  SegmentLayout layout_;
  model::SegmentMemory memory_;
  std::vector<std::byte> open_ = std::vector<std::byte>(512);
  std::vector<std::byte> closed_ = std::vector<std::byte>(512, std::byte{0xee});
};

// Puts a message and a write to rank 1 in flight.
inline OperationId send_something(Channel& channel) {
  std::byte* buffer = nullptr;
  OperationId op = 0;
  if (channel.get_send_buffer(1, 10, &buffer) == 0) channel.send();
  channel.memory().write(1, 0, 0, {0, 5, 0}, 300, op);
  return op;
}

// Calls `take(frame, choice)` for each frame of the input. Two bytes precede a frame: half its
// length, and the choice. A choice divisible by 4 leaves the frame unchanged.
template <class Take>
void for_each_frame(const std::uint8_t* data, std::size_t size, FrameAuth auth, Take take) {
  for (std::size_t at = 0; at + 2 <= size;) {
    const std::size_t length = std::min<std::size_t>(data[at] * 2u, size - at - 2);
    const auto* bytes = reinterpret_cast<const std::byte*>(data + at + 2);
    std::vector<std::byte> frame(bytes, bytes + length);
    const unsigned choice = data[at + 1];
    if (choice % 4 != 0) make_fit(frame, auth);
    at += 2 + length;
    take(std::move(frame), choice);
  }
}

}  // namespace score::pm::fuzz
