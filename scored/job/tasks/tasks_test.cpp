#include "scored/job/tasks/output.hpp"
#include "scored/job/tasks/task_start.hpp"
#include "tests/support/job/test_plan.hpp"

#include <gtest/gtest.h>

namespace score::shepherd {
namespace {

using test::plan_of;

TEST(TaskCores, TasksThatShareCoresAreSplitEvenly) {
  auto plan = plan_of({5}, 0);
  plan.spec.set_cpu_bind(wire::LaunchSpec::BIND_CORE);
  for (const std::uint32_t core : {0U, 1U}) plan.prepare.add_cores(core);
  const auto sets = cores_of_tasks(plan);
  ASSERT_EQ(sets.size(), 5U);
  for (std::size_t task : {1U, 2U}) EXPECT_TRUE(CPU_EQUAL(&sets[task], &sets[0])) << task;
  EXPECT_TRUE(CPU_EQUAL(&sets[4], &sets[3]));
  for (const cpu_set_t& set : sets) EXPECT_EQ(CPU_COUNT(&set), 1);
  plan.spec.set_cpus_per_task(2);
  EXPECT_TRUE(CPU_EQUAL(&cores_of_tasks(plan)[0], &cores_of_tasks(plan)[4]));
}

TEST(TaskCores, VirtualNodesStartAtTheirFirstCore) {
  auto plan = plan_of({1}, 0);
  plan.spec.set_cpu_bind(wire::LaunchSpec::BIND_CORE);
  plan.prepare.add_cores(0);
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
  if (CPU_COUNT(&usable) < 2) GTEST_SKIP() << "one processor";
  const auto first = cores_of_tasks(plan)[0];
  plan.prepare.set_first_core(1);
  EXPECT_FALSE(CPU_EQUAL(&first, &cores_of_tasks(plan)[0]));
  plan.prepare.set_first_core(static_cast<std::uint32_t>(CPU_COUNT(&usable)));
  EXPECT_TRUE(CPU_EQUAL(&first, &cores_of_tasks(plan)[0])) << "the numbers wrap around";
}

TEST(TaskCores, ConfinedJobUsesOnlyItsProcessors) {
  auto plan = plan_of({2}, 0);
  for (const std::uint32_t core : {4U, 5U}) plan.prepare.add_cores(core);
  EXPECT_TRUE(cores_of_tasks(plan).empty()) << "not confined, not bound";
  for (const std::uint32_t cpu : {9U, 1U}) plan.prepare.add_cpus(cpu);
  const auto none = cores_of_tasks(plan);
  ASSERT_EQ(none.size(), 2U);
  for (const cpu_set_t& set : none) {
    EXPECT_EQ(CPU_COUNT(&set), 2);
    EXPECT_TRUE(CPU_ISSET(9, &set) && CPU_ISSET(1, &set));
  }
  plan.spec.set_cpu_bind(wire::LaunchSpec::BIND_CORE);
  const auto cores = cores_of_tasks(plan);
  ASSERT_EQ(cores.size(), 2U);
  EXPECT_TRUE(CPU_COUNT(&cores[0]) == 1 && CPU_ISSET(9, &cores[0]));
  EXPECT_TRUE(CPU_COUNT(&cores[1]) == 1 && CPU_ISSET(1, &cores[1]));
  plan.spec.set_cpu_bind(wire::LaunchSpec::BIND_SOCKET);
  for (const cpu_set_t& set : cores_of_tasks(plan)) EXPECT_LE(CPU_COUNT(&set), 2);
}

TEST(OutputWindow, CountsBytesInFlight) {
  OutputWindow window(10);
  EXPECT_EQ(window.push({.rank = 0, .stream = wire::STDOUT, .data = "abcd", .offset = 0}).offset,
            0U);
  EXPECT_EQ(window.push({.rank = 1, .stream = wire::STDERR, .data = "efgh", .offset = 0}).offset,
            4U);
  EXPECT_EQ(window.room(), 2U);
  window.taken(6);
  EXPECT_EQ(window.room(), 8U);
  ASSERT_EQ(window.held().size(), 1U);
  EXPECT_EQ(window.held().front().data, "gh");
  EXPECT_EQ(window.held().front().offset, 6U);
  window.push({.rank = 1, .stream = wire::STDERR, .data = std::string(20, 'x'), .offset = 0});
  EXPECT_EQ(window.room(), 0U);
  window.taken(1'000);
  EXPECT_EQ(window.room(), 10U);
  EXPECT_TRUE(window.held().empty());
}

TEST(ReadPace, FirstAndLargeOutputIsReadAtOnce) {
  ReadPace pace;
  base::TimePoint now{std::chrono::seconds(1)};
  EXPECT_EQ(pace.read(10, now), base::Duration());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(pace.read(ReadPace::kMuch, now), base::Duration());
  now += std::chrono::milliseconds(5);
  EXPECT_EQ(pace.read(10, now), base::Duration());
  EXPECT_EQ(pace.read(0, now), base::Duration());
}

TEST(ReadPace, SmallOutputIsReadOncePerPause) {
  ReadPace pace;
  base::TimePoint now{std::chrono::seconds(1)};
  int readings = 0;
  for (const auto end = now + std::chrono::seconds(1); now < end; ++readings) {
    now += std::max<base::Duration>(pace.read(20, now), std::chrono::microseconds(10));
  }
  EXPECT_LE(readings, 1'010);
}

TEST(OutputPump, EndsPipesThatOtherProcessesHoldOpen) {
  auto pump = OutputPump::create();
  auto pipe = base::make_pipe();
  ASSERT_TRUE(base::set_nonblocking(pipe->read.get(), true).has_value());
  ASSERT_TRUE(base::write_all(pipe->write.get(), "left").has_value());
  ASSERT_TRUE(pump->add(0, wire::STDOUT, std::move(pipe->read)).has_value());
  pump->limit_to_present();
  ASSERT_TRUE(base::write_all(pipe->write.get(), "too late").has_value());
  std::string got;
  const auto sink = [&got](TaskOutputChunk chunk) { got += chunk.data; };
  pump->pump(2, sink);  // no more than `room`
  EXPECT_EQ(got, "le");
  pump->pump(100, sink);
  EXPECT_EQ(got, "left");
  EXPECT_TRUE(pump->is_done());
}

}  // namespace
}  // namespace score::shepherd
