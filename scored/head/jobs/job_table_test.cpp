#include "scored/head/jobs/job_table.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

JobInfo job(std::uint64_t id, std::uint32_t user = 1000) {
  JobInfo info;
  info.id = JobId(id);
  info.user = UserId(user);
  info.spec_bytes = Bytes(10);
  return info;
}

TEST(JobTable, CountsActiveJobsPerUser) {
  JobTable jobs;
  for (const std::uint64_t id : {1U, 2U}) {
    jobs.count_in(job(id));
    jobs.add(job(id));
  }
  jobs.count_in(job(3, 1001));  // not stored yet
  EXPECT_EQ(jobs.usage_of(UserId(1000)), (JobTable::Usage{2, 0, Bytes(20)}));
  EXPECT_EQ(jobs.usage_of(UserId(1001)), (JobTable::Usage{1, 0, Bytes(10)}));
  EXPECT_EQ(jobs.usage(), (JobTable::Usage{3, 0, Bytes(30)}));
  EXPECT_EQ(jobs.active(), 2U);
  jobs.end(*jobs.find(JobId(1)), {}, TimePoint(1s));
  jobs.count_out(job(3, 1001));
  EXPECT_EQ(jobs.usage_of(UserId(1000)).jobs, 1U);
  EXPECT_EQ(jobs.usage_of(UserId(1001)), JobTable::Usage());
  EXPECT_EQ(jobs.usage(), (JobTable::Usage{1, 0, Bytes(10)}));
  EXPECT_EQ(jobs.active_ids(), std::vector<JobId>{JobId(2)});
  EXPECT_NE(jobs.find(JobId(1)), nullptr) << "its output may still be wanted";
  jobs.erase(JobId(1));
  EXPECT_EQ(jobs.find(JobId(1)), nullptr);
}

TEST(JobTable, CountsStepsApartFromJobs) {
  JobTable jobs;
  JobInfo step = job(2);
  step.step_of = JobId(1);
  jobs.count_in(step);
  EXPECT_EQ(jobs.usage_of(UserId(1000)), (JobTable::Usage{0, 1, Bytes(10)}));
  jobs.count_out(step);
  EXPECT_EQ(jobs.usage_of(UserId(1000)), JobTable::Usage());
}

TEST(JobTable, ShowsEndedJobsForTenSeconds) {
  JobTable jobs;
  jobs.end(jobs.add(job(1)), {}, TimePoint(1s));
  jobs.end(jobs.add(job(2)), {}, TimePoint(6s));
  EXPECT_EQ(jobs.recently_ended(TimePoint(7s)).size(), 2U);
  EXPECT_EQ(jobs.recently_ended(TimePoint(12s)).size(), 1U);
  EXPECT_EQ(jobs.recently_ended(TimePoint(16s)).size(), 0U);
}

TEST(JobTable, NamesTheNodesOfTheLastAttemptOnly) {
  JobTable jobs;
  Job& added = jobs.add(job(1));
  const AttemptId last((1U << 8U) + 2U);
  ASSERT_EQ(job_of(last), JobId(1));
  added.progress.placement.attempt = last;
  added.nodes = {NodeId(3)};
  EXPECT_EQ(jobs.nodes_of(last).size(), 1U);
  EXPECT_TRUE(jobs.nodes_of(AttemptId(last.value() - 1)).empty());
  EXPECT_TRUE(jobs.nodes_of(AttemptId((2U << 8U) + 1U)).empty());
}

}  // namespace
}  // namespace score::head
