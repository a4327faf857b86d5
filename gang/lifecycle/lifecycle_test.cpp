// Tests launch, idleness, meetings and end of single jobs, without a Cluster.
#include "gang/lifecycle/launching.hpp"
#include "tests/support/gang/schedule_bench.hpp"

namespace score::gang {
namespace {

struct LifeBench : ScheduleBench {
  LifeBench() : ScheduleBench(2) {
    for (NodeIndex node = 0; node < 2; ++node) {
      publisher.add_node();
      publisher.node_connected(node, false);
    }
  }

  Job& launched(const base::ResourceRequest& request) {
    const auto shape = check_request(tables.nodes, request, true);
    Job& job = tables.jobs.add(JobId{++last_job}, UserId{1000}, request, *shape);
    EXPECT_TRUE(placer.try_new(job));
    launching.launch(job, step);
    return job;
  }

  Job& running(const base::ResourceRequest& request) {
    Job& job = launched(request);
    for (std::size_t m = 0; m < job.members->count(); ++m) launching.prepared(job, m, step);
    if (publisher.publish(step)) launching.start_due(step);
    for (std::size_t m = 0; m < job.members->count(); ++m) launching.began(job, m, step);
    return job;
  }

  template <typename Message>
  [[nodiscard]] std::size_t sent() const {
    std::size_t count = 0;
    for (const Action& action : step.actions) {
      const auto* send = std::get_if<SendToNode>(&action);
      count += send && std::holds_alternative<Message>(send->message) ? 1 : 0;
    }
    return count;
  }

  Publisher publisher{tables, placer.matrix()};
  Meetings meetings{tables.nodes};
  Ending ending{tables, placer, publisher, meetings};
  IdleJobs idle{tables, ending};
  Launching launching{tables, publisher, ending, idle};
};

TEST(Launching, JobStartsWhenAllItsNodesHavePrepared) {
  LifeBench b;
  Job& job = b.launched(LifeBench::on_nodes(2));
  EXPECT_EQ(b.sent<base::PrepareTasks>(), 2U);
  b.launching.prepared(job, 0, b.step);
  EXPECT_EQ(job.state, JobState::Launching);
  b.launching.prepared(job, 1, b.step);
  EXPECT_EQ(job.state, JobState::Running);
  EXPECT_TRUE(b.launching.is_start_due(job.id));
  EXPECT_EQ(b.sent<base::StartTasks>(), 0U) << "the timetable comes first";
  b.launching.start_due(b.step);
  EXPECT_EQ(b.sent<base::StartTasks>(), 2U);
  EXPECT_FALSE(b.launching.is_start_due(job.id));
}

TEST(Launching, MissingAnswerEndsTheLaunch) {
  LifeBench b;
  Job& job = b.launched(LifeBench::on_nodes(2));
  b.launching.prepared(job, 0, b.step);
  b.launching.launch_overdue(job, b.step);
  EXPECT_EQ(job.outcome->ending(), JobState::LaunchFailed);
  EXPECT_EQ(job.outcome->reasons(), std::vector<std::string>{"no answer within 8.5s from node1"});
  EXPECT_EQ(b.sent<base::KillTasks>(), 2U);
}

TEST(Ending, JobIsFinalWhenItIsGoneEverywhere) {
  LifeBench b;
  Job& job = b.running(LifeBench::on_nodes(2));
  b.ending.end(job, {JobState::Cancelled, "no longer needed", base::kExitInterrupted}, b.step);
  b.ending.end(job, {JobState::Failed, "too late"}, b.step);
  EXPECT_EQ(job.state, JobState::Completing);
  EXPECT_EQ(b.sent<base::KillTasks>(), 2U);
  b.ending.gone(job, 0, b.step);
  EXPECT_EQ(job.state, JobState::Completing);
  b.ending.gone(job, 1, b.step);
  EXPECT_EQ(job.state, JobState::Cancelled);
  EXPECT_EQ(b.sent<base::ForgetTasks>(), 2U);
  EXPECT_TRUE(b.placer.on_node(0).jobs.empty());
}

TEST(Ending, JobIsRequeuedAfterLostNodeIfAllowed) {
  LifeBench b;
  auto request = LifeBench::on_nodes(2);
  request.requeue = base::Requeue::Yes;
  Job& job = b.running(request);
  b.ending.end(job, {JobState::NodeFailed, "node1 lost", 1, Fault::Machine}, b.step);
  b.ending.gone(job, 1, b.step);
  b.ending.gone(job, 0, b.step);
  EXPECT_EQ(job.state, JobState::Pending);
  EXPECT_EQ(job.restarts, 1U);
  EXPECT_EQ(job.lost, "node1 lost");
  EXPECT_EQ(b.placer.place_waiting(b.step.now), std::vector{job.id});
}

TEST(Ending, MissingExitsFailTheJob) {
  LifeBench b;
  Job& job = b.running(LifeBench::on_nodes(1));
  b.ending.exited(job, 0, {job.attempt(), {}, {}}, b.step);
  EXPECT_EQ(job.state, JobState::NodeFailed);
  EXPECT_EQ(job.outcome->reasons(),
            std::vector<std::string>{"node0 did not report how its tasks ended"});
}

TEST(IdleJobs, DeadlockedJobEndsIfRequested) {
  LifeBench b;
  auto request = LifeBench::on_nodes(1);
  request.kill_deadlock = true;
  Job& job = b.running(request);
  b.idle.report(job, 0, {.idle = true, .waits = true}, b.step);
  EXPECT_EQ(job.idleness->activity(), JobActivity::Idle);
  b.step.now = *b.tables.deadlines.next();
  const auto due = b.tables.deadlines.take_due(b.step.now);
  ASSERT_EQ(due->kind, DeadlineKind::Idle);
  b.idle.judge(job, b.step);
  EXPECT_EQ(job.outcome->ending(), JobState::Failed);
}

TEST(Meetings, AreHeldWhenMembersCameOrAreGone) {
  LifeBench b;
  Job& job = b.running(LifeBench::on_nodes(2));
  const base::MeetingReached reached{job.attempt(), base::Meeting::Ready, TimePoint{2h}};
  EXPECT_TRUE(b.meetings.came(job, 0, reached, b.step));
  EXPECT_EQ(b.sent<base::MetAll>(), 0U);
  job.members.edit().gone(1);
  b.meetings.hold_complete(job, b.step);
  EXPECT_EQ(b.sent<base::MetAll>(), 1U);
  b.meetings.hold_complete(job, b.step);
  EXPECT_EQ(b.sent<base::MetAll>(), 1U) << "it was held";
  EXPECT_FALSE(
      b.meetings.came(job, 0, {job.attempt(), base::Meeting::Ready, TimePoint{1h}}, b.step));
}

}  // namespace
}  // namespace score::gang
