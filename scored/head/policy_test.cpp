// These tests show what users may do to their own jobs, and what needs an operator.
#include "tests/support/head/head_fixture.hpp"

namespace score::head {
namespace {

class PolicyTest : public HeadFixture {
 protected:
  static wire::Submit asking(void (*change)(wire::ResourceRequest&)) {
    wire::Submit message = submission(1);
    message.set_detached(true);
    change(*message.mutable_resources());
    return message;
  }

  // Returns the error; "" if it succeeded.
  std::string control(FakeClient& client, JobId job, wire::ControlJob::What what, int number = 0) {
    wire::ControlJob message;
    message.set_job(job.value());
    message.set_what(what);
    message.set_weight(static_cast<std::uint32_t>(number));
    message.set_priority(number);
    const std::size_t before = client.connection->all<wire::Failed>().size();
    client.say(message);
    settle();
    return client.connection->all<wire::Failed>().size() == before ? "" : refusal(client);
  }
};

TEST_F(PolicyTest, LimitsApplyOnlyToUsers) {
  const wire::Submit messages[] = {
      asking([](auto& r) { r.set_weight(101); }),
      asking([](auto& r) { r.set_priority(1); }),
      asking([](auto& r) { r.set_queue(static_cast<std::uint32_t>(Queue::High)); }),
      asking([](auto& r) { r.set_queue(static_cast<std::uint32_t>(Queue::Exclusive)); }),
  };
  FakeClient alice = connect(kAlice);
  FakeClient operator_ = connect(kOperator);
  FakeClient root = connect(UserId(0));
  for (const wire::Submit& message : messages) {
    EXPECT_EQ(submit(alice, message), JobId());
    EXPECT_NE(refusal(alice).find("(limits."), std::string::npos) << refusal(alice);
    EXPECT_NE(submit(operator_, message), JobId()) << refusal(operator_);
    EXPECT_NE(submit(root, message), JobId()) << refusal(root);
  }
  EXPECT_NE(submit(alice, submission(1)), JobId());
}

TEST_F(PolicyTest, LimitsApplyToChangesOfJobs) {
  FakeClient alice = connect(kAlice);
  FakeClient operator_ = connect(kOperator);
  const JobId job = submit(alice, submission(1));
  EXPECT_NE(control(alice, job, wire::ControlJob::SET_WEIGHT, 101), "");
  EXPECT_NE(control(alice, job, wire::ControlJob::SET_PRIORITY, 1), "");
  EXPECT_EQ(status_of(alice, job).weight(), limits::kDefaultWeight);
  EXPECT_EQ(status_of(alice, job).priority(), 0);
  EXPECT_EQ(control(alice, job, wire::ControlJob::SET_WEIGHT, 7), "");
  EXPECT_EQ(control(alice, job, wire::ControlJob::SET_PRIORITY, -7), "");
  EXPECT_EQ(status_of(alice, job).priority(), -7);
  EXPECT_EQ(control(operator_, job, wire::ControlJob::SET_WEIGHT, 10'000), "");
  EXPECT_EQ(control(operator_, job, wire::ControlJob::SET_PRIORITY, 1'000'000), "");
  start_head();
  FakeClient again = connect(kAlice);
  EXPECT_EQ(status_of(again, job).weight(), 10'000U);
  EXPECT_EQ(status_of(again, job).priority(), 1'000'000);
}

TEST_F(PolicyTest, LimitsTheJobsOfAUser) {
  config_.limits.max_jobs = 2;
  start_head();
  FakeClient alice = connect(kAlice);
  FakeClient bob = connect(kBob);
  const JobId first = submit(alice, submission(1));
  ASSERT_NE(first, JobId());
  EXPECT_NE(submit(alice, submission(1)), JobId());
  EXPECT_EQ(submit(alice, submission(1)), JobId());
  EXPECT_TRUE(refusal(alice).starts_with("2 of your jobs are queued or running: "))
      << refusal(alice);
  EXPECT_NE(submit(bob, submission(1)), JobId());
  start_head();
  FakeClient again = connect(kAlice);
  EXPECT_EQ(submit(again, submission(1)), JobId()) << "they are there after a restart, too";
  again.say(cancel(first));
  settle();
  EXPECT_NE(submit(again, submission(1)), JobId());
}

TEST_F(PolicyTest, LimitsTheDiskSpaceOfJobs) {
  config_.limits.max_job_bytes = Bytes(250'000);
  config_.limits.max_all_job_bytes = Bytes(500'000);
  start_head();
  const auto held = [](std::size_t bytes) {
    wire::Submit message = submission(1);
    message.mutable_resources()->set_held(true);
    message.mutable_spec()->mutable_programs(0)->add_argv(std::string(bytes, 'x'));
    return message;
  };
  FakeClient alice = connect(kAlice);
  const JobId first = submit(alice, held(100'000));
  EXPECT_NE(first, JobId());
  EXPECT_NE(submit(alice, held(100'000)), JobId());
  EXPECT_EQ(submit(alice, held(100'000)), JobId());
  EXPECT_NE(alice.connection->all<wire::Failed>().back().error().text().find("max_job_bytes"),
            std::string::npos);
  FakeClient operator_ = connect(kOperator);
  EXPECT_NE(submit(operator_, held(250'000)), JobId()) << "his own bound does not apply";
  EXPECT_EQ(submit(operator_, held(100'000)), JobId());
  EXPECT_NE(
      operator_.connection->all<wire::Failed>().back().error().text().find("the queue is full"),
      std::string::npos);
  start_head();
  FakeClient again = connect(kAlice);
  EXPECT_EQ(submit(again, held(100'000)), JobId()) << "counted again after a restart";
  again.say(cancel(first));
  settle();
  EXPECT_NE(submit(again, held(100'000)), JobId());
}

TEST_F(PolicyTest, ExemptUsersFollowAReload) {
  FakeClient alice = connect(kAlice);
  const wire::Submit heavy = asking([](auto& r) { r.set_weight(500); });
  EXPECT_EQ(submit(alice, heavy), JobId());
  HeadConfig changed = config_;
  changed.limits.exempt = {"1000"};
  reload(changed);
  EXPECT_NE(submit(alice, heavy), JobId());
  FakeClient bob = connect(kBob);
  EXPECT_EQ(submit(bob, heavy), JobId());
  changed.limits.max_weight = 500;
  reload(changed);
  EXPECT_NE(submit(bob, heavy), JobId());
}

TEST_F(PolicyTest, PlansAreCheckedLikeSubmissions) {
  const auto node = connect_node(0);
  FakeClient alice = connect(kAlice);
  wire::Plan plan;
  plan.set_tag(7);
  *plan.mutable_submission() = asking([](auto& r) { r.set_weight(500); });
  alice.say(plan);
  EXPECT_NE(refusal(alice).find("(limits."), std::string::npos) << refusal(alice);
  *plan.mutable_submission() = submission(99);
  alice.say(plan);
  EXPECT_NE(refusal(alice).find("99 nodes"), std::string::npos) << refusal(alice);
  plan.mutable_submission()->mutable_spec()->clear_programs();
  alice.say(plan);
  EXPECT_EQ(alice.connection->all<wire::Failed>().size(), 3U);
  EXPECT_TRUE(alice.connection->all<wire::Planned>().empty());
  *plan.mutable_submission() = submission(1);
  alice.say(plan);
  settle();
  const auto planned = alice.connection->all<wire::Planned>();
  ASSERT_EQ(planned.size(), 1U) << refusal(alice);
  EXPECT_EQ(planned[0].tag(), 7U);
  EXPECT_TRUE(planned[0].starts());
  ASSERT_EQ(planned[0].nodes_size(), 1);
  EXPECT_EQ(planned[0].nodes(0), "n0");
  EXPECT_EQ(planned[0].tasks(), 1U);
  wire::ListJobs question;
  question.set_finished(true);
  alice.say(question);
  EXPECT_EQ(alice.connection->all<wire::JobList>().back().jobs_size(), 0);
  EXPECT_TRUE(node.connection->all<wire::PrepareTasks>().empty());
  EXPECT_EQ(submit(alice, submission(1)), JobId(1)) << "it took no number";
}

TEST_F(PolicyTest, LimitsTheTimeOfScoutCommands) {
  FakeClient alice = connect(kAlice);
  wire::Submit command = asking([](auto& r) { r.set_overlay(true); });
  command.mutable_resources()->add_only_nodes("n1");
  const JobId job = submit(alice, command);
  ASSERT_NE(job, JobId()) << "it takes nothing from others: nodes may be named " << refusal(alice);
  EXPECT_EQ(Duration(status_of(alice, job).wall_limit_ns()), 1h);
  FakeClient operator_ = connect(kOperator);
  const JobId other = submit(operator_, command);
  EXPECT_EQ(status_of(operator_, other).wall_limit_ns(), 0);
}

// Otherwise the owner of a job would immediately undo what an operator does to it.
TEST_F(PolicyTest, OnlyOperatorsReleaseWhatAnOperatorHolds) {
  FakeClient alice = connect(kAlice);
  FakeClient operator_ = connect(kOperator);
  wire::Submit message = submission(1);
  message.set_detached(true);
  const JobId job = submit(alice, message);
  EXPECT_EQ(control(alice, job, wire::ControlJob::HOLD), "");
  EXPECT_EQ(control(alice, job, wire::ControlJob::RELEASE), "") << "that was her own";
  EXPECT_EQ(control(operator_, job, wire::ControlJob::HOLD), "");
  EXPECT_EQ(control(alice, job, wire::ControlJob::RELEASE),
            "u1002 has held or suspended job 1; only operators may let it continue");
  start_head();
  FakeClient again = connect(kAlice);
  EXPECT_NE(control(again, job, wire::ControlJob::RELEASE), "") << "also after a restart";
  FakeClient root = connect(UserId(0));
  EXPECT_EQ(control(root, job, wire::ControlJob::RELEASE), "");
  EXPECT_EQ(control(again, job, wire::ControlJob::HOLD), "");
  EXPECT_EQ(control(again, job, wire::ControlJob::RELEASE), "");
}

TEST_F(PolicyTest, PrivateClusterHidesOthersNamesAndPrograms) {
  FakeClient alice = connect(kAlice);
  const JobId job = submit(alice, submission(1));
  wire::Submit doomed = submission(1);
  doomed.set_immediate_ns(1);
  const JobId ended = submit(alice, doomed);
  pass(1s);
  HeadConfig changed = config_;
  changed.monitor.is_private = true;
  reload(changed);
  const auto seen_by = [this](UserId user, bool all, std::vector<JobId> jobs) {
    FakeClient client = connect(user);
    wire::ListJobs question;
    question.set_all_users(all);
    question.set_finished(true);
    for (const JobId one : jobs) question.add_jobs(one.value());
    client.say(question);
    return client.connection->all<wire::JobList>().back();
  };
  for (const auto& list : {seen_by(kBob, true, {}), seen_by(kBob, false, {job, ended})}) {
    ASSERT_EQ(list.jobs_size(), 2);
    for (const wire::JobStatus& status : list.jobs()) {
      EXPECT_NE(status.user(), kAlice.value());
      EXPECT_EQ(status.user_name() + status.name() + status.command() + status.directory(), "");
      EXPECT_EQ(status.events_size(), 0);
    }
  }
  EXPECT_EQ(seen_by(kOperator, true, {}).jobs(0).name(), "true");
  EXPECT_EQ(seen_by(kAlice, true, {}).jobs(0).name(), "true");
  FakeClient bob = connect(kBob);
  wire::GetAccounting question;
  question.set_all_users(true);
  bob.say(question);
  const auto page = bob.connection->all<wire::Accounting>().back();
  ASSERT_EQ(page.rows_size(), 1);
  EXPECT_EQ(page.rows(0).name() + page.rows(0).user_name(), "");
}

TEST_F(PolicyTest, ZeroWeightMeansTheDefault) {
  FakeClient alice = connect(kAlice);
  const JobId job = submit(alice, asking([](auto& r) { r.set_weight(0); }));
  EXPECT_EQ(status_of(alice, job).weight(), limits::kDefaultWeight);
}

TEST_F(PolicyTest, ReloadChangesTheNumberOfRequeues) {
  HeadConfig changed = config_;
  changed.settings.set(Setting::MaxRequeues, 0);
  reload(changed);
  FakeNode node = connect_node(0);
  FakeClient alice = connect(kAlice);
  const JobId job = submit(
      alice, asking([](auto& r) { r.set_requeue(static_cast<std::uint32_t>(Requeue::Yes)); }));
  const auto prepares = node.connection->all<wire::PrepareTasks>();
  ASSERT_EQ(prepares.size(), 1U);
  const AttemptId attempt(prepares[0].attempt());
  node.say(Prepared{attempt});
  pass(50ms);
  node.say(Started{attempt});
  settle();
  FakeNode back = connect_node(0);  // and knows no attempts
  settle();
  EXPECT_EQ(state_of(alice, job), JobState::NodeFailed);
}

}  // namespace
}  // namespace score::head
