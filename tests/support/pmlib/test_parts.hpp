// Tests of one part of a channel use this file: it has a context, a clock set by hand and a device
// that records the sent frames.
#pragma once

#include "pmlib/core/packet_device.hpp"
#include "pmlib/sending/channel_state.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace score::pm {

class HandClock final : public JobClock {
 public:
  Microseconds now() override { return time; }

  Microseconds time = 1000;
};

class KeepingDevice final : public PacketDevice {
 public:
  std::size_t send(const PeerAddress&, std::span<const FrameOut> frames) override {
    std::size_t taken = 0;
    for (const FrameOut& frame : frames) {
      if (taken == room) break;
      ++taken;
      std::vector<std::byte> bytes(frame.head.begin(), frame.head.end());
      bytes.insert(bytes.end(), frame.body.begin(), frame.body.end());
      sent.push_back(std::move(bytes));
    }
    return taken;
  }

  std::size_t receive(FrameSink&, std::size_t) override { return 0; }

  int poll_fd() const override { return -1; }

  std::size_t frame_bytes() const override { return 1472; }

  FrameHeader header(std::size_t i) const { return header_of(sent[i]); }

  std::vector<std::vector<std::byte>> sent;
  std::size_t room = SIZE_MAX;  // frames that one send() takes
};

// Parts is rank 0 of three.
class Parts : public testing::Test {
 protected:
  Parts() {
    Geometry geometry;
    geometry.size = 3;
    geometry.payload_bytes = 256;
    geometry.send_buffers = 6;
    geometry.receive_buffers = 2;
    geometry.descriptors = 8;
    int error = 0;
    context_ = MappedSegment::create(geometry, {.key = 5, .rank = 0, .window = 16}, error);
    EXPECT_EQ(error, 0);
    state_ = std::make_unique<ChannelState>(context_->segment(), clock_, EngineLimits{});
  }

  void pass(Microseconds time) {
    clock_.time += time;
    state_->clock.begin_turn();
    state_->clock.refresh();
  }

  HandClock clock_;
  KeepingDevice device_;
  std::unique_ptr<MappedSegment> context_;
  std::unique_ptr<ChannelState> state_;
};

}  // namespace score::pm
