// Tests the generated conversions between the node daemon and shepherds.

#include "base/limits.hpp"
#include "proto/convert/convert.hpp"

#include <gtest/gtest.h>

namespace score::proto {
namespace {

FoundAttempt some_found() {
  FoundAttempt found;
  found.placed.attempt = base::make_attempt(base::JobId(7), 1);
  found.placed.user = base::UserId(1000);
  found.placed.node_index = 1;
  found.placed.tasks_on_node = {2, 2};
  found.placed.cores = {4, 5};
  found.placed.memory = base::Bytes(4096);
  found.phase = base::AttemptPhase::Running;
  found.exits = {{base::Rank(2), 0, 9}};
  found.pids = {100, 4'000'000};
  return found;
}

TEST(ConvertShepherd, PreparationOmitsOnlyTheUser) {
  auto expected = some_found().placed;
  const auto message = to_wire(expected);
  expected.user = base::UserId(0);
  EXPECT_EQ(*from_wire(message), expected);
}

TEST(ConvertShepherd, RejectsPidsThatCannotBeTasks) {
  for (std::int64_t pid : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, INT64_MAX}) {
    wire::ShepherdStarted message;
    message.add_pids(pid);
    EXPECT_FALSE(from_wire(message).has_value()) << pid;
    auto report = to_wire(some_found());
    report.add_pids(pid);
    EXPECT_FALSE(from_wire(report).has_value()) << pid;
  }
  wire::ShepherdStarted many;
  for (std::size_t i = 0; i <= base::limits::kMaxTasksPerNode; ++i) many.add_pids(100);
  EXPECT_FALSE(from_wire(many).has_value());
}

TEST(ConvertShepherd, RejectsImpossibleReports) {
  auto phase = to_wire(some_found());
  phase.set_phase(4);
  EXPECT_FALSE(from_wire(phase).has_value());
  auto index = to_wire(some_found());
  index.set_node_index(2);
  EXPECT_FALSE(from_wire(index).has_value());
  auto exits = to_wire(some_found());
  exits.add_exits()->set_signal(1000);
  EXPECT_FALSE(from_wire(exits).has_value());
}

}  // namespace
}  // namespace score::proto
