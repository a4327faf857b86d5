// These tests run job arrays with a store and over restarts of the head.
#include "scored/head/jobs/arrays.hpp"

#include "tests/support/head/head_fixture.hpp"

namespace score::head {
namespace {

class ArraysTest : public HeadFixture {
 protected:
  static wire::Submit array(std::string tasks) {
    wire::Submit message = submission(1);
    message.set_array(std::move(tasks));
    message.set_detached(true);
    message.mutable_spec()->set_stdout_path("/tmp/out-%A_%3a-%t");
    return message;
  }

  wire::JobList list(FakeClient& client, bool expand, bool finished = false) {
    wire::ListJobs question;
    question.set_expand(expand);
    question.set_finished(finished);
    client.say(question);
    return client.connection->all<wire::JobList>().back();
  }

  // Returns active attempts that the node was asked for, oldest first.
  std::vector<AttemptId> news(FakeNode& node) {
    std::vector<AttemptId> attempts;
    for (const auto& prepare : node.connection->all<wire::PrepareTasks>()) {
      const AttemptId attempt(prepare.attempt());
      if (!done_.contains(attempt)) attempts.push_back(attempt);
    }
    return attempts;
  }

  void start(FakeNode& node, AttemptId attempt) {
    node.session->dispatch(frame_of(wire::Heartbeat()));
    node.say(Prepared{attempt});
    pass(200ms);  // a second timetable comes a little later
    node.say(Started{attempt});
    settle();
  }

  void end(FakeNode& node, AttemptId attempt, std::int32_t code = 0) {
    done_.insert(attempt);
    node.say(Exited{attempt, {{Rank(0), code, 0}}, ""});
    settle_more();
  }

  // Each task becomes a job in a commit after that of the previous task.
  void settle_more() {
    for (int i = 0; i < 12; ++i) settle();
  }

  JobId submit_array(FakeClient& client, const std::string& tasks) {
    const JobId job = submit(client, array(tasks));
    settle_more();
    return job;
  }

  // Runs every task of every array until there is none left; returns how many ran.
  int run_all(FakeNode& node, std::int32_t code = 0) {
    int count = 0;
    for (auto attempts = news(node); !attempts.empty(); attempts = news(node)) {
      for (const AttemptId attempt : attempts) {
        start(node, attempt);
        end(node, attempt, code);
        ++count;
      }
    }
    return count;
  }

  void cancel(FakeClient& client, std::uint64_t job, const std::string& tasks) {
    wire::CancelJob message;
    message.set_job(job);
    message.set_tasks(tasks);
    client.say(message);
    settle_more();
  }

  std::string last_error(FakeClient& client) {
    return client.connection->all<wire::Failed>().back().error().text();
  }

  std::set<AttemptId> done_;
};

TEST_F(ArraysTest, ArrayIsOneRecordUntilTasksHavePlaces) {
  FakeClient client = connect(kAlice);
  ASSERT_EQ(submit_array(client, "0-99999"), JobId(1));
  const auto folded = list(client, false);
  ASSERT_EQ(folded.jobs_size(), 1);
  EXPECT_EQ(folded.jobs(0).array().waiting_count(), 100'000U);
  EXPECT_LE(list(client, true).jobs_size(), 2);  // the array, and the task in the queue
  EXPECT_EQ(static_cast<JobState>(folded.jobs(0).state()), JobState::Pending);
}

TEST_F(ArraysTest, RunsEveryTaskWithItsNumber) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  submit_array(client, "3-9:3");
  const auto prepares = node.connection->all<wire::PrepareTasks>();
  ASSERT_EQ(prepares.size(), 3U);
  wire::LaunchSpec spec;
  ASSERT_TRUE(spec.ParseFromString(prepares[1].spec()));
  const std::vector<std::string> env(spec.env().begin(), spec.env().end());
  EXPECT_EQ(env, (std::vector<std::string>{"SCORE_ARRAY_JOB_ID=1", "SCORE_ARRAY_TASK_ID=6"}));
  EXPECT_EQ(spec.stdout_path(), "/tmp/out-1_006-%t");
  EXPECT_EQ(spec.job(), 3U);
  EXPECT_EQ(static_cast<JobState>(status_of(client, JobId(1)).state()), JobState::Running);
  EXPECT_EQ(list(client, true).jobs_size(), 4);
  EXPECT_EQ(run_all(node), 3);
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Completed);
  EXPECT_EQ(status_of(client, JobId(1)).array().completed_count(), 3U);
  EXPECT_EQ(list(client, false, true).jobs_size(), 1);
  EXPECT_EQ(list(client, true, true).jobs_size(), 4);
}

TEST_F(ArraysTest, NeverRunsMoreTasksThanItsLimit) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  submit_array(client, "0-9%2");
  EXPECT_EQ(news(node).size(), 2U);
  EXPECT_EQ(status_of(client, JobId(1)).array().waiting(), "2-9%2");
  start(node, news(node)[0]);
  end(node, news(node)[0]);
  EXPECT_EQ(news(node).size(), 2U);
  EXPECT_EQ(run_all(node), 9);
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Completed);
}

