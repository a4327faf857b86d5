#include "gang/schedule/layout.hpp"

#include "tests/support/gang/schedule_bench.hpp"

namespace score::gang {
namespace {

constexpr auto kHigh = base::Queue::High;

struct LayoutBench : ScheduleBench {
  using ScheduleBench::ScheduleBench;

  // Returns the rows of the cycle in which the job runs.
  std::vector<std::size_t> rows_of(const Job& job, bool idle_detection = true) {
    layout = lay_out(tables.jobs, placer.matrix(), idle_detection);
    const auto found = layout.runs_in.find(job.id);
    return found == layout.runs_in.end() ? std::vector<std::size_t>{} : found->second;
  }

  CycleLayout layout;
};

using Rows = std::vector<std::size_t>;

TEST(CycleLayout, JobRunsInEveryRowWithFreeCores) {
  LayoutBench b(2);
  Job& left = b.run(LayoutBench::on_nodes(1));
  Job& right = b.run(LayoutBench::on_nodes(1));
  Job& other = b.run(LayoutBench::on_nodes(1));  // on the first node
  EXPECT_EQ(b.rows_of(left), Rows{0});
  EXPECT_EQ(b.rows_of(right), (Rows{0, 1}));
  EXPECT_EQ(b.rows_of(other), Rows{1});
}

TEST(CycleLayout, IdleJobYieldsItsRowToBusyJob) {
  LayoutBench b(1);
  Job& idle = b.run(LayoutBench::on_nodes(1));
  Job& busy = b.run(LayoutBench::on_nodes(1));
  b.report(idle, {.idle = true});
  EXPECT_EQ(b.rows_of(busy), Rows{0});
  EXPECT_EQ(b.rows_of(idle), Rows{});
  EXPECT_TRUE(b.layout.background.contains(idle.id));
  EXPECT_EQ(b.rows_of(idle, false).size(), 1U) << "without idle detection";
}

TEST(CycleLayout, BusyHighJobTakesAllSlices) {
  LayoutBench b(2);
  Job& wide = b.run(LayoutBench::on_nodes(2));
  Job& high = b.run(LayoutBench::on_nodes(1, kHigh));
  Job& elsewhere = b.run(LayoutBench::on_nodes(1));
  ASSERT_NE(high.cells.nodes, elsewhere.cells.nodes);
  EXPECT_EQ(b.rows_of(high), Rows{0});
  EXPECT_EQ(b.rows_of(elsewhere), Rows{0}) << "no core of it is wanted";
  EXPECT_EQ(b.rows_of(wide), Rows{}) << "its gang cannot run on the other node alone";
  EXPECT_TRUE(b.layout.displaced.contains(wide.id));
}

TEST(CycleLayout, HighJobsTakeTurnsAmongThemselves) {
  LayoutBench b(1);
  Job& normal = b.run(LayoutBench::on_nodes(1));
  Job& first = b.run(LayoutBench::on_nodes(1, kHigh));
  Job& second = b.run(LayoutBench::on_nodes(1, kHigh));
  EXPECT_EQ(b.rows_of(first), Rows{0});
  EXPECT_EQ(b.rows_of(second), Rows{1});
  EXPECT_EQ(b.rows_of(normal), Rows{});
}

TEST(CycleLayout, IdleHighJobYieldsItsSlices) {
  LayoutBench b(1);
  Job& normal = b.run(LayoutBench::on_nodes(1));
  Job& high = b.run(LayoutBench::on_nodes(1, kHigh));
  b.report(high, {.idle = true});
  EXPECT_EQ(b.rows_of(normal), Rows{0});
  EXPECT_TRUE(b.layout.background.contains(high.id));
  EXPECT_TRUE(b.layout.displaced.empty());
  b.report(high, {});
  EXPECT_EQ(b.rows_of(normal), Rows{});
  EXPECT_EQ(b.rows_of(high), Rows{0});
  b.report(high, {.idle = true});
  EXPECT_EQ(b.rows_of(normal, false), Rows{}) << "without idle detection it counts as busy";
}

TEST(CycleLayout, SuspendedHighJobDisplacesNoJob) {
  LayoutBench b(1);
  Job& normal = b.run(LayoutBench::on_nodes(1));
  Job& high = b.run(LayoutBench::on_nodes(1, kHigh));
  b.tables.jobs.change(high, JobEvent::Suspend, b.step);
  EXPECT_EQ(b.rows_of(normal), Rows{0});
}

TEST(CycleLayout, IdleJobDoesNotYieldToDisplacedJob) {
  LayoutBench b(2);
  Job& high = b.run(LayoutBench::on_nodes(1, kHigh));
  Job& idle = b.run(LayoutBench::on_nodes(1));
  Job& wide = b.run(LayoutBench::on_nodes(2));
  b.report(idle, {.idle = true});
  EXPECT_EQ(b.rows_of(wide), Rows{});
  EXPECT_EQ(b.rows_of(idle), Rows{0}) << "no job could use its cores";
  EXPECT_EQ(b.rows_of(high), Rows{0});
}

}  // namespace
}  // namespace score::gang
