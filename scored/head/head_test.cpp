// These tests drive the head with commands on one side, nodes on the other, and a real store.
#include "tests/support/head/head_fixture.hpp"

#include <csignal>
#include <random>

namespace score::head {
namespace {

class HeadTest : public HeadFixture {
 protected:
  static std::string received(const FakeClient& client) {
    std::string text;
    for (const wire::Output& output : client.connection->all<wire::Output>()) text += output.data();
    return text;
  }
};

TEST_F(HeadTest, SubmissionIsAnsweredWhenStored) {
  FakeClient client = connect(kAlice);
  client.say(submission());
  EXPECT_TRUE(client.connection->all<wire::Submitted>().empty());
  settle();
  ASSERT_EQ(client.connection->all<wire::Submitted>().size(), 1u);
  start_head();
  FakeClient again = connect(kAlice);
  EXPECT_EQ(state_of(again, JobId(1)), JobState::Pending);
  EXPECT_EQ(again.connection->all<wire::JobList>().back().jobs_size(), 1);
}

TEST_F(HeadTest, RepeatedRequestReturnsTheSameJob) {
  wire::Submit message = submission();
  message.set_request_id(proto::to_wire(RequestId::random()));
  FakeClient client = connect(kAlice);
  client.say(message);  // not yet stored when it is repeated
  const JobId second = submit(client, message);
  const auto answers = client.connection->all<wire::Submitted>();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].job(), answers[1].job());
  EXPECT_TRUE(answers[1].repeated_request());
  start_head();
  FakeClient later = connect(kAlice);
  EXPECT_EQ(submit(later, message), second);
  FakeClient bob = connect(kBob);
  EXPECT_NE(submit(bob, message), second);
}

TEST_F(HeadTest, RefusesJobsThatCanNeverRun) {
  FakeClient client = connect(kAlice);
  EXPECT_EQ(submit(client, submission(99)), JobId());
  wire::Submit no_program = submission();
  no_program.mutable_spec()->clear_programs();
  EXPECT_EQ(submit(client, no_program), JobId());
  wire::Submit relative = submission();
  relative.mutable_spec()->set_directory("here");
  EXPECT_EQ(submit(client, relative), JobId());
  EXPECT_EQ(client.connection->all<wire::Failed>().size(), 3u);
}

TEST_F(HeadTest, LaunchesOnAllNodesAndReportsTheEnd) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  const AttemptId attempt = launch(client, first, second);
  const auto prepare = second.connection->all<wire::PrepareTasks>();
  ASSERT_EQ(prepare.size(), 1u);
  wire::LaunchSpec spec;
  ASSERT_TRUE(spec.ParseFromString(prepare[0].spec()));
  EXPECT_EQ(spec.user(), kAlice.value());
  EXPECT_EQ(spec.job(), 1u);
  EXPECT_EQ(spec.nodelist(), "n[0-1]");
  client.say(attachment(JobId(1)));
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Running);
  first.session->dispatch(frame_of(output(attempt, "hello\n", 0)));
  finish(first, attempt, 0);
  finish(second, attempt, 1, 7);
  settle();
  EXPECT_EQ(received(client), "hello\n");
  const auto ended = client.connection->all<wire::JobEnded>();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].status().exit_code(), 7);
  EXPECT_EQ(static_cast<JobState>(ended[0].status().state()), JobState::Failed);
  EXPECT_FALSE(first.connection->all<wire::ForgetTasks>().empty());
}

TEST_F(HeadTest, StartsTasksOnlyWhenTheirPlacementIsStored) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  submit(client, submission());
  const AttemptId attempt(first.connection->all<wire::PrepareTasks>().at(0).attempt());
  first.say(Prepared{attempt});
  second.say(Prepared{attempt});
  EXPECT_TRUE(first.connection->all<wire::StartTasks>().empty());  // the disk has not answered
  settle();
  EXPECT_EQ(first.connection->all<wire::StartTasks>().size(), 1u);
}