TEST_F(ArraysTest, FailsWhenATaskFails) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  submit_array(client, "0-1");
  const auto attempts = news(node);
  start(node, attempts[0]);
  end(node, attempts[0], 3);
  start(node, attempts[1]);
  end(node, attempts[1]);
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Failed);
  EXPECT_EQ(status_of(client, JobId(1)).reasons(0), "1 of 2 tasks did not complete");
  EXPECT_EQ(status_of(client, JobId(1)).exit_code(), 1);
}

TEST_F(ArraysTest, RestartLosesAndRepeatsNoTask) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  submit_array(client, "0-19%3");
  auto attempts = news(node);
  ASSERT_EQ(attempts.size(), 3U);
  for (const AttemptId attempt : attempts) start(node, attempt);
  end(node, attempts[0]);
  attempts = news(node);
  start(node, attempts[2]);
  start_head();
  std::vector<AttemptReport> reports;
  for (const AttemptId attempt : attempts) {
    reports.push_back({attempt, AttemptPhase::Running, {}, ""});
  }
  FakeNode again = connect_node(0, reports);
  settle_more();
  FakeClient other = connect(kAlice);
  const auto status = status_of(other, JobId(1));
  EXPECT_EQ(status.array().running_count(), 3U);
  EXPECT_EQ(status.array().completed_count(), 1U);
  EXPECT_EQ(status.array().waiting(), "4-19%3");
  for (const AttemptId attempt : attempts) end(again, attempt);
  EXPECT_EQ(run_all(again), 16);
  EXPECT_EQ(state_of(other, JobId(1)), JobState::Completed);
  EXPECT_EQ(status_of(other, JobId(1)).array().completed_count(), 20U);
}

TEST_F(ArraysTest, TasksCanBeCancelledInRanges) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  submit_array(client, "0-9%2");
  const auto attempts = news(node);
  for (const AttemptId attempt : attempts) start(node, attempt);
  cancel(client, 1, "1,5-7");
  EXPECT_EQ(status_of(client, JobId(1)).array().waiting(), "2-4,8-9%2");
  end(node, attempts[1]);
  EXPECT_EQ(state_of(client, JobId(3)), JobState::Cancelled);
  cancel(client, 1, "7");
  EXPECT_EQ(last_error(client), "no task 7 of job 1 is left");
  EXPECT_EQ(run_all(node), 6);
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Cancelled);
  EXPECT_EQ(status_of(client, JobId(1)).reasons(0), "4 of 10 tasks were cancelled");
  EXPECT_EQ(status_of(client, JobId(1)).array().completed_count(), 6U);
}

