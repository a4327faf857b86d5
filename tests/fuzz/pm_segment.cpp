// This fuzz target modifies images of contexts. An image that passes validation must be usable
// after it is restored. The input is a list of changes to a valid image: two bytes of offset, one
// of value.
#include "pmlib/channel/channel.hpp"
#include "tests/model/sim_network.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace score::pm;  // NOLINT(google-build-using-namespace)

class NoDevice final : public PacketDevice {
 public:
  std::size_t send(const PeerAddress&, std::span<const FrameOut> out) override {
    return out.size();
  }

  std::size_t receive(FrameSink&, std::size_t) override { return 0; }

  int poll_fd() const override { return -1; }

  std::size_t frame_bytes() const override { return 1024; }
};

class StepClock final : public JobClock {
 public:
  Microseconds now() override { return now_ += 5000; }

 private:
  Microseconds now_ = 0;
};

Geometry small() {
  Geometry g;
  g.size = 3;
  g.payload_bytes = 256;
  g.send_buffers = g.receive_buffers = g.descriptors = 6;
  g.regions = g.operations = 3;
  g.inbox_entries = 8;
  g.pool_buffers = 1;
  g.pool_buffer_bytes = 256;
  return g;
}

// Creates a context in the middle of its work, so that its lists are not empty.
void fill(const Segment& segment, std::vector<std::byte>& memory) {
  segment.region(0) = {reinterpret_cast<std::uintptr_t>(memory.data()), memory.size(), 5, 1, 0};
  NoDevice device;
  StepClock clock;
  Channel channel(segment, device, clock, {});
  std::byte* buffer = nullptr;
  for (std::uint32_t peer : {1u, 2u, 1u}) {
    if (channel.get_send_buffer(peer, 20, &buffer) == 0) channel.send();
  }
  OperationId op = 0;
  channel.memory().write(2, 0, 0, {0, 1, 0}, 500, op);
}

void use(const Segment& segment, std::vector<std::byte>& memory) {
  // In a different process, regions must be bound again before anything else; see restore_image().
  for (std::uint32_t i = 0; i < segment.geometry().regions; ++i) {
    RegionEntry& region = segment.region(i);
    region.address = reinterpret_cast<std::uintptr_t>(memory.data());
    if (region.length > memory.size()) return;
  }
  NoDevice device;
  StepClock clock;
  Channel channel(segment, device, clock, {});
  for (int i = 0; i < 40; ++i) {
    channel.progress();
    std::byte* buffer = nullptr;
    if (channel.get_send_buffer(1, 9, &buffer) == 0) channel.send();
    ReceivedMessage message;
    if (channel.received().receive(message)) channel.received().release(message.ticket);
    Operations(channel.segment()).test(0x10000);
  }
}

// Reads the image as scored reads it while its owner runs.
void read(std::span<const std::byte> image) {
  static const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (pwrite(fd, image.data(), image.size(), 0) != static_cast<ssize_t>(image.size())) std::abort();
  SegmentSummary summary;
  WaitNote note;
  if (read_summary(fd, summary) != 0 || read_wait_note(fd, note) != 0) return;
  const bool is_bounded = note.call.back() == '\0' && note.source >= WaitNote::kAny &&
                          note.source < std::int64_t{summary.size} && note.tag >= WaitNote::kAny;
  if (!is_bounded) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Geometry geometry = small();
  const auto layout = *SegmentLayout::of(geometry);
  const SegmentIdentity identity{.key = 7, .window = 8};
  model::SegmentMemory image(layout.total), target(layout.total);
  std::vector<std::byte> memory(600);
  fill(format_segment(image.data(), geometry, layout, identity), memory);
  for (; size >= 3; data += 3, size -= 3) {
    const std::size_t at = (data[0] | data[1] << 8u) % layout.total;
    image.data()[at] = static_cast<std::byte>(data[2]);
  }
  read(image.span());
  const Segment segment = format_segment(target.data(), geometry, layout, identity);
  if (restore_image(segment, image.span()) == 0) use(segment, memory);
  return 0;
}
