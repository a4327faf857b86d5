// A PairTest has two ranks of one process, each at one end of a link.
#pragma once

#include "pmlib/channel/channel.hpp"
#include "tests/support/pmlib/test_wire.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>

namespace score::pm {

class PairTest : public testing::Test {
 protected:
  PairTest(Geometry geometry, std::uint16_t window) {
    geometry.size = 2;
    for (std::uint32_t i = 0; i < 2; ++i) {
      int error = 0;
      contexts_[i] =
          MappedSegment::create(geometry, {.key = 5, .rank = i, .window = window}, error);
      EXPECT_EQ(error, 0);
      devices_[i] = std::make_unique<WireDevice>(wires_[i], wires_[1 - i]);
      ends_[i] = std::make_unique<Channel>(contexts_[i]->segment(), *devices_[i], clock_,
                                           ChannelOptions{});
    }
  }

  TestClock clock_;
  std::array<Wire, 2> wires_;
  std::array<std::unique_ptr<MappedSegment>, 2> contexts_;
  std::array<std::unique_ptr<WireDevice>, 2> devices_;
  std::array<std::unique_ptr<Channel>, 2> ends_;
};

}  // namespace score::pm