TEST_F(ArraysTest, RestartRemembersCancelledWaitingTasks) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  submit_array(client, "0-9%2");
  const auto attempts = news(node);
  ASSERT_EQ(attempts.size(), 2U);
  for (const AttemptId attempt : attempts) start(node, attempt);
  cancel(client, 1, "5-7");
  start_head();
  FakeNode again = connect_node(0, {{attempts[0], AttemptPhase::Running, {}, ""},
                                    {attempts[1], AttemptPhase::Running, {}, ""}});
  settle_more();
  FakeClient other = connect(kAlice);
  EXPECT_EQ(status_of(other, JobId(1)).array().failed_count(), 3U);
  for (const AttemptId attempt : attempts) end(again, attempt);
  EXPECT_EQ(run_all(again), 5);
  EXPECT_EQ(state_of(other, JobId(1)), JobState::Cancelled);
  EXPECT_EQ(status_of(other, JobId(1)).array().completed_count(), 7U);
  EXPECT_EQ(status_of(other, JobId(1)).reasons(0), "3 of 10 tasks were cancelled");
}

TEST_F(ArraysTest, BatchTasksAndStepsHaveTheTaskNumbers) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  wire::Submit script = array("4-5%1");
  script.mutable_resources()->set_allocation(true);
  script.mutable_spec()->set_script("#!/bin/sh\n");
  script.mutable_spec()->set_stdin_rank(-2);
  ASSERT_EQ(submit(client, script), JobId(1));
  settle_more();
  ASSERT_EQ(news(node).size(), 1U);
  start(node, news(node)[0]);
  wire::Submit step = submission(1);
  step.mutable_resources()->set_inside(2);
  step.mutable_spec()->set_stdout_path("step-%A-%a-%j");
  ASSERT_EQ(submit(client, step), JobId(3));
  const auto prepares = node.connection->all<wire::PrepareTasks>();
  ASSERT_EQ(prepares.size(), 2U);
  wire::LaunchSpec spec;
  ASSERT_TRUE(spec.ParseFromString(prepares[0].spec()));
  EXPECT_EQ(spec.script(), "#!/bin/sh\n");
  EXPECT_EQ(spec.stdout_path(), "/tmp/out-1_004-%t");
  EXPECT_EQ(spec.job_env(0), "SCORE_ALLOCATION=2");
  ASSERT_TRUE(spec.ParseFromString(prepares[1].spec()));
  EXPECT_EQ(spec.stdout_path(), "step-1-4-%j");
  EXPECT_EQ(spec.job(), 2U);
  EXPECT_EQ(spec.env(spec.env_size() - 1), "SCORE_ARRAY_TASK_ID=4");
  step.set_array("0-1");
  step.set_detached(true);
  EXPECT_EQ(submit(client, step), JobId());
  EXPECT_EQ(last_error(client), "a step cannot be an array or wait for jobs or times");
  step.clear_array();
  step.mutable_resources()->set_inside(1);  // the array itself never runs
  EXPECT_EQ(submit(client, step), JobId());
}

TEST_F(ArraysTest, TheWholeArrayIsCancelled) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  submit_array(client, "0-9%2");
  const auto attempts = news(node);
  for (const AttemptId attempt : attempts) start(node, attempt);
  cancel(client, 1, "");
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Running);  // its tasks have their grace
  for (const AttemptId attempt : attempts) end(node, attempt);
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Cancelled);
  EXPECT_EQ(news(node).size(), 0U);
  EXPECT_EQ(status_of(client, JobId(1)).reasons(0), "cancelled by u1000");
}

TEST_F(ArraysTest, CancelSurvivesARestart) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  submit_array(client, "0-9%2");
  const auto attempts = news(node);
  for (const AttemptId attempt : attempts) start(node, attempt);
  cancel(client, 1, "");
  start_head();
  FakeNode again = connect_node(0, {{attempts[0], AttemptPhase::Running, {}, ""},
                                    {attempts[1], AttemptPhase::Running, {}, ""}});
  settle_more();
  for (const AttemptId attempt : attempts) end(again, attempt);
  FakeClient other = connect(kAlice);
  EXPECT_EQ(news(again).size(), 0U);
  EXPECT_EQ(state_of(other, JobId(1)), JobState::Cancelled);
}