TEST_F(HeadTest, RunsNothingTwiceAfterARestart) {
  AttemptId attempt;
  {
    FakeNode first = connect_node(0);
    FakeNode second = connect_node(1);
    FakeClient client = connect(kAlice);
    attempt = launch(client, first, second);
  }
  start_head();
  FakeNode first = connect_node(0, {{attempt, AttemptPhase::Running, {}, {}}});
  FakeNode second = connect_node(1, {{attempt, AttemptPhase::Running, {}, {}}});
  FakeClient client = connect(kAlice);
  client.say(attachment(JobId(1)));
  settle();
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Running);
  EXPECT_TRUE(first.connection->all<wire::PrepareTasks>().empty());
  EXPECT_TRUE(first.connection->all<wire::KillTasks>().empty());
  finish(first, attempt, 0);
  finish(second, attempt, 1);
  settle();
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Completed);
}

TEST_F(HeadTest, JobEndsIfItsFrontEndStaysAway) {
  FakeClient client = connect(kAlice);
  const JobId job = submit(client, submission());
  client.say(attachment(job));
  head_->streams().client_gone(ClientId(next_client_ - 1));
  pass(config_.front_end_grace - 1ms);
  FakeClient other = connect(kAlice);
  EXPECT_EQ(state_of(other, job), JobState::Pending);
  pass(2ms);
  EXPECT_EQ(state_of(other, job), JobState::Cancelled);
}

TEST_F(HeadTest, JobSurvivesFrontEndThatReturnsOrDetaches) {
  FakeClient client = connect(kAlice);
  const JobId job = submit(client, submission());
  client.say(attachment(job));
  head_->streams().client_gone(ClientId(next_client_ - 1));
  pass(5s);
  FakeClient back = connect(kAlice);
  back.say(attachment(job));
  pass(60s);
  EXPECT_EQ(state_of(back, job), JobState::Pending);
  wire::Detach detach;
  detach.set_job(job.value());
  back.say(detach);
  settle();
  pass(60s);
  EXPECT_EQ(state_of(back, job), JobState::Pending);
  start_head();  // it stays a detached one
  pass(60s);
  FakeClient later = connect(kAlice);
  EXPECT_EQ(state_of(later, job), JobState::Pending);
}

TEST_F(HeadTest, CancelSendsTermThenKillsAfterGrace) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  const AttemptId attempt = launch(client, first, second);
  client.say(cancel(JobId(1), 3s));
  settle();
  const auto signals = second.connection->all<wire::SignalTasks>();
  ASSERT_EQ(signals.size(), 2u);
  EXPECT_EQ(signals[0].signal(), SIGTERM);
  EXPECT_EQ(signals[1].signal(), SIGCONT) << "who is stopped must hear it too";
  EXPECT_TRUE(first.connection->all<wire::KillTasks>().empty());
  for (int i = 0; i < 4; ++i) {  // the nodes stay alive
    first.session->dispatch(frame_of(wire::Heartbeat()));
    second.session->dispatch(frame_of(wire::Heartbeat()));
    pass(1s);
  }
  EXPECT_FALSE(first.connection->all<wire::KillTasks>().empty());
  finish(first, attempt, 0, 0);
  finish(second, attempt, 1, 0);
  settle();
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Cancelled);
}

TEST_F(HeadTest, CancelledJobReportsOnlyTheCancellingUser) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  const AttemptId attempt = launch(client, first, second);
  client.say(cancel(JobId(1), 3s));
  settle();
  const auto reasons = [&] {
    wire::ListJobs question;
    question.add_jobs(1);
    client.say(question);
    const auto job = client.connection->all<wire::JobList>().back().jobs(0);
    return std::vector<std::string>(job.reasons().begin(), job.reasons().end());
  };
  first.say(TaskEnded{attempt, {Rank(0), 0, SIGTERM}});
  settle();
  EXPECT_EQ(reasons(), std::vector<std::string>{"cancelled by u1000"}) << "while it ends";
  first.say(Exited{attempt, {{Rank(0), 0, SIGTERM}}, {}});
  second.say(Exited{attempt, {{Rank(1), 0, SIGTERM}}, {}});
  settle();
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Cancelled);
  EXPECT_EQ(reasons(), std::vector<std::string>{"cancelled by u1000"});
}

