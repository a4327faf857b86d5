#include "scored/node/switch/switch_trace.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace score::node {
namespace {

SwitchRecord record_at(std::uint64_t number) {
  SwitchRecord record;
  record.due = TimePoint{Duration{static_cast<long>(number)}};
  record.woke = record.stopped = record.done = Duration{static_cast<long>(number)};
  record.epoch = Epoch{number};
  record.left[0] = record.entered[3] = AttemptId{number};
  return record;
}

TEST(SwitchTrace, GivesBackWhatWasPutInOrder) {
  SwitchTrace trace;
  for (std::uint64_t i = 1; i <= 10; ++i) trace.put(record_at(i));
  const auto extract = trace.read(TimePoint{Duration{4}});
  ASSERT_EQ(extract.records.size(), 6U);
  EXPECT_EQ(extract.records.front(), record_at(5));
  EXPECT_EQ(extract.records.back(), record_at(10));
  EXPECT_EQ(extract.lost, 0U);
}

TEST(SwitchTrace, CountsWhatWasOverwritten) {
  SwitchTrace trace;
  for (std::uint64_t i = 1; i <= SwitchTrace::kEntries + 7; ++i) trace.put(record_at(i));
  const auto extract = trace.read(TimePoint{});
  EXPECT_EQ(extract.lost, 7U);
  EXPECT_EQ(extract.records.size(), SwitchTrace::kEntries);
  EXPECT_EQ(extract.records.front(), record_at(8));
}

TEST(SwitchTrace, GivesEachNewRecordOnce) {
  SwitchTrace trace;
  std::uint64_t seen = 0;
  for (std::uint64_t i = 1; i <= 3; ++i) trace.put(record_at(i));
  EXPECT_EQ(trace.read_new(seen, 100).records.size(), 3U);
  EXPECT_TRUE(trace.read_new(seen, 100).records.empty());
  for (std::uint64_t i = 4; i <= 9; ++i) trace.put(record_at(i));
  const auto newest = trace.read_new(seen, 2);
  EXPECT_EQ(newest.lost, 4U);
  ASSERT_EQ(newest.records.size(), 2U);
  EXPECT_EQ(newest.records.back(), record_at(9));
}

TEST(SwitchTrace, NeverGivesHalfARecord) {
  SwitchTrace trace;
  constexpr std::uint64_t kCount = 200'000;
  std::thread writer([&] {
    for (std::uint64_t i = 1; i <= kCount; ++i) trace.put(record_at(i));
  });
  std::uint64_t last = 0;
  while (last < kCount) {
    for (const auto& record : trace.read(TimePoint{}).records) {
      last = record.epoch.value();
      if (record != record_at(last)) {
        ADD_FAILURE() << "torn at " << last;
        last = kCount;
        break;
      }
    }
  }
  writer.join();
}

}  // namespace
}  // namespace score::node
