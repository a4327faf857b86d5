// These tests run jobs that wait for other jobs and for times, with a store and over restarts of
// the head.
#include "tests/support/head/head_fixture.hpp"

namespace score::head {
namespace {

class WaitingTest : public HeadFixture {
 protected:
  static wire::Submit job_after(wire::Dependency::Kind kind, std::uint64_t job) {
    wire::Submit message = submission(1);
    wire::Dependency& dependency = *message.mutable_conditions()->add_after();
    dependency.set_kind(kind);
    dependency.set_job(job);
    return message;
  }

  std::int64_t in(Duration time) const { return (clock_.wall() + time).time_since_epoch().count(); }

  void control(FakeClient& client, std::uint64_t job, wire::ControlJob::What what) {
    wire::ControlJob message;
    message.set_job(job);
    message.set_what(what);
    client.say(message);
    settle();
  }
};

TEST_F(WaitingTest, StartsWhenTheOtherJobHasSucceeded) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  submit(client, submission(1));
  const AttemptId first = newest(node);
  ASSERT_EQ(submit(client, job_after(wire::Dependency::OK, 1)), JobId(2));
  start(node, first);
  EXPECT_EQ(state_of(client, JobId(2)), JobState::Pending);
  EXPECT_EQ(status_of(client, JobId(2)).reasons_size(), 1);
  EXPECT_EQ(reason_of(client, JobId(2)), "waits for job 1 to succeed (afterok:1)");
  EXPECT_EQ(newest(node), first);
  end(node, first, 0);
  EXPECT_EQ(job_of(newest(node)), JobId(2));
  EXPECT_EQ(state_of(client, JobId(2)), JobState::Launching);
}

TEST_F(WaitingTest, WaitsOrEndsWhenTheOtherJobFailed) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  submit(client, submission(1));
  submit(client, job_after(wire::Dependency::OK, 1));
  wire::Submit ends = job_after(wire::Dependency::OK, 1);
  ends.mutable_conditions()->set_end_if_never(true);
  submit(client, ends);
  submit(client, job_after(wire::Dependency::NOT_OK, 1));
  const AttemptId first = newest(node);
  start(node, first);
  end(node, first, 1);
  const std::string why = "can never start: job 1 did not succeed (afterok:1)";
  EXPECT_EQ(state_of(client, JobId(2)), JobState::Pending);
  EXPECT_EQ(reason_of(client, JobId(2)), why);
  EXPECT_EQ(state_of(client, JobId(3)), JobState::Cancelled);
  EXPECT_EQ(reason_of(client, JobId(3)), why);
  EXPECT_EQ(status_of(client, JobId(3)).exit_code(), 125);
  EXPECT_EQ(job_of(newest(node)), JobId(4));
}

TEST_F(WaitingTest, ConditionsSurviveARestart) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  submit(client, submission(1));
  submit(client, job_after(wire::Dependency::OK, 1));
  wire::Submit later = submission(1);
  later.mutable_conditions()->set_begin_wall_ns(in(1h));
  submit(client, later);
  submit(client, job_after(wire::Dependency::OK, 2));
  const AttemptId first = newest(node);
  start(node, first);
  start_head();
  FakeNode again = connect_node(0, {{first, AttemptPhase::Running, {}, ""}});
  FakeClient other = connect(kAlice);
  settle();
  EXPECT_EQ(reason_of(other, JobId(2)), "waits for job 1 to succeed (afterok:1)");
  EXPECT_EQ(reason_of(other, JobId(4)), "waits for job 2 to succeed (afterok:2)");
  EXPECT_NE(reason_of(other, JobId(3)).find("(--begin)"), std::string::npos);
  end(again, first, 0);
  start_head();  // now only the store knows the end
  FakeNode third = connect_node(0);
  settle();
  EXPECT_EQ(job_of(newest(third)), JobId(2));
}

TEST_F(WaitingTest, BeginsAtItsTime) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  wire::Submit later = submission(1);
  later.mutable_conditions()->set_begin_wall_ns(in(1s));
  submit(client, later);
  EXPECT_NE(reason_of(client, JobId(1)).find("(--begin)"), std::string::npos);
  pass(999ms);
  EXPECT_EQ(newest(node), AttemptId());
  pass(1ms);
  EXPECT_EQ(job_of(newest(node)), JobId(1));
}

