#include "bench/scsim/workload.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace score::scsim {
namespace {

constexpr const char* kLog =
    "; MaxProcs: 128\n"
    "; Note: none\n"
    "1 0 -1 1451 128 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1\n"
    "2 20 -1 x 1 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1\n"
    "3 30 -1 5\n"
    "\n"
    "4 40 -1 -1 8 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1\r\n"
    "5 10 -1 7 -1 -1 -1 16 -1 -1 -1 4 1 -1 -1 -1 -1 -1";

TEST(Swf, ReadsJobsInOrderOfSubmission) {
  const Workload w = parse_swf(kLog, "log");
  ASSERT_EQ(w.jobs.size(), 2U);
  EXPECT_EQ(w.nodes, 128U);
  EXPECT_EQ(w.jobs[0].nodes, 128U);
  EXPECT_EQ(w.jobs[0].run_s, 1451);
  EXPECT_EQ(w.jobs[1].nodes, 16U) << "requested, for the allocated ones are not known";
  EXPECT_EQ(w.jobs[1].user, 4U);
  EXPECT_EQ(w.empty, 1U);
}

TEST(Swf, SkipsAndNamesMalformedLines) {
  const Workload w = parse_swf(kLog, "log");
  EXPECT_EQ(w.malformed, 2U);
  ASSERT_EQ(w.complaints.size(), 2U);
  EXPECT_EQ(w.complaints[0], "log:4: a field is not a number; line skipped");
  EXPECT_EQ(w.complaints[1], "log:5: fewer than 18 fields; line skipped");
}

TEST(Swf, ReportsUnreadableFile) {
  EXPECT_FALSE(read_swf("/nonexistent.swf"));
  const std::string path = testing::TempDir() + "empty.swf";
  std::ofstream(path) << "; MaxProcs: 3\n";
  EXPECT_FALSE(read_swf(path)) << "no job";
}

TEST(Workload, LoadIsScaledByInterArrivalTimes) {
  Workload w = lublin(128, 1000, 7);
  const Workload scaled = at_load(w, 0.7);
  EXPECT_NEAR(offered_load(scaled), 0.7, 1e-9);
  EXPECT_EQ(scaled.jobs[5].run_s, w.jobs[5].run_s);
}

TEST(Workload, SizesGrowWithMachine) {
  const Workload w = on_nodes(parse_swf(kLog, "log"), 1024);
  EXPECT_EQ(w.jobs[0].nodes, 1024U);
  EXPECT_EQ(w.jobs[1].nodes, 128U);
}

TEST(Workload, WindowHasOnlyItsJobs) {
  Workload w = parse_swf(kLog, "log");
  w.jobs = {
      {1, 0, 10, 1, 1, 0}, {2, 3600, 10, 8, 1, 0}, {3, 5000, 20, 8, 1, 0}, {4, 7200, 50, 1, 1, 0}};
  EXPECT_EQ(busiest_h(w, 1), 1);
  const Workload part = window_of(w, 1, 1);
  ASSERT_EQ(part.jobs.size(), 2U);
  EXPECT_EQ(part.jobs[0].submit_s, 3600);
  EXPECT_EQ(part.jobs[1].number, 2U);
  EXPECT_TRUE(window_of(w, 3, 5).jobs.empty());
  EXPECT_EQ(busiest_h({}, 1), 0);
}

TEST(Workload, CompressionKeepsLoad) {
  const Workload w = lublin(128, 100, 7);
  const Workload shorter = compressed(w, 60);
  EXPECT_NEAR(offered_load(shorter), offered_load(w), 1e-9);
  EXPECT_NEAR(shorter.jobs[3].run_s, w.jobs[3].run_s / 60, 1e-9);
}

TEST(Workload, SameSeedRepeatsMemoryAndUsers) {
  Workload a = lublin(128, 100, 7);
  Workload b = a;
  draw_memory(a, 3);
  draw_memory(b, 3);
  draw_users(a, 8, 3);
  draw_users(b, 8, 3);
  for (std::size_t i = 0; i < a.jobs.size(); ++i) {
    EXPECT_EQ(a.jobs[i].memory, b.jobs[i].memory);
    EXPECT_EQ(a.jobs[i].user, b.jobs[i].user);
    EXPECT_GE(a.jobs[i].memory, 1.0 / 64);
    EXPECT_LE(a.jobs[i].memory, 0.5);
  }
}

// The paper describes these properties of the model: a quarter of serial jobs, most sizes powers of
// two, run times with two peaks, arrivals by the time of day.
TEST(Lublin, HasProportionsOfModel) {
  const Workload w = lublin(256, 20'000, 1);
  double serial = 0, power = 0, is_short = 0;
  for (const SimJob& job : w.jobs) {
    serial += job.nodes == 1;
    power += (job.nodes & (job.nodes - 1)) == 0;
    is_short += job.run_s < 600;
    EXPECT_LE(job.nodes, 256U);
    EXPECT_LE(job.run_s, 162'755);
  }
  const auto count = static_cast<double>(w.jobs.size());
  EXPECT_NEAR(serial / count, 0.244, 0.02);
  EXPECT_GT(power / count, 0.82);
  EXPECT_NEAR(is_short / count, 0.6, 0.15);
}

}  // namespace
}  // namespace score::scsim
