// Tests use this link between two ranks of one process, which loses chosen frames, and a clock that
// stands still until a test sets it.
#pragma once

#include "pmlib/core/messages.hpp"
#include "pmlib/core/packet_device.hpp"

#include <cstddef>
#include <deque>
#include <random>
#include <set>
#include <span>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

namespace score::pm {

class TestClock final : public JobClock {
 public:
  Microseconds now() override { return time; }

  Microseconds time = 1000;
};

// A Wire is one direction of a link.
struct Wire {
  std::deque<std::vector<std::byte>> frames;
  std::size_t carried = 0;
  unsigned batches = 0;  // calls of the device
  bool is_dead = false;
  unsigned slowness = 1;  // one frame arrives per this many calls of receive()
  double loss = 0;
  std::set<std::size_t> lost;  // numbers of carried frames that are lost, from 0
};

class WireDevice final : public PacketDevice {
 public:
  WireDevice(Wire& out, Wire& in, unsigned seed = 7)
      : out_(out), in_(in), fd_(eventfd(0, 0)), random_(seed) {}

  ~WireDevice() override { close(fd_); }

  std::size_t send(const PeerAddress&, std::span<const FrameOut> frames) override {
    ++out_.batches;
    for (const FrameOut& frame : frames) {
      std::vector<std::byte> bytes(frame.head.begin(), frame.head.end());
      bytes.insert(bytes.end(), frame.body.begin(), frame.body.end());
      const bool is_lost = out_.lost.erase(out_.carried++) > 0 || out_.is_dead;
      if (!is_lost && chance_(random_) >= out_.loss) out_.frames.push_back(std::move(bytes));
    }
    return frames.size();
  }

  std::size_t receive(FrameSink& sink, std::size_t limit) override {
    if (++looks_ % in_.slowness != 0) return 0;
    const std::size_t n = std::min(in_.frames.size(), in_.slowness > 1 ? 1 : limit);
    for (std::size_t i = 0; i < n; ++i) {
      const auto frame = std::move(in_.frames.front());
      in_.frames.pop_front();
      sink.on_frame(frame);
    }
    return n;
  }

  int poll_fd() const override { return fd_; }

  std::size_t frame_bytes() const override { return 1472; }

 private:
  Wire& out_;
  Wire& in_;
  int fd_;
  unsigned looks_ = 0;
  std::mt19937 random_;
  std::uniform_real_distribution<double> chance_{0, 1};
};

}  // namespace score::pm
