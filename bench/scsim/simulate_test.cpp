#include "bench/scsim/figures.hpp"

#include <gtest/gtest.h>

namespace score::scsim {
namespace {

Workload workload_of(std::uint32_t nodes, std::vector<SimJob> jobs) {
  Workload w;
  w.name = "test";
  w.nodes = nodes;
  w.jobs = std::move(jobs);
  return w;
}

SimOptions under(const std::string& policy) {
  SimOptions options;
  options.policy = *policy_of(policy);
  options.check = true;
  return options;
}

JobResult job_result_of(const SimulationRun& run, std::uint64_t number) {
  for (const JobResult& f : run.job_results) {
    if (f.job.number == number) return f;
  }
  ADD_FAILURE() << "no job " << number;
  return {};
}

class AllPolicies : public testing::TestWithParam<const char*> {};

// Checks all invariants of the placer after every event. Every job ends, none before its run time.
TEST_P(AllPolicies, HoldInvariantsAndEndEveryJob) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Workload w = at_load(lublin(32, 300, seed), 0.9);
    draw_memory(w, seed);
    SimOptions options = under(GetParam());
    options.idle_jobs = 0.3;
    options.seed = seed;
    const auto run = simulate(w, options);
    ASSERT_TRUE(run) << run.error().message();
    ASSERT_EQ(run->job_results.size(), w.jobs.size());
    for (const JobResult& f : run->job_results) {
      EXPECT_GE(f.end_s - f.start_s, f.job.run_s - 1e-3);
      EXPECT_GE(f.start_s, f.job.submit_s - 1e-6);
    }
    EXPECT_LE(run->memory_high, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, AllPolicies,
                         testing::Values("matrix", "dqt", "slurm", "fcfs", "easy", "conservative"));

// Runs two jobs on all nodes: gangs share the time, batch jobs run one after the other.
TEST(Simulate, GangsShareTime) {
  const Workload w = workload_of(4, {{1, 0, 100, 4, 1, 0.1}, {2, 0, 10, 4, 1, 0.1}});
  const auto gangs = simulate(w, under("dqt"));
  EXPECT_NEAR(job_result_of(*gangs, 2).end_s, 20, 0.3);
  EXPECT_NEAR(job_result_of(*gangs, 1).end_s, 110, 0.3);
  EXPECT_NEAR(static_cast<double>(gangs->switches), 200, 5);
  const auto batch = simulate(w, under("fcfs"));
  EXPECT_NEAR(job_result_of(*batch, 1).end_s, 100, 1e-3);
  EXPECT_NEAR(job_result_of(*batch, 2).end_s, 110, 1e-3);
  EXPECT_EQ(batch->switches, 0U);
}

// A long job runs on half of the nodes, a second one needs all, and a short one fits next to the
// first.
TEST(Simulate, BackfilledJobDoesNotDelayFirst) {
  const Workload w = workload_of(4, {{1, 0, 100, 2, 1, 0.1},
                                     {2, 1, 50, 4, 1, 0.1},
                                     {3, 2, 10, 2, 1, 0.1},
                                     {4, 3, 200, 2, 1, 0.1}});
  const auto fcfs = simulate(w, under("fcfs"));
  EXPECT_NEAR(job_result_of(*fcfs, 3).start_s, 150, 1e-3);
  for (const char* policy : {"easy", "conservative"}) {
    SimOptions options = under(policy);
    options.estimate_factor = 1;
    const auto run = simulate(w, options);
    EXPECT_NEAR(job_result_of(*run, 3).start_s, 2, 1e-3) << policy;
    EXPECT_NEAR(job_result_of(*run, 2).start_s, 100, 1e-3) << policy;
    EXPECT_NEAR(job_result_of(*run, 4).start_s, 150, 1e-3) << policy;
  }
}

TEST(Simulate, IdleJobsYieldTheirTurns) {
  Workload w = workload_of(1, {});
  for (std::uint64_t n = 1; n <= 4; ++n) w.jobs.push_back({n, 0, 3600, 1, 1, 0.1});
  SimOptions options = under("dqt");
  const auto busy = simulate(w, options);
  options.idle_jobs = 1;
  const auto idle = simulate(w, options);
  EXPECT_LT(idle->job_results.back().end_s, busy->job_results.back().end_s * 0.9);
}

TEST(Simulate, FillerAdvancesOutsideItsTurn) {
  const Workload w = workload_of(1, {{1, 0, 100, 1, 1, 0.1}, {2, 0, 100, 1, 1, 0.1}});
  SimOptions options = under("dqt");
  options.fill = 0.5;
  const auto run = simulate(w, options);
  EXPECT_NEAR(run->job_results.back().end_s, 200 / 1.5, 1);
}

// The two jobs need 1.5 times the memory. Without turns in memory the second one waits.
TEST(Simulate, JobsTakeTurnsInMemory) {
  const Workload w = workload_of(4, {{1, 0, 4000, 4, 1, 0.75}, {2, 10, 2000, 4, 1, 0.75}});
  const auto without = simulate(w, under("dqt"));
  EXPECT_NEAR(job_result_of(*without, 2).start_s, 4000, 1);
  SimOptions options = under("dqt");
  options.memory.page_rate = 2e9;
  const auto run = simulate(w, options);
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_LE(run->memory_high, 1);
  EXPECT_GT(run->pagings, 0U);
  EXPECT_LT(job_result_of(*run, 2).start_s, 700);
  EXPECT_LT(job_result_of(*run, 2).end_s, 4700);
  EXPECT_LT(job_result_of(*run, 1).end_s, 6000 * 1.12) << "paging takes a tenth";
}

TEST(Simulate, TurnsInMemoryHoldInvariants) {
  for (const std::uint64_t seed : {1U, 2U}) {
    Workload w = at_load(lublin(32, 300, seed), 0.9);
    draw_memory(w, seed);
    for (SimJob& job : w.jobs) job.memory *= 2;
    SimOptions options = under("matrix");
    options.memory.page_rate = 1e9;
    const auto run = simulate(w, options);
    ASSERT_TRUE(run) << run.error().message();
    EXPECT_EQ(run->job_results.size(), w.jobs.size());
    EXPECT_LE(run->memory_high, 1);
  }
}

TEST(Report, HasFiguresOfRun) {
  const Workload w = workload_of(4, {{1, 0, 100, 4, 1, 0.1}, {2, 50, 100, 4, 2, 0.1}});
  const SimOptions options = under("fcfs");
  const auto run = simulate(w, options);
  const PolicyResult r = result_of(w, options, 0.5, *run);
  EXPECT_NEAR(r.all.bounded_slowdown_mean, 1.25, 1e-3);
  EXPECT_NEAR(r.all.wait_mean_s, 25, 1e-3);
  EXPECT_NEAR(r.fairness, 2.5 * 2.5 / 2 / (1 + 1.5 * 1.5), 1e-3);
  EXPECT_NEAR(r.utilisation, 1, 1e-3);
  for (const char* key :
       {"\"policy\": \"fcfs\"", "\"load\": 0.500", "\"bounded_slowdown_mean\": 1.25",
        "\"response_p95_s\"", "\"utilisation\""}) {
    EXPECT_NE(as_json({r}).find(key), std::string::npos) << key;
  }
  EXPECT_NE(as_plot(overview(), {r}).find("<polyline"), std::string::npos);
  EXPECT_NE(as_timeline(r, *run).find("job 2: 4 nodes"), std::string::npos);
}

TEST(Report, HasRecordOfEachJobInOrder) {
  const Workload w = workload_of(4, {{1, 0, 100, 4, 1, 0.25}, {2, 50, 10, 4, 2, 0.1}});
  const SimOptions options = under("dqt");
  const auto run = simulate(w, options);
  const std::string text = as_records(w, options, *run);
  const auto first = text.find("\"job\": 1, \"user\": 1, \"nodes\": 4, \"memory\": 0.250000");
  const auto second = text.find("\"job\": 2");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_LT(first, second) << "the second ends first";
  EXPECT_NE(text.find("\"limit_s\": 500.000000"), std::string::npos) << text;
}

// The job is placed at once but enters the timetable later: meanwhile the other job has all the
// time.
TEST(Simulate, StartAndRunMayCost) {
  const Workload w = workload_of(4, {{1, 0, 100, 4, 1, 0.1}, {2, 10, 20, 4, 1, 0.1}});
  SimOptions options = under("dqt");
  options.start_cost_s = 5;
  options.run_cost_s = 1;
  const auto run = simulate(w, options);
  EXPECT_NEAR(job_result_of(*run, 1).start_s, 5, 1e-6);
  EXPECT_NEAR(job_result_of(*run, 2).start_s, 15, 1e-6);
  EXPECT_NEAR(job_result_of(*run, 2).end_s, 15 + 2 * 21, 0.3);
  EXPECT_NEAR(job_result_of(*run, 1).end_s, 5 + 101 + 21, 0.3);
}

TEST(Figures, HaveEveryMeasureOfReport) {
  const Workload w = workload_of(32, {{1, 0, 100, 32, 1, 0.1}, {2, 50, 4000, 1, 2, 0.1}});
  std::vector<PolicyResult> results;
  for (const double load : {0.5, 0.7}) {
    for (const char* policy : {"fcfs", "easy"}) {
      const SimOptions options = under(policy);
      results.push_back(result_of(w, options, load, *simulate(w, options)));
    }
  }
  std::vector<std::string> names;
  for (const Figure& figure : all_figures()) {
    names.push_back(figure.name);
    const std::string drawn = as_plot(figure, results);
    const std::string tables = as_tables(figure, results);
    for (const Measure& measure : figure.measures) {
      EXPECT_NE(drawn.find(measure.title), std::string::npos) << measure.title;
      EXPECT_NE(tables.find("test: " + measure.title), std::string::npos) << measure.title;
    }
    EXPECT_EQ(drawn.find("nan"), std::string::npos) << figure.name;
    EXPECT_EQ(drawn.find("inf"), std::string::npos) << figure.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"slowdown", "response", "wait", "utilisation", "size",
                                             "run-time", "fairness", "switches", "memory"}));
}

TEST(Figures, TableShowsLoadsByPolicies) {
  const Workload w = workload_of(4, {{1, 0, 100, 4, 1, 0.1}, {2, 50, 100, 4, 2, 0.1}});
  const SimOptions options = under("fcfs");
  const PolicyResult r = result_of(w, options, 0.5, *simulate(w, options));
  const std::string tables = as_tables(figures_named("slowdown,size")->front(), {r});
  EXPECT_NE(tables.find("\n load         fcfs\n 0.50        1.250\n"), std::string::npos) << tables;
  const std::string sizes = as_tables(figures_named("size")->front(), {r});
  EXPECT_NE(sizes.find("1 node: mean wait, s\n load         fcfs\n 0.50            -\n"),
            std::string::npos)
      << sizes;
}

TEST(Figures, UnknownNameIsRefused) {
  const auto figures = figures_named("wait,lowdown");
  ASSERT_FALSE(figures);
  EXPECT_NE(figures.error().message().find("no figure 'lowdown'"), std::string::npos);
  EXPECT_FALSE(figures_named(""));
}

}  // namespace
}  // namespace score::scsim
