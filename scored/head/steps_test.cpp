// These tests show how the head accepts, shows and recovers batch jobs and their steps.
#include "tests/support/head/head_fixture.hpp"

#include <algorithm>
#include <csignal>

namespace score::head {
namespace {

class StepsTest : public HeadFixture {
 protected:
  static wire::Submit script(std::uint32_t nodes = 2) {
    wire::Submit message = submission(nodes);
    message.mutable_resources()->set_allocation(true);
    message.mutable_spec()->set_script("#!/bin/sh\n");
    message.mutable_spec()->set_stdin_rank(-2);
    message.set_detached(true);
    return message;
  }

  static wire::Submit step_of(JobId job) {
    wire::Submit message = submission(0);
    message.mutable_resources()->set_inside(job.value());
    message.mutable_resources()->set_cpus_per_task(0);
    message.set_detached(true);
    return message;
  }
};

wire::LaunchSpec spec_in(const wire::PrepareTasks& prepare) {
  wire::LaunchSpec spec;
  EXPECT_TRUE(spec.ParseFromString(prepare.spec()));
  return spec;
}

TEST_F(StepsTest, ScriptIsOneTaskThatKnowsAllNodes) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  const JobId job = job_of(run_on({&first}, client, script()));
  EXPECT_TRUE(second.connection->all<wire::PrepareTasks>().empty());
  const auto prepare = first.connection->all<wire::PrepareTasks>().back();
  EXPECT_EQ(prepare.tasks_on_node_size(), 1);
  const wire::LaunchSpec spec = spec_in(prepare);
  EXPECT_EQ(spec.nodelist(), "n0");
  const std::vector<std::string> env(spec.job_env().begin(), spec.job_env().end());
  EXPECT_NE(std::ranges::find(env, "SCORE_NODELIST=n[0-1]"), env.end());
  EXPECT_NE(std::ranges::find(env, fmt::format("SCORE_ALLOCATION={}", job)), env.end());
  EXPECT_EQ(status_of(client, job).tasks(), 2U);
}

TEST_F(StepsTest, StepHasJobSizeByDefault) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  const JobId job = job_of(run_on({&first}, client, script()));
  const JobId step = job_of(run_on({&first, &second}, client, step_of(job)));
  const wire::LaunchSpec spec = spec_in(second.connection->all<wire::PrepareTasks>().back());
  EXPECT_EQ(spec.job(), job.value());
  EXPECT_EQ(spec.step(), "0");
  const auto shown = status_of(client, step);
  EXPECT_EQ(shown.step_of(), job.value());
  EXPECT_EQ(shown.tasks(), 2U);
  EXPECT_EQ(client.connection->all<wire::Submitted>().back().step_of(), job.value());
}

TEST_F(StepsTest, OnlyTheJobsUserStartsSteps) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient alice = connect(kAlice);
  FakeClient bob = connect(kBob);
  FakeClient root = connect(UserId(0));
  const JobId job = job_of(run_on({&first}, alice, script()));
  for (FakeClient* other : {&bob, &root}) {
    EXPECT_EQ(submit(*other, step_of(job)), JobId());
    EXPECT_EQ(refusal(*other), "job 1 belongs to another user");
  }
  EXPECT_EQ(submit(alice, step_of(JobId(77))), JobId());
  EXPECT_EQ(refusal(alice), "no job 77");
  first.say(Exited{newest(first), {{Rank(0), 0, 0}}, {}});
  settle();
  EXPECT_EQ(submit(alice, step_of(job)), JobId());
  EXPECT_EQ(refusal(alice), "job 1 has ended");
}

TEST_F(StepsTest, ScriptAndAllocationRequireEachOther) {
  FakeClient client = connect(kAlice);
  wire::Submit bare = script();
  bare.mutable_spec()->clear_script();
  EXPECT_EQ(submit(client, bare), JobId());
  wire::Submit program = script();
  program.mutable_resources()->set_allocation(false);
  EXPECT_EQ(submit(client, program), JobId());
  wire::Submit odd = script();
  odd.mutable_spec()->set_script("echo\n");
  EXPECT_EQ(submit(client, odd), JobId());
}

TEST_F(StepsTest, EndedStepsStayInTheRecordAcrossRestart) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  const JobId job = job_of(run_on({&first}, client, script()));
  const AttemptId of_script = newest(first);
  run_on({&first, &second}, client, step_of(job));
  const AttemptId ended = newest(first);
  first.say(Exited{ended, {{Rank(0), 3, 0}}, {}});
  second.say(Exited{ended, {{Rank(1), 0, 0}}, {}});
  settle();
  const JobId running = job_of(run_on({&first, &second}, client, step_of(job)));
  const AttemptId of_step = newest(first);
  start_head();
  first = connect_node(
      0, {{of_script, AttemptPhase::Running, {}, {}}, {of_step, AttemptPhase::Running, {}, {}}});
  second = connect_node(1, {{of_step, AttemptPhase::Running, {}, {}}});
  settle();
  FakeClient again = connect(kAlice);
  const auto shown = status_of(again, job);
  EXPECT_EQ(shown.state(), static_cast<std::uint32_t>(JobState::Running));
  ASSERT_EQ(shown.steps_size(), 2);
  EXPECT_EQ(shown.steps(0).exit_code(), 3);
  EXPECT_EQ(shown.steps(1).job(), running.value());
  EXPECT_EQ(shown.steps(1).step(), 1U);
  first.say(Exited{of_script, {{Rank(0), 0, 0}}, {}});
  settle();
  EXPECT_FALSE(first.connection->all<wire::KillTasks>().empty());
  for (FakeNode* node : {&first, &second}) node->say(Exited{of_step, {}, {}});
  settle();
  EXPECT_EQ(state_of(again, job), JobState::Completed);
  EXPECT_EQ(state_of(again, running), JobState::Cancelled);
}

TEST_F(StepsTest, CancelSignalsTheScriptAndItsSteps) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  const JobId job = job_of(run_on({&first}, client, script()));
  const JobId step = job_of(run_on({&first, &second}, client, step_of(job)));
  client.say(cancel(job, 3s));
  settle();
  EXPECT_EQ(first.connection->all<wire::SignalTasks>().size(), 4U) << "TERM and CONT to both";
  const AttemptId of_step = newest(first);
  for (FakeNode* node : {&first, &second}) {
    const Rank rank(node == &first ? 0 : 1);
    node->say(Exited{of_step, {{rank, 0, SIGTERM}}, {}});
  }
  settle();
  EXPECT_EQ(state_of(client, step), JobState::Cancelled);
}

}  // namespace
}  // namespace score::head
