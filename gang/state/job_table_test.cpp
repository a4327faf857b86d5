#include "gang/state/job_table.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

struct OneJob {
  OneJob() : job(jobs.add(JobId{7}, UserId{1000}, {}, {})) {}

  // Does what Placer does.
  void place() {
    job.placed = true;
    job.members.edit().ask_all(1);
    jobs.change(job, JobEvent::Place, step);
  }

  JobTable jobs;
  Step step{TimePoint{std::chrono::seconds{1}}, {}};
  Job& job;
};

TEST(JobTable, EveryStateChangeIsAnAction) {
  OneJob t;
  t.place();
  t.jobs.change(t.job, JobEvent::AllPrepared, t.step);
  EXPECT_EQ(t.job.state, JobState::Running);
  EXPECT_EQ(t.step.actions.size(), 2U);
  EXPECT_TRUE(t.jobs.check());
}

TEST(JobTable, TracksActiveAndManagedJobs) {
  OneJob t;
  t.place();
  EXPECT_FALSE(t.jobs.is_changed()) << "a launching job has no turn yet";
  t.jobs.change(t.job, JobEvent::AllPrepared, t.step);
  EXPECT_TRUE(t.jobs.is_changed());
  EXPECT_TRUE(t.jobs.active().contains(t.job.id));
  t.jobs.mark_published();
  t.jobs.change(t.job, JobEvent::Suspend, t.step);
  EXPECT_TRUE(t.jobs.is_changed());
  EXPECT_FALSE(t.jobs.active().contains(t.job.id));
  EXPECT_TRUE(t.jobs.managed().contains(t.job.id));
}

TEST(JobTable, EndedJobCanOnlyBeForgotten) {
  OneJob t;
  const JobId id = t.job.id;
  t.jobs.forget(id);
  ASSERT_TRUE(t.jobs.contains(id)) << "it has not ended";
  EXPECT_TRUE(t.jobs.live(id));
  t.job.outcome.edit().decide(JobState::Cancelled, "no longer needed", base::kExitInterrupted);
  t.jobs.change(t.job, JobEvent::End, t.step);
  t.jobs.end(t.job, t.step);
  EXPECT_EQ(t.job.state, JobState::Cancelled);
  EXPECT_EQ(t.job.ended, t.step.now);
  EXPECT_TRUE(t.jobs.live(id).error().is(base::Errc::WrongState));
  EXPECT_EQ(t.jobs.live_count(), 0U);
  t.jobs.forget(id);
  EXPECT_TRUE(t.jobs.live(id).error().is(base::Errc::NotFound));
}

TEST(JobTable, QueueIsOrderedByQueuePriorityAge) {
  JobTable jobs;
  base::ResourceRequest normal;
  base::ResourceRequest urgent;
  urgent.priority = 5;
  base::ResourceRequest high;
  high.queue = base::Queue::High;
  const WaitKey first = jobs.add(JobId{1}, UserId{1}, normal, {}).wait;
  const WaitKey second = jobs.add(JobId{2}, UserId{1}, normal, {}).wait;
  const WaitKey third = jobs.add(JobId{3}, UserId{1}, urgent, {}).wait;
  const WaitKey fourth = jobs.add(JobId{4}, UserId{1}, high, {}).wait;
  EXPECT_LT(first, second);
  EXPECT_LT(third, first);
  EXPECT_LT(fourth, third);
}

}  // namespace
}  // namespace score::gang