TEST_F(ArraysTest, HeldArrayStartsNoTask) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  wire::Submit held = array("0-2");
  held.mutable_resources()->set_held(true);
  submit(client, held);
  settle_more();
  EXPECT_EQ(news(node).size(), 0U);
  EXPECT_EQ(status_of(client, JobId(1)).reasons(0), "held until it is released");
  wire::ControlJob release;
  release.set_job(1);
  release.set_what(wire::ControlJob::RELEASE);
  client.say(release);
  settle_more();
  EXPECT_EQ(news(node).size(), 3U);
}

TEST_F(ArraysTest, HoldAlsoHoldsTheTaskInQueue) {
  FakeClient client = connect(kAlice);
  submit_array(client, "0-2");  // there is no node: its first task waits in the queue
  wire::ControlJob control;
  control.set_job(1);
  control.set_what(wire::ControlJob::HOLD);
  client.say(control);
  settle_more();
  start_head();
  FakeNode node = connect_node(0);
  settle_more();
  EXPECT_EQ(news(node).size(), 0U);
  FakeClient other = connect(kAlice);
  control.set_what(wire::ControlJob::RELEASE);
  other.say(control);
  settle_more();
  EXPECT_EQ(news(node).size(), 3U);
}

TEST_F(ArraysTest, JobsAndArraysWaitForEachOther) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  submit(client, submission(1));
  wire::Submit second = array("0-1");
  wire::Dependency& first = *second.mutable_conditions()->add_after();
  first.set_kind(wire::Dependency::OK);
  first.set_job(1);
  ASSERT_EQ(submit(client, second), JobId(2));
  wire::Submit third = submission(1);
  wire::Dependency& last = *third.mutable_conditions()->add_after();
  last.set_kind(wire::Dependency::OK);
  last.set_job(2);
  ASSERT_EQ(submit(client, third), JobId(3));
  EXPECT_EQ(news(node).size(), 1U);
  EXPECT_EQ(status_of(client, JobId(2)).reasons(0), "waits for job 1 to succeed (afterok:1)");
  EXPECT_EQ(run_all(node), 4);
  EXPECT_EQ(state_of(client, JobId(3)), JobState::Completed);
}

TEST_F(ArraysTest, TaskIsFoundByItsNumber) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  submit_array(client, "0-9%2");
  start(node, news(node)[0]);
  end(node, news(node)[0]);
  wire::ListJobs question;
  question.add_jobs(1);
  question.set_tasks("0-1,9");
  client.say(question);
  const auto found = client.connection->all<wire::JobList>().back();
  ASSERT_EQ(found.jobs_size(), 3);  // ended, active, and the array for the waiting one
  EXPECT_EQ(found.jobs(0).job(), 2U);
  EXPECT_EQ(found.jobs(1).array_task(), 1U);
  EXPECT_EQ(found.jobs(2).job(), 1U);
}

TEST_F(ArraysTest, RefusesInvalidArrays) {
  FakeClient client = connect(kAlice);
  EXPECT_EQ(submit(client, array("0-999999999")), JobId());
  EXPECT_EQ(last_error(client),
            "array 0-999999999: 1000000000 numbers; at most 1000000 are possible");
  EXPECT_EQ(submit(client, array("5-1")), JobId());
  wire::Submit front = array("0-1");
  front.set_detached(false);
  EXPECT_EQ(submit(client, front), JobId());
  EXPECT_EQ(last_error(client), "an array has no front end: submit it with --detach");
  EXPECT_EQ(submit(client, submission(1)), JobId(1));
  cancel(client, 1, "3");
  EXPECT_EQ(last_error(client), "job 1 is not an array");
}

TEST(ArrayPattern, ExpandsOnlyArrayLetters) {
  JobInfo task;
  task.id = JobId(9);
  task.array = JobId(4);
  task.task = 7;
  EXPECT_EQ(expand_array_pattern("out-%A_%a", task), "out-4_7");
  EXPECT_EQ(expand_array_pattern("%3a%%a%j%05t%", task), "007%%a%j%05t%");
  EXPECT_EQ(expand_array_pattern("%99999999999a", task), "0000000007");
  EXPECT_EQ(expand_array_pattern("", task), "");
}

}  // namespace
}  // namespace score::head
