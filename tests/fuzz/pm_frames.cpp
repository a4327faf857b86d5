// This fuzz target sends frames of a hostile network to a live channel. Whatever arrives, memory
// that is not registered must stay unchanged, and the context must stay a valid image.
#include "tests/fuzz/pm_hostile.hpp"

namespace {

using namespace score::pm;  // NOLINT(google-build-using-namespace)

void receive_all(const std::uint8_t* data, std::size_t size, FrameAuth auth) {
  fuzz::HostileContext context(auth);
  fuzz::InputDevice device;
  fuzz::StepClock clock;
  Channel channel(context.segment, device, clock, {});
  const OperationId op = fuzz::send_something(channel);
  std::size_t at = 0;
  fuzz::for_each_frame(data, size, auth, [&](std::vector<std::byte> frame, unsigned) {
    at += frame.size() + 2;
    device.frames.push_back(std::move(frame));
    channel.progress();
    ReceivedMessage message;
    if (at % 2 == 0 && channel.received().receive(message))
      channel.received().release(message.ticket);
    context.check();
  });
  Operations(channel.segment()).test(op);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const auto auth : {FrameAuth::Key, FrameAuth::Tag}) receive_all(data, size, auth);
  return 0;
}
