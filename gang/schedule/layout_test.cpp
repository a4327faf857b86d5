#include "gang/schedule/layout.hpp"

#include "gang/schedule/schedule_bench.hpp"

namespace score::gang {
namespace {

struct LayoutBench : ScheduleBench {
  using ScheduleBench::ScheduleBench;

  // Which rows of the cycle the job has.
  std::vector<std::size_t> rows_of(const Job& job, bool idle_detection = true) {
    layout = lay_out(tables.jobs, placer.matrix(), idle_detection);
    const auto found = layout.runs_in.find(job.id);
    return found == layout.runs_in.end() ? std::vector<std::size_t>{} : found->second;
  }

  Layout layout;
};

using Rows = std::vector<std::size_t>;

TEST(Layout, AJobRunsInEveryRowWhereItsCoresAreFree) {
  LayoutBench b(2);
  Job& left = b.run(LayoutBench::on_nodes(1));
  Job& right = b.run(LayoutBench::on_nodes(1));
  Job& other = b.run(LayoutBench::on_nodes(1));  // on the first node
  EXPECT_EQ(b.rows_of(left), Rows{0});
  EXPECT_EQ(b.rows_of(right), (Rows{0, 1}));
  EXPECT_EQ(b.rows_of(other), Rows{1});
}

TEST(Layout, AnIdleJobLeavesItsRowToABusyOne) {
  LayoutBench b(1);
  Job& idle = b.run(LayoutBench::on_nodes(1));
  Job& busy = b.run(LayoutBench::on_nodes(1));
  b.report(idle, {.idle = true});
  EXPECT_EQ(b.rows_of(busy), Rows{0});
  EXPECT_EQ(b.rows_of(idle), Rows{});
  EXPECT_TRUE(b.layout.background.contains(idle.id));
  EXPECT_EQ(b.rows_of(idle, false).size(), 1U) << "without idle detection";
}

}  // namespace
}  // namespace score::gang