TEST_F(WaitingTest, EndsAtItsDeadline) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  wire::Submit runs = submission(1);
  runs.mutable_conditions()->set_deadline_wall_ns(in(2s));
  submit(client, runs);
  const AttemptId first = newest(node);
  start(node, first);
  wire::Submit waits = runs;
  waits.mutable_resources()->set_held(true);
  submit(client, waits);
  pass(1s);
  EXPECT_EQ(state_of(client, JobId(2)), JobState::Pending);
  EXPECT_EQ(node.connection->all<wire::SignalTasks>().size(), 0U);
  node.session->dispatch(frame_of(wire::Heartbeat()));
  pass(1s);
  EXPECT_EQ(state_of(client, JobId(2)), JobState::Cancelled);
  EXPECT_EQ(reason_of(client, JobId(2)), "it cannot end by its deadline any more (--deadline)");
  EXPECT_EQ(node.connection->all<wire::SignalTasks>().at(0).signal(), SIGTERM);
  end(node, first, 0);
  EXPECT_EQ(state_of(client, JobId(1)), JobState::TimedOut);
}

TEST_F(WaitingTest, WaitingJobCanBeHeldAndReleased) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  submit(client, submission(1));
  submit(client, job_after(wire::Dependency::STARTED, 1));
  control(client, 2, wire::ControlJob::RELEASE);
  EXPECT_EQ(state_of(client, JobId(2)), JobState::Pending);
  control(client, 2, wire::ControlJob::HOLD);
  const AttemptId first = newest(node);
  start(node, first);
  EXPECT_EQ(state_of(client, JobId(2)), JobState::Pending);
  EXPECT_EQ(reason_of(client, JobId(2)), "held until it is released");
  control(client, 2, wire::ControlJob::RELEASE);
  EXPECT_EQ(job_of(newest(node)), JobId(2));
}

TEST_F(WaitingTest, SingletonsRunOneAfterTheOther) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  FakeClient bob = connect(kBob);
  wire::Submit single = submission(1);
  single.mutable_conditions()->set_singleton(true);
  submit(client, single);
  submit(client, single);
  submit(client, single);
  EXPECT_EQ(job_of(newest(node)), JobId(1));
  submit(bob, single);
  EXPECT_EQ(job_of(newest(node)), JobId(4));
  client.say(cancel(JobId(2)));
  settle();
  EXPECT_EQ(job_of(newest(node)), JobId(4));
  const auto prepares = node.connection->all<wire::PrepareTasks>();
  const AttemptId first(prepares.at(0).attempt());
  start(node, first);
  end(node, first, 0);
  EXPECT_EQ(job_of(newest(node)), JobId(3));
}

TEST_F(WaitingTest, RefusesImpossibleConditions) {
  FakeClient client = connect(kAlice);
  EXPECT_EQ(submit(client, job_after(wire::Dependency::OK, 1)), JobId());
  EXPECT_EQ(client.connection->all<wire::Failed>().back().error().text(), "afterok:1: no job 1");
  wire::Submit late = submission(1);
  late.mutable_conditions()->set_begin_wall_ns(in(2h));
  late.mutable_conditions()->set_deadline_wall_ns(in(1h));
  EXPECT_EQ(submit(client, late), JobId());
  late.mutable_conditions()->set_deadline_wall_ns(1);
  EXPECT_EQ(submit(client, late), JobId());
  EXPECT_EQ(submit(client, job_after(static_cast<wire::Dependency::Kind>(7), 1)), JobId());
  EXPECT_EQ(submit(client, submission(1)), JobId(1));  // no number was used up
}

TEST_F(WaitingTest, PlanNamesTheConditionsOfAJob) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  submit(client, submission(1));
  wire::Plan plan;
  *plan.mutable_submission() = job_after(wire::Dependency::ENDED, 1);
  plan.mutable_submission()->mutable_conditions()->set_singleton(true);
  client.say(plan);
  const auto planned = client.connection->all<wire::Planned>().at(0);
  EXPECT_FALSE(planned.starts());
  ASSERT_EQ(planned.reasons_size(), 2);
  EXPECT_EQ(planned.reasons(0), "waits for job 1 to end (afterany:1)");
  EXPECT_EQ(planned.reasons(1), "waits for the earlier jobs of its name to end (singleton)");
}

}  // namespace
}  // namespace score::head
