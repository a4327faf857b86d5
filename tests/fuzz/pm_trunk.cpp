// This fuzz target sends frames over two hostile links of one trunk to a live channel. The trunk
// orders frames that it has not verified. Whatever arrives, no frame may be held back for ever,
// made longer or delivered more often than it came, and the channel's promises must hold (see
// pm_frames).
#include "pmlib/devices/trunk_device.hpp"
#include "tests/fuzz/pm_hostile.hpp"

#include <array>
#include <memory>

namespace {

using namespace score::pm;  // NOLINT(google-build-using-namespace)

// Counts the frames and bytes that a channel receives.
class CountingDevice final : public PacketDevice, private FrameSink {
 public:
  explicit CountingDevice(TrunkDevice& trunk) : trunk_(trunk) {}

  std::size_t frames = 0, bytes = 0;

  std::size_t send(const PeerAddress& to, std::span<const FrameOut> out) override {
    return trunk_.send(to, out);
  }

  std::size_t receive(FrameSink& sink, std::size_t limit) override {
    sink_ = &sink;
    return trunk_.receive(*this, limit);
  }

  int poll_fd() const override { return trunk_.poll_fd(); }

  std::size_t frame_bytes() const override { return trunk_.frame_bytes(); }

 private:
  void on_frame(std::span<const std::byte> frame) override {
    ++frames;
    bytes += frame.size();
    sink_->on_frame(frame);
  }

  TrunkDevice& trunk_;
  FrameSink* sink_ = nullptr;
};

void receive_all(const std::uint8_t* data, std::size_t size, FrameAuth auth) {
  fuzz::HostileContext context(auth, 2);
  std::array<fuzz::InputDevice*, 2> inputs{};
  TrunkDevice::Links links;
  for (auto*& input : inputs) {
    auto link = std::make_unique<fuzz::InputDevice>();
    input = link.get();
    links.push_back(std::move(link));
  }
  int error = 0;
  const auto trunk = TrunkDevice::make(context.segment, std::move(links), error);
  fuzz::require(trunk != nullptr);
  CountingDevice device(*trunk);
  fuzz::StepClock clock;
  Channel channel(context.segment, device, clock, {});
  fuzz::send_something(channel);
  std::size_t frames = 0, bytes = 0;
  fuzz::for_each_frame(data, size, auth, [&](std::vector<std::byte> frame, unsigned choice) {
    ++frames;
    bytes += frame.size();
    inputs[choice / 4 % 2]->frames.push_back(std::move(frame));
    if (choice / 8 % 2 == 0) channel.progress();
    ReceivedMessage message;
    if (choice / 16 % 2 == 0 && channel.received().receive(message))
      channel.received().release(message.ticket);
    context.check();
  });
  channel.progress();
  if (!trunk->prepare_to_sleep()) channel.progress();
  fuzz::require(trunk->prepare_to_sleep());  // no frame is left
  fuzz::require(device.frames <= frames && device.bytes <= bytes);
  context.check();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const auto auth : {FrameAuth::Key, FrameAuth::Tag}) receive_all(data, size, auth);
  return 0;
}
