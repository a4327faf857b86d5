// This fuzz target sends probes, answers and pieces of frames of a hostile path. A frame that is
// assembled from them must not be longer than the limit, and the channel's promises must hold (see
// pm_frames).
#include "pmlib/devices/path_device.hpp"
#include "tests/fuzz/pm_hostile.hpp"

#include <memory>

namespace {

using namespace score::pm;  // NOLINT(google-build-using-namespace)

// Converts most frames to the kinds of the path. Pieces belong to frames that can probably be
// assembled.
void make_of_path(std::vector<std::byte>& frame, FrameAuth auth, unsigned choice) {
  if (frame.size() < sizeof(FrameHeader) || choice % 4 == 0) return;
  FrameHeader h;
  std::memcpy(&h, frame.data(), sizeof h);
  h.kind = static_cast<FrameKind>(static_cast<unsigned>(FrameKind::Probe) + choice % 4 - 1);
  h.word = static_cast<std::uint32_t>(sizeof h + h.half0);
  h.half0 = h.half1 % 4;
  h.half1 = h.half1 / 4 % 8;
  const auto payload = std::span(frame).subspan(sizeof h);
  if (auth == FrameAuth::Tag) {
    seal_by_tag(h, 7, {}, payload);
  } else {
    seal(h, crc32c(0, payload.data(), payload.size()));
  }
  std::memcpy(frame.data(), &h, sizeof h);
}

void receive_all(const std::uint8_t* data, std::size_t size, FrameAuth auth) {
  fuzz::HostileContext context(auth);
  auto link = std::make_unique<fuzz::InputDevice>();
  fuzz::InputDevice& input = *link;
  fuzz::StepClock clock;
  PathDevice device(context.segment, std::move(link), 0, [&] { return clock.now(); });
  Channel channel(context.segment, device, clock, {});
  fuzz::send_something(channel);
  fuzz::for_each_frame(data, size, auth, [&](std::vector<std::byte> frame, unsigned choice) {
    make_of_path(frame, auth, choice);
    input.frames.push_back(std::move(frame));
    channel.progress();
    ReceivedMessage message;
    if (choice / 16 % 2 == 0 && channel.received().receive(message))
      channel.received().release(message.ticket);
    context.check();
    fuzz::require(device.limit(1) >= PathLimits().floor);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const auto auth : {FrameAuth::Key, FrameAuth::Tag}) receive_all(data, size, auth);
  return 0;
}