TEST_F(HeadTest, CancelContinuesAfterARestart) {
  AttemptId attempt;
  {
    FakeNode first = connect_node(0);
    FakeNode second = connect_node(1);
    FakeClient client = connect(kAlice);
    attempt = launch(client, first, second);
    wire::CancelJob cancel;
    cancel.set_job(1);
    cancel.set_grace_ns(-1);
    client.say(cancel);
    settle();
  }
  start_head();
  FakeNode first = connect_node(0, {{attempt, AttemptPhase::Running, {}, {}}});
  FakeNode second = connect_node(1, {{attempt, AttemptPhase::Running, {}, {}}});
  pass_alive(config_.kill_grace, {&first, &second});
  EXPECT_FALSE(first.connection->all<wire::KillTasks>().empty());
}

// The exit code for a front end that comes back must not be that of a successful job.
TEST_F(HeadTest, EndStateSurvivesARestart) {
  AttemptId attempt;
  {
    FakeNode first = connect_node(0);
    FakeNode second = connect_node(1);
    FakeClient client = connect(kAlice);
    wire::Submit message = submission();
    message.mutable_resources()->set_wall_limit_ns(Duration(500ms).count());
    attempt = launch(client, first, second, message);
    pass(1s);
    EXPECT_EQ(state_of(client, JobId(1)), JobState::Running) << "its grace runs";
    pass_alive(config_.kill_grace, {&first, &second});
    EXPECT_EQ(state_of(client, JobId(1)), JobState::Completing);
  }
  start_head();
  FakeNode first = connect_node(0, {{attempt, AttemptPhase::Exited, {{Rank(0), 0, 9}}, {}}});
  FakeNode second = connect_node(1, {{attempt, AttemptPhase::Exited, {{Rank(1), 0, 9}}, {}}});
  settle();
  FakeClient client = connect(kAlice);
  EXPECT_EQ(state_of(client, JobId(1)), JobState::TimedOut);
  const auto status = client.connection->all<wire::JobList>().back().jobs(0);
  EXPECT_EQ(status.exit_code(), 124);
  ASSERT_EQ(status.reasons_size(), 1);
  EXPECT_EQ(status.reasons(0), "wall-time limit 0.5s reached");
}

// The job ran for 20 minutes of 30, and meanwhile the machine's time was set an hour ahead.
TEST_F(HeadTest, ElapsedTimeIncludesARestart) {
  for (const bool was_booted : {false, true}) {
    SCOPED_TRACE(was_booted ? "the machine was booted" : "the head was restarted");
    AttemptId attempt;
    {
      FakeNode first = connect_node(0);
      FakeNode second = connect_node(1);
      FakeClient client = connect(kAlice);
      wire::Submit message = submission();
      message.mutable_resources()->set_wall_limit_ns(Duration(30min).count());
      attempt = launch(client, first, second, message);
    }
    head_.reset();
    {
      auto stored = Database::open(directory_ + "/jobs.db", Database::Mode::ReadWrite);
      ASSERT_TRUE(stored);
      ASSERT_TRUE(stored->execute("UPDATE jobs SET started_ns = started_ns - 3600000000000"));
      if (was_booted) {
        ASSERT_TRUE(stored->execute("UPDATE jobs SET start_mark = 'another 1'"));
      }
    }
    start_head();
    FakeNode first = connect_node(0, {{attempt, AttemptPhase::Running, {}, {}}});
    FakeNode second = connect_node(1, {{attempt, AttemptPhase::Running, {}, {}}});
    pass_alive(config_.kill_grace, {&first, &second});
    EXPECT_EQ(first.connection->all<wire::KillTasks>().empty(), !was_booted);
  }
}

