#include "monitor/meters/scratch_meter.hpp"

#include <gtest/gtest.h>

namespace score::monitor {
namespace {

VolumeSample scratch_sample(std::uint64_t attempt, std::uint64_t read, std::uint64_t written) {
  VolumeSample made;
  made.attempt = AttemptId(attempt);
  made.capacity = Bytes(1'000);
  made.used = Bytes(written);
  made.read = read;
  made.written = written;
  made.requests = read + written;
  return made;
}

TEST(ScratchMeter, TurnsTotalsIntoRates) {
  ScratchMeter meter;
  EXPECT_FALSE(meter.volumes());
  meter.feed(TimePoint(1s), {scratch_sample(257, 0, 100)});
  EXPECT_EQ(meter.volumes()->at(0).write_rate, 0) << "it is not known when that was";
  meter.feed(TimePoint(3s), {scratch_sample(257, 50, 300)});
  const auto loads = meter.volumes();
  ASSERT_EQ(loads->size(), 1U);
  EXPECT_DOUBLE_EQ(loads->at(0).write_rate, 100);
  EXPECT_DOUBLE_EQ(loads->at(0).read_rate, 25);
  EXPECT_DOUBLE_EQ(loads->at(0).request_rate, 125);
  EXPECT_EQ(loads->at(0).used, Bytes(300));
}

TEST(ScratchMeter, RestartedServerCountsFromZero) {
  ScratchMeter meter;
  meter.feed(TimePoint(1s), {scratch_sample(257, 0, 500)});
  VolumeSample again = scratch_sample(257, 0, 40);
  again.fallbacks = 2;
  meter.feed(TimePoint(2s), {again});
  EXPECT_EQ(meter.fallbacks(), 2U);
  EXPECT_EQ(meter.volumes()->at(0).fallbacks, 2U);
  EXPECT_DOUBLE_EQ(meter.volumes()->at(0).write_rate, 40);
  EXPECT_EQ(meter.written_bytes(), 540U);
}

TEST(ScratchMeter, SumsIncludeEndedVolumes) {
  ScratchMeter meter;
  meter.feed(TimePoint(1s), {scratch_sample(257, 10, 500), scratch_sample(513, 0, 7)});
  meter.feed(TimePoint(2s), {scratch_sample(513, 0, 8)});
  ASSERT_EQ(meter.volumes()->size(), 1U);
  EXPECT_EQ(meter.volumes()->at(0).attempt, AttemptId(513));
  EXPECT_EQ(meter.written_bytes(), 508U);
  EXPECT_EQ(meter.read_bytes(), 10U);
  meter.forget();
  EXPECT_FALSE(meter.volumes());
  EXPECT_EQ(meter.written_bytes(), 508U);
}

TEST(ScratchMeter, IgnoresRepeatedSample) {
  ScratchMeter meter;
  meter.feed(TimePoint(1s), {scratch_sample(257, 0, 0)});
  meter.feed(TimePoint(2s), {scratch_sample(257, 0, 10)});
  meter.feed(TimePoint(2s), {scratch_sample(257, 0, 10)});
  EXPECT_DOUBLE_EQ(meter.volumes()->at(0).write_rate, 10);
  EXPECT_EQ(meter.written_bytes(), 10U);
}

}  // namespace
}  // namespace score::monitor
