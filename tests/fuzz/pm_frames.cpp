// Frames from a hostile network against a live channel. Whatever arrives, memory that is not
// registered stays as it is, and the context stays a valid image.
//
// The input is a list of frames, each led by two bytes: how many bytes follow, and whether the
// header is made to fit this job, so that the fuzzer gets past key and checksum, or tag.
#include "pmlib/channel.hpp"
#include "tests/model/sim_network.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using namespace score::pm;  // NOLINT(google-build-using-namespace)

void require(bool promise) {
  if (!promise) std::abort();
}

class InputDevice final : public PacketDevice {
 public:
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

  int poll_fd() const override { return -1; }

  std::size_t frame_bytes() const override { return 1024; }
};

class StepClock final : public JobClock {
 public:
  Microseconds now() override { return now_ += 100; }

 private:
  Microseconds now_ = 0;
};

void make_fit(std::vector<std::byte>& frame, FrameAuth auth) {
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
  h.sequence %= 8;
  h.ack %= 8;
  h.length = static_cast<std::uint16_t>(frame.size() - sizeof h);
  if (auth == FrameAuth::Tag) {
    seal_by_tag(h, 7, {}, std::span(frame).subspan(sizeof h));
  } else {
    seal(h, crc32c(0, frame.data() + sizeof h, h.length));
  }
  std::memcpy(frame.data(), &h, sizeof h);
}

void receive_all(const std::uint8_t* data, std::size_t size, FrameAuth auth) {
  Geometry geometry;
  geometry.size = 2;
  geometry.payload_bytes = 256;
  geometry.send_slots = geometry.receive_slots = geometry.descriptors = 4;
  geometry.regions = geometry.operations = 2;
  geometry.inbox_entries = 8;
  geometry.pool_slots = 1;
  geometry.pool_slot_bytes = 256;
  const auto layout = *Layout::of(geometry);
  model::SegmentMemory memory(layout.total);
  const Segment segment =
      format_segment(memory.data(), geometry, layout,
                     {.key = 7, .generation = 1, .channel = 1, .window = 8, .auth = auth});
  std::vector<std::byte> open(512), closed(512, std::byte{0xee});
  segment.region(0) = {reinterpret_cast<std::uintptr_t>(open.data()), open.size(), 5, 1, 0};
  segment.region(1) = {reinterpret_cast<std::uintptr_t>(closed.data()), closed.size(), 5, 0, 0};
  InputDevice device;
  StepClock clock;
  Channel channel(segment, device, clock, {});
  std::byte* buffer = nullptr;
  OperationId op = 0;
  if (channel.get_send_buffer(1, 10, &buffer) == 0) channel.send();
  channel.write(1, 0, 0, {0, 5, 0}, 300, op);

  for (std::size_t at = 0; at + 2 <= size;) {
    const std::size_t length = std::min<std::size_t>(data[at] * 2u, size - at - 2);
    const auto* bytes = reinterpret_cast<const std::byte*>(data + at + 2);
    std::vector<std::byte> frame(bytes, bytes + length);
    if (data[at + 1] % 4 != 0) make_fit(frame, auth);
    device.frames.push_back(std::move(frame));
    at += 2 + length;
    channel.progress();
    ReceivedMessage message;
    if (at % 2 == 0 && channel.receive(message)) channel.release(message.ticket);
    require(validate_image(memory.span()) == 0);
  }
  for (const std::byte b : closed) require(b == std::byte{0xee});
  channel.test(op);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const auto auth : {FrameAuth::Key, FrameAuth::Tag}) receive_all(data, size, auth);
  return 0;
}
