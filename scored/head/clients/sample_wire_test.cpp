// These tests read samples of nodes that are broken or older than they claim.
#include "scored/head/clients/sample_wire.hpp"

#include "proto/convert/random_messages.hpp"
#include "proto/samples_values_test.inc"

#include <gtest/gtest.h>

#include <memory>

namespace score::head {
namespace {

wire::NodeSample sound() {
  wire::NodeSample sample;
  sample.set_taken_ns(5'000'000'000);
  auto& gang = *sample.add_gangs();
  gang.set_attempt(257);
  gang.set_scheduled_ns(1'000);
  gang.set_runs(true);
  gang.add_frames_to(0);
  gang.add_frames_to(7);
  auto& task = *gang.add_tasks();
  task.set_rank(3);
  task.set_user_ns(500);
  task.set_waited_ns(700);
  task.set_has_pm(true);
  task.set_sent_bytes(9);
  auto& one = *sample.add_switches();
  one.set_due_ns(4'000'000'000);
  one.set_woke_ns(10);
  one.set_stopped_ns(20);
  one.set_done_ns(30);
  one.add_entered(257);
  auto& volume = *sample.add_scratch();
  volume.set_attempt(257);
  volume.set_used_bytes(11);
  volume.set_queue(2);
  one.set_slice_ns(40);
  one.set_busy(true);
  sample.mutable_totals()->set_switches(8);
  sample.mutable_totals()->set_overhead_wake_ns(1);
  sample.mutable_totals()->set_overhead_stop_ns(20);
  sample.mutable_totals()->set_overhead_network_ns(300);
  sample.mutable_totals()->set_overhead_go_ns(4'000);
  auto& phase = *sample.mutable_totals()->add_phases();
  for (int i = 0; i < 100; ++i) phase.add_buckets(1);
  return sample;
}

TEST(SampleWire, KeepsAllValues) {
  const auto sample = std::make_unique<monitor::NodeSample>();
  const auto read = from_wire(sound(), *sample);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(sample->taken, TimePoint(5s));
  ASSERT_EQ(sample->gangs.size(), 1U);
  EXPECT_EQ(sample->gangs[0].tasks[0].rank, Rank(3));
  EXPECT_EQ(sample->gangs[0].tasks[0].waited, 700ns);
  EXPECT_EQ(sample->gangs[0].tasks[0].pm->traffic.sent_bytes, 9U);
  EXPECT_EQ(sample->gangs[0].frames_to, (std::vector<std::uint32_t>{0, 7}));
  EXPECT_EQ(sample->switches[0].done, 30ns);
  EXPECT_EQ(sample->switches[0].slice, 40ns);
  EXPECT_TRUE(sample->switches[0].busy);
  EXPECT_EQ(sample->totals->overhead, (SwitchOverhead{1ns, 20ns, 300ns, 4'000ns}));
  const auto volumes = volumes_of(sound());
  ASSERT_EQ(volumes.size(), 1U);
  EXPECT_EQ(volumes[0].used, Bytes(11));
  EXPECT_EQ(volumes[0].queue, 2U);
  EXPECT_EQ(sample->totals->switches, 8U);
  EXPECT_EQ(sample->totals->phases[0].counts.back(), 1U);
}

TEST(SampleWire, ReusedSampleKeepsNoOldValues) {
  monitor::NodeSample used, fresh;
  ASSERT_TRUE(from_wire(sound(), used));
  wire::NodeSample next;
  next.set_taken_ns(6'000'000'000);
  next.add_gangs()->add_tasks()->set_rank(1);
  next.add_switches();
  next.mutable_totals()->set_switches(9);
  ASSERT_TRUE(from_wire(next, used));
  ASSERT_TRUE(from_wire(next, fresh));
  EXPECT_EQ(used.gangs, fresh.gangs);
  EXPECT_EQ(used.switches, fresh.switches);
  EXPECT_EQ(used.totals, fresh.totals);
  EXPECT_FALSE(used.totals->is_whole);
  next.clear_totals();
  next.clear_gangs();
  next.clear_switches();
  ASSERT_TRUE(from_wire(next, used));
  EXPECT_TRUE(used.gangs.empty() && used.switches.empty() && !used.totals);
}

TEST(SampleWire, RefusesImpossibleNumbers) {
  const auto refuses = [](auto change) {
    wire::NodeSample sample = sound();
    change(sample);
    monitor::NodeSample into;
    return !from_wire(sample, into).has_value();
  };
  EXPECT_TRUE(refuses([](auto& s) { s.set_taken_ns(-1); }));
  EXPECT_TRUE(refuses([](auto& s) { s.mutable_gangs(0)->set_scheduled_ns(-5); }));
  EXPECT_TRUE(refuses([](auto& s) { s.mutable_gangs(0)->mutable_tasks(0)->set_state(77); }));
  EXPECT_TRUE(refuses([](auto& s) { s.mutable_gangs(0)->mutable_tasks(0)->set_user_ns(-1); }));
  EXPECT_TRUE(refuses([](auto& s) { s.mutable_gangs(0)->mutable_tasks(0)->set_waited_ns(-1); }));
  EXPECT_TRUE(refuses([](auto& s) { s.mutable_switches(0)->set_stopped_ns(5); }));
  EXPECT_TRUE(refuses([](auto& s) { s.mutable_switches(0)->set_due_ns(INT64_MAX); }));
  EXPECT_TRUE(refuses([](auto& s) { s.mutable_totals()->set_overhead_go_ns(INT64_MIN); }));
  EXPECT_TRUE(refuses([](auto& s) {
    for (int i = 0; i < 1'000; ++i) s.add_gangs();
  }));
  EXPECT_TRUE(refuses([](auto& s) {
    for (int i = 0; i < 10'000; ++i) s.add_switches();
  }));
}

template <class Message>
class SampleMessages : public ::testing::Test {};

TYPED_TEST_SUITE(SampleMessages, proto::samples_messages);

TYPED_TEST(SampleMessages, AnyMessageGivesValueOrError) {
  proto::expect_value_or_error<TypeParam>();
}

}  // namespace
}  // namespace score::head