TEST_F(HeadTest, HugeLimitsAreNotReached) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::Submit message = submission();
  message.mutable_resources()->set_wall_limit_ns(INT64_MAX);
  message.mutable_resources()->set_scheduled_limit_ns(INT64_MAX);
  message.set_immediate_ns(INT64_MAX);
  ASSERT_NE(launch(client, first, second, message), AttemptId());
  pass(100ms);
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Running);
}

TEST_F(HeadTest, HoldAndWeightSurviveARestart) {
  {
    FakeClient client = connect(kAlice);
    wire::Submit message = submission();
    message.set_detached(true);
    ASSERT_EQ(submit(client, message), JobId(1));
    wire::ControlJob control;
    control.set_job(1);
    control.set_what(wire::ControlJob::HOLD);
    client.say(control);
    control.set_what(wire::ControlJob::SET_WEIGHT);
    control.set_weight(30);
    client.say(control);
    settle();
  }
  start_head();
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Pending);
  EXPECT_EQ(client.connection->all<wire::JobList>().back().jobs(0).weight(), 30u);
}

TEST_F(HeadTest, JobThatObeysTermIsCancelled) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  const AttemptId attempt = launch(client, first, second);
  client.say(cancel(JobId(1), Duration(-1)));
  settle();
  finish(first, attempt, 0);
  finish(second, attempt, 1);
  settle();
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Cancelled);
}

TEST_F(HeadTest, ImmediateJobEndsIfItCannotStart) {
  FakeClient client = connect(kAlice);
  wire::Submit message = submission();
  message.set_immediate_ns(Duration(2s).count());
  message.set_detached(true);
  const JobId job = submit(client, message);
  pass(3s);
  EXPECT_EQ(state_of(client, job), JobState::Cancelled);
  const auto list = client.connection->all<wire::JobList>().back();
  EXPECT_NE(list.jobs(0).reasons(0).find("--immediate"), std::string::npos);
  EXPECT_EQ(list.jobs(0).exit_code(), 125);
}

TEST_F(HeadTest, InputGoesToItsRankAndRoomReturns) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::Submit message = submission();
  message.mutable_spec()->set_stdin_rank(1);
  const AttemptId attempt = launch(client, first, second, message);
  client.say(attachment(JobId(1)));
  wire::Input input;
  input.set_job(1);
  input.set_data("typed");
  client.say(input);
  EXPECT_TRUE(first.connection->all<wire::TaskInput>().empty());
  ASSERT_EQ(second.connection->all<wire::TaskInput>().size(), 1u);
  wire::TaskInputTaken taken;
  taken.set_attempt(attempt.value());
  taken.set_bytes(5);
  second.session->dispatch(frame_of(taken));
  ASSERT_EQ(client.connection->all<wire::InputTaken>().size(), 1u);
  EXPECT_EQ(client.connection->all<wire::InputTaken>()[0].bytes(), 5u);
}

TEST_F(HeadTest, WatcherMayNotGiveInput) {
  FakeClient alice = connect(kAlice);
  const JobId job = submit(alice, submission());
  FakeClient watcher = connect(kAlice);
  watcher.say(attachment(job, false));
  wire::Input input;
  input.set_job(job.value());
  input.set_data("x");
  watcher.say(input);
  EXPECT_EQ(watcher.connection->all<wire::Failed>().size(), 1u);
}

