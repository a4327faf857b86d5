// The shepherd's small pure parts.
#include "base/errc.hpp"
#include "scored/job/plan/path_pattern.hpp"
#include "scored/job/plan/task_env.hpp"
#include "scored/job/tasks/output.hpp"
#include "scored/job/tasks/task_start.hpp"

#include <gtest/gtest.h>

namespace score::shepherd {
namespace {

Plan plan_of(std::vector<std::uint32_t> tasks_on_node, std::uint32_t node) {
  Plan plan;
  for (const auto tasks : tasks_on_node) plan.prepare.add_tasks_on_node(tasks);
  plan.prepare.set_node_index(node);
  plan.prepare.set_node_name("n" + std::to_string(node));
  plan.spec.set_job(12);
  plan.spec.add_argv("true");
  plan.prepare.set_spec(plan.spec.SerializeAsString());
  return *parse_plan(plan.prepare.SerializeAsString());
}

bool holds(const std::vector<std::string>& list, const std::string& item) {
  return std::ranges::find(list, item) != list.end();
}

TEST(PathPattern, PutsNumbersIn) {
  const PatternValues values{.job = 12, .rank = 3, .node = "n0"};
  EXPECT_EQ(*expand_pattern("out.%j.%t.%N", values), "out.12.3.n0");
  EXPECT_EQ(*expand_pattern("%4t-%12j-100%%", values), "0003-0000000012-100%");
  EXPECT_EQ(*expand_pattern("plain", values), "plain");
  for (const auto* wrong : {"%", "%x", "a%4", "%4x", "%-3t"}) {
    EXPECT_TRUE(expand_pattern(wrong, values).error().is(base::Errc::Malformed)) << wrong;
  }
}

TEST(PathPattern, KnowsWhoSharesAFile) {
  EXPECT_TRUE(scope_of("o.%t").per_rank);
  EXPECT_FALSE(scope_of("o.%t").per_node);
  EXPECT_TRUE(scope_of("o.%N").per_node);
  EXPECT_FALSE(scope_of("o.%j.%%t").per_rank);
  EXPECT_FALSE(scope_of("o.%t.%").per_rank);
}

TEST(Plan, RanksGoBlockByBlock) {
  const auto plan = plan_of({2, 3, 1}, 1);
  EXPECT_EQ(plan.size, 6U);
  EXPECT_EQ(plan.rank_of(0), 2U);
  EXPECT_EQ(plan.local_tasks(), 3U);
  EXPECT_EQ(plan.rank_of(2), 4U);
}

TEST(Plan, LastValueOfAVariableCounts) {
  wire::LaunchSpec spec;
  for (const auto* variable : {"PATH=/a", "PATHS=/x", "PATH=/b", "PATH"}) spec.add_env(variable);
  EXPECT_EQ(find_variable(spec, "PATH"), "/b");
  EXPECT_EQ(find_variable(spec, "PAT"), std::nullopt);
}

TEST(TaskEnvironment, SlurmLookAlikesOnlyIfAsked) {
  auto plan = plan_of({2, 2, 1}, 1);
  EXPECT_FALSE(holds(own_variables(plan, 0), "SLURM_PROCID=2"));
  plan.spec.set_slurm_env(true);
  for (const auto* name : {"n0", "n1", "n2"}) plan.spec.add_node_names(name);
  const auto own = own_variables(plan, 1);
  for (const auto* variable :
       {"SLURM_JOB_ID=12", "SLURM_PROCID=3", "SLURM_LOCALID=1", "SLURM_NODEID=1", "SLURM_NTASKS=5",
        "SLURM_NNODES=3", "SLURM_JOB_NODELIST=n0,n1,n2", "SLURM_TASKS_PER_NODE=2(x2),1"}) {
    EXPECT_TRUE(holds(own, variable)) << variable;
  }
}

TEST(TaskEnvironment, OuterLaunchersAreForgotten) {
  auto plan = plan_of({1}, 0);
  const auto own = own_variables(plan, 0);
  EXPECT_TRUE(is_replaced("PMI_PORT=x", own));
  EXPECT_TRUE(is_replaced("PMIX_RANK=1", own));
  EXPECT_TRUE(is_replaced("SCORE_RANK=9", own));
  EXPECT_FALSE(is_replaced("SCORE_RANKING=9", own));
  EXPECT_FALSE(is_replaced("SLURM_PROCID=9", own));
  EXPECT_FALSE(is_replaced("HOME=/root", own));
}

TEST(TaskEnvironment, ThreadsFollowCpusPerTask) {
  auto plan = plan_of({1}, 0);
  plan.spec.set_cpus_per_task(4);
  EXPECT_TRUE(holds(own_variables(plan, 0), "OMP_NUM_THREADS=4"));
  plan.spec.add_env("OMP_NUM_THREADS=2");
  EXPECT_FALSE(holds(own_variables(plan, 0), "OMP_NUM_THREADS=4"));
}

TEST(TaskEnvironment, OpenMpiGivesSharedCoresAwayWhenItWaits) {
  auto plan = plan_of({3}, 0);
  EXPECT_FALSE(holds(own_variables(plan, 0), "OMPI_MCA_mpi_yield_when_idle=1"));
  for (const std::uint32_t core : {0U, 1U, 2U}) plan.prepare.add_cores(core);
  EXPECT_FALSE(holds(own_variables(plan, 0), "OMPI_MCA_mpi_yield_when_idle=1"));
  plan.prepare.mutable_cores()->RemoveLast();
  EXPECT_TRUE(holds(own_variables(plan, 0), "OMPI_MCA_mpi_yield_when_idle=1"));
  plan.spec.add_env("OMPI_MCA_mpi_yield_when_idle=0");
  EXPECT_FALSE(holds(own_variables(plan, 0), "OMPI_MCA_mpi_yield_when_idle=1"));
}

TEST(TaskCores, ThoseWhoShareAreSplitEvenly) {
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

TEST(OutputWindow, CountsWhatIsOnTheWay) {
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

TEST(OutputPump, EndsPipesThatOthersHoldOpen) {
  auto pump = OutputPump::create();
  auto pipe = base::make_pipe();
  ASSERT_TRUE(base::set_nonblocking(pipe->read.get(), true).has_value());
  ASSERT_TRUE(base::write_all(pipe->write.get(), "left").has_value());
  ASSERT_TRUE(pump->add(0, wire::STDOUT, std::move(pipe->read)).has_value());
  pump->limit_to_present();
  ASSERT_TRUE(base::write_all(pipe->write.get(), "too late").has_value());
  std::string got;
  const auto sink = [&got](OutputChunk chunk) { got += chunk.data; };
  pump->pump(2, sink);  // no more than there is room
  EXPECT_EQ(got, "le");
  pump->pump(100, sink);
  EXPECT_EQ(got, "left");
  EXPECT_TRUE(pump->is_done());
}

}  // namespace
}  // namespace score::shepherd