TEST_F(HeadTest, JoinsFencesOfAllNodes) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::FenceEnter enter;
  enter.set_attempt(launch(client, first, second).value());
  enter.set_key_values("a");
  first.session->dispatch(frame_of(enter));
  EXPECT_TRUE(first.connection->all<wire::FenceDone>().empty());
  enter.set_key_values("b");
  second.session->dispatch(frame_of(enter));
  for (const FakeNode* node : {&first, &second}) {
    ASSERT_EQ(node->connection->all<wire::FenceDone>().size(), 1u);
    EXPECT_EQ(node->connection->all<wire::FenceDone>()[0].key_values(), "ab");
  }
}

TEST_F(HeadTest, ReportsFromOtherNodesAreIgnored) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::Submit message = submission(1);
  submit(client, message);
  FakeNode* placed = first.connection->all<wire::PrepareTasks>().empty() ? &second : &first;
  FakeNode* stranger = placed == &first ? &second : &first;
  const AttemptId attempt(placed->connection->all<wire::PrepareTasks>().at(0).attempt());
  client.say(attachment(JobId(1)));
  EXPECT_TRUE(stranger->session->dispatch(frame_of(output(attempt, "forged", 0))));
  stranger->say(Refused{attempt, 127, "forged"});
  settle();
  EXPECT_EQ(received(client), "");
  EXPECT_FALSE(is_final(state_of(client, JobId(1))));
}

TEST_F(HeadTest, NodeWithTheWrongNameIsRefused) {
  auto connection = std::make_shared<FakeConnection>("node");
  NodeSession session(head_->for_nodes(), clock_, NodeId(0), connection);
  NodeHello hello;
  hello.info.name = "n1";
  auto frame = proto::encode(NodeToHead(hello));
  EXPECT_FALSE(session.greet({frame.type, std::move(frame.payload)}));
  EXPECT_TRUE(connection->sent.empty());
}

TEST_F(HeadTest, StampsHeartbeats) {
  FakeNode node = connect_node(0);
  wire::Heartbeat heartbeat;
  heartbeat.set_node_sent_ns(42);
  node.session->dispatch(frame_of(heartbeat));
  const auto replies = node.connection->all<wire::HeartbeatReply>();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].node_sent_ns(), 42);
  EXPECT_EQ(replies[0].head_received_ns(), clock_.now().time_since_epoch().count());
}

TEST_F(HeadTest, OperatorSettingsSurviveARestart) {
  FakeClient root = connect(UserId(0));
  root.say(setting("quantum", "50ms"));
  wire::DrainNodes drain;
  drain.add_nodes("n[0-1]");
  drain.set_reason("disk");
  root.say(drain);
  settle();
  start_head();
  EXPECT_EQ(head_->overview().info().quantum_ns(), Duration(50ms).count());
  EXPECT_EQ(value_in_force("quantum"), "50ms");
  EXPECT_TRUE(head_->overview().nodes().nodes(0).drained());
  EXPECT_TRUE(head_->overview().nodes().nodes(1).drained());
  EXPECT_EQ(head_->overview().nodes().nodes(1).reason(), "disk");
}

TEST_F(HeadTest, CollectsTracesAndNamesSilentNodes) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::GetTrace question;
  question.set_since_ns(1'000'000'000);
  client.say(question);
  wire::NodeTraceReply reply;
  reply.set_tag(first.connection->all<wire::NodeTraceRequest>().at(0).tag());
  reply.mutable_trace()->add_switches()->set_due_ns(5);
  first.session->dispatch(frame_of(reply));
  first.session->dispatch(frame_of(reply));  // again: ignored
  EXPECT_TRUE(client.connection->all<wire::Trace>().empty());
  pass(3s);
  const auto traces = client.connection->all<wire::Trace>();
  ASSERT_EQ(traces.size(), 1u);
  ASSERT_EQ(traces[0].nodes_size(), 1);
  EXPECT_EQ(traces[0].nodes(0).node(), "n0");
  ASSERT_EQ(traces[0].silent_nodes_size(), 1);
  EXPECT_EQ(traces[0].silent_nodes(0), "n1");
}

TEST_F(HeadTest, LimitsConcurrentTraces) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  wire::GetTrace question;
  for (int i = 0; i < 100; ++i) client.say(question);
  EXPECT_LT(node.connection->all<wire::NodeTraceRequest>().size(), 20u);
  EXPECT_GT(client.connection->all<wire::Failed>().size(), 80u);
  pass(3s);  // it did not answer
  client.connection->sent.clear();
  client.say(question);
  EXPECT_TRUE(client.connection->all<wire::Failed>().empty());
}

TEST_F(HeadTest, ReasonsAreSentOncePerChange) {
  FakeClient client = connect(kAlice);
  const JobId job = submit(client, submission());
  client.say(attachment(job));
  const std::size_t before = client.connection->all<wire::JobNews>().size();
  head_->tick();
  head_->tick();
  EXPECT_EQ(client.connection->all<wire::JobNews>().size(), before);
  wire::ControlJob hold;
  hold.set_job(job.value());
  hold.set_what(wire::ControlJob::HOLD);
  client.say(hold);
  settle();
  EXPECT_EQ(client.connection->all<wire::JobNews>().size(), before + 1);
}

// The head must be ready soon with a long queue, and must list it quickly. Times are only printed.
TEST_F(HeadTest, RestartsWithTenThousandQueuedJobs) {
  constexpr std::uint64_t kJobs = 10'000;
  head_.reset();
  {
    Store store = Store::open(directory_).value();
    std::vector<Change> changes;
    for (std::uint64_t id = 1; id <= kJobs; ++id) {
      AddJob add;
      add.info.id = JobId(id);
      add.info.user = kAlice;
      add.info.resources = submission(2).resources().SerializeAsString();
      add.detached = true;
      add.spec = std::string(4000, 's');
      changes.emplace_back(std::move(add));
    }
    ASSERT_TRUE(store.apply(changes));
  }
  const TimePoint start = monotonic_now();
  start_head();
  const TimePoint ready = monotonic_now();
  FakeClient client = connect(kAlice);
  wire::ListJobs question;
  std::uint64_t jobs = 0;
  for (bool more = true; more;) {
    client.say(question);
    const auto page = client.connection->all<wire::JobList>().back();
    for (const auto& job : page.jobs()) EXPECT_EQ(job.job(), ++jobs);
    more = page.truncated();
    question.set_after_job(jobs);
  }
  const TimePoint listed = monotonic_now();
  EXPECT_EQ(jobs, kJobs);
  FakeNode first = connect_node(0);
  const TimePoint placed = monotonic_now();
  client.say(cancel(JobId(kJobs)));
  ASSERT_TRUE(pump_until([&] { return !client.connection->all<wire::Done>().empty(); }));
  const TimePoint cancelled = monotonic_now();
  const auto ms = [](Duration took) {
    return std::chrono::duration<double, std::milli>(took).count();
  };
  std::printf(
      "10,000 queued: recovered in %.0f ms, listed in %.1f ms, node joined in %.1f ms, "
      "cancelled in %.2f ms\n",
      ms(ready - start), ms(listed - ready), ms(placed - listed), ms(cancelled - placed));
}

TEST_F(HeadTest, SurvivesGarbageInEveryFrame) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(UserId(0));
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const proto::FrameRule& rule = proto::kFrameRules[random() % proto::kFrameRules.size()];
    if (rule.type == proto::FrameType::Shutdown) continue;
    std::string payload(random() % 40, '\0');
    for (char& byte : payload)
      byte = static_cast<char>(random() % 8 == 0 ? random() : random() % 24);
    client.session->dispatch({rule.type, payload});
    node.session->dispatch({rule.type, payload});
    if (i % 1000 == 0) settle();
  }
  FakeClient fresh = connect(kAlice);
  EXPECT_NE(submit(fresh, submission()), JobId());
}

}  // namespace
}  // namespace score::head
