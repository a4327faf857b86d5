// These tests show what the head believes of a node, whose key may be in the wrong hands: reports
// about attempts that have tasks there, and commands of such tasks, and nothing else.
#include "tests/support/head/head_fixture.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace score::head {
namespace {

using proto::FrameType;
using proto::Role;

class CountingObserver final : public HeadObserver {
 public:
  void node_connected(NodeId) override {}

  void node_lost(NodeId) override {}

  void node_sampled(NodeId, const wire::NodeSample& sample) override {
    ++samples;
    items += sample.gangs_size() + sample.scratch_size();
  }

  void task_ended(NodeId, JobId) override { ++ends; }

  int samples = 0;
  int items = 0;
  int ends = 0;
};

template <class Message>
proto::InFrame about(AttemptId attempt, Message message = {}) {
  message.set_attempt(attempt.value());
  return frame_of(message);
}

proto::InFrame report_of(const NodeToHead& message) {
  auto frame = proto::encode(message);
  return {frame.type, std::move(frame.payload)};
}

// Returns every message that a node may send about an attempt, and that would change something if
// the attempt ran there.
std::vector<proto::InFrame> messages_about(AttemptId attempt) {
  const TaskExit exit{Rank(0), 1, 0};
  wire::TaskOutput output;
  output.set_data("forged");
  output.set_stream(wire::STDOUT);
  wire::TaskInputTaken taken;
  taken.set_bytes(1);
  wire::FenceEnter fence;
  fence.set_sequence(1);
  wire::NetworkPrepared prepared;
  prepared.set_addresses("123456");
  wire::NetworkRefused refused;
  refused.set_reason("forged");
  wire::ScratchReady volume;
  volume.set_server("127.0.0.1:1");
  wire::NodeSample sample;
  sample.set_taken_ns(1);
  sample.add_gangs()->set_attempt(attempt.value());
  sample.add_scratch()->set_attempt(attempt.value());
  wire::UsageSample usage;
  usage.add_uses()->set_attempt(attempt.value());
  Activity idle;
  idle.idle = true;
  return {report_of(Prepared{attempt}),
          report_of(Refused{attempt, 1, "forged"}),
          report_of(Started{attempt}),
          report_of(TaskEnded{attempt, exit}),
          report_of(Exited{attempt, {exit}, "forged"}),
          report_of(AbortRequested{attempt, Rank(0), 1, "forged"}),
          report_of(ActivityChanged{attempt, idle}),
          report_of(MeetingReached{attempt}),
          report_of(ParkReport{attempt}),
          about(attempt, output),
          about(attempt, taken),
          about(attempt, fence),
          about<wire::JobRelay>(attempt),
          about<wire::NetworkRequest>(attempt),
          about(attempt, prepared),
          about(attempt, refused),
          about(attempt, volume),
          frame_of(sample),
          frame_of(usage)};
}

// These messages of nodes name no attempt for which they would have an effect, or are not for
// NodeSession. HookReport drains its sender, and is an event only of jobs there; MemoryReport parks
// only jobs of its sender.
const std::set<FrameType> kOthers = {FrameType::NodeHello,
                                     FrameType::LoginHello,
                                     FrameType::TimetableApplied,
                                     FrameType::Heartbeat,
                                     FrameType::NodeTraceReply,
                                     FrameType::ControlOffer,
                                     FrameType::FactsReply,
                                     FrameType::HookReport,
                                     FrameType::StacksReply,
                                     FrameType::CheckpointReply,
                                     FrameType::MemoryReport,
                                     FrameType::WitnessHello,
                                     FrameType::LeaseReply,
                                     FrameType::ControlBeat,
                                     FrameType::ControlAnswer,
                                     FrameType::ControlTimetables,
                                     FrameType::ControlTimetablesTaken};

class TrustTest : public HeadFixture {
 protected:
  void SetUp() override {
    HeadFixture::SetUp();
    use_keys();
  }

  void TearDown() override {
    head_->nodes().set_observer(nullptr);
    HeadFixture::TearDown();
  }

  void use_keys() {
    head_->nodes().set_keys(keys_);
    head_->nodes().set_observer(&observer_);
  }

  static wire::Submit script(std::uint32_t nodes = 2) {
    wire::Submit message = submission(nodes);
    message.mutable_resources()->set_allocation(true);
    message.mutable_spec()->set_script("#!/bin/sh\n");
    message.mutable_spec()->set_stdin_rank(-2);
    message.set_detached(true);
    return message;
  }

  static wire::Submit step_of(JobId job, std::uint32_t nodes) {
    wire::Submit message = submission(nodes);
    message.mutable_resources()->set_inside(job.value());
    message.set_detached(true);
    return message;
  }

  // Returns everything that is shown of a job, except the time since its start.
  std::string text_of(FakeClient& client, JobId job) {
    wire::JobStatus status = status_of(client, job);
    status.clear_elapsed_ns();
    for (wire::StepStatus& step : *status.mutable_steps()) step.clear_elapsed_ns();
    return status.SerializeAsString();
  }

  // Returns the last secret that the node was sent for the attempt; "" if none.
  static std::string secret_of(const FakeNode& node, AttemptId attempt) {
    std::string secret;
    for (const auto& message : node.connection->all<wire::AttemptSecret>()) {
      if (AttemptId(message.attempt()) == attempt) secret = message.secret();
    }
    return secret;
  }

  bool proves(std::uint32_t node, UserId user, AttemptId attempt, const std::string& secret) const {
    wire::LoginHello hello;
    hello.set_user(user.value());
    hello.set_attempt(attempt.value());
    hello.set_secret(secret);
    return head_->secrets().proves(NodeId(node), hello);
  }

  // Returns a command of a task, admitted as Server admits it.
  FakeClient command_of(UserId user, AttemptId attempt, std::uint32_t node) {
    FakeClient client;
    client.connection = std::make_shared<FakeConnection>("client");
    ClientSession::Setup setup;
    setup.id = ClientId(next_client_++);
    setup.peer = {user, Role::OtherUser, "u", fmt::format("n{}", node),
                  TaskPlace{attempt, NodeId(node)}};
    setup.connection = client.connection;
    setup.budget = std::make_shared<UserBudget>();
    client.session = std::make_unique<ClientSession>(*for_clients_, clock_, std::move(setup));
    EXPECT_TRUE(client.say(hello()));
    return client;
  }

  proto::KeyRing keys_{proto::random_key()};
  CountingObserver observer_;
};

// ---- reports ------------------------------------------------------------------------------------

TEST_F(TrustTest, TableHasEveryMessageOfNodes) {
  std::set<FrameType> known = kOthers;
  for (const proto::InFrame& frame : messages_about(AttemptId(257))) known.insert(frame.type);
  for (const proto::FrameRule& rule : proto::kFrameRules) {
    if (!proto::may_send(Role::Node, rule.type)) continue;
    EXPECT_TRUE(known.contains(rule.type)) << rule.name << ": add it to one of the lists above";
  }
}

// The node n1 reports about jobs of which it has no tasks.
TEST_F(TrustTest, MessagesAboutForeignAttemptsHaveNoEffect) {
  FakeNode first = connect_node(0);
  FakeNode rogue = connect_node(1);
  FakeClient alice = connect(kAlice);
  const AttemptId ended = run_on({&first}, alice, submission(1));
  finish(first, ended, 0);
  settle();
  const AttemptId script_of_both = run_on({&first}, alice, script());
  const AttemptId running = run_on({&first}, alice, step_of(job_of(script_of_both), 1));
  ASSERT_EQ(rogue.connection->all<wire::PrepareTasks>().size(), 0U);
  FakeClient watcher = connect(kAlice);
  watcher.say(attachment(job_of(running), false));
  watcher.say(attachment(job_of(script_of_both), false));
  FakeClient asks = connect(kAlice);
  const auto state = [&] {
    std::string text =
        fmt::format("{} {} {} {} ", first.connection->sent.size(), watcher.connection->sent.size(),
                    observer_.items, observer_.ends);
    for (const AttemptId attempt : {ended, script_of_both, running}) {
      text += text_of(asks, job_of(attempt));
    }
    return text;
  };
  const std::map<std::string, AttemptId> foreign = {
      {"attempt that has ended", ended},
      {"script on another node of the same job", script_of_both},
      {"step on another node", running},
      {"next attempt of a running job", AttemptId(running.value() + 1)},
      {"job that never was", make_attempt(JobId(99), 1)}};
  const std::string before = state();
  for (const auto& [what, attempt] : foreign) {
    for (const proto::InFrame& frame : messages_about(attempt)) {
      EXPECT_TRUE(rogue.session->dispatch(frame)) << proto::name_of(frame.type);
      settle();
      ASSERT_EQ(state(), before) << proto::name_of(frame.type) << " about the " << what;
    }
  }
  EXPECT_EQ(observer_.samples, static_cast<int>(foreign.size())) << "the rest of a sample counts";
}

// The same messages have effects if the attempt runs on the node, so the test above is not vacuous.
TEST_F(TrustTest, MessagesAboutOwnAttemptsAreAccepted) {
  FakeNode first = connect_node(0);
  FakeClient alice = connect(kAlice);
  const AttemptId running = run_on({&first}, alice, submission(1));
  alice.say(attachment(job_of(running)));
  for (const proto::InFrame& frame : messages_about(running)) {
    if (frame.type == FrameType::NodeSample) first.session->dispatch(frame);
  }
  EXPECT_EQ(observer_.items, 2);
  first.session->dispatch(frame_of(output(running, "x", 0)));
  EXPECT_EQ(alice.connection->all<wire::Output>().size(), 1U);
  finish(first, running, 0, 3);
  settle();
  EXPECT_EQ(observer_.ends, 1);
  EXPECT_EQ(status_of(alice, job_of(running)).exit_code(), 3);
}

TEST_F(TrustTest, HelloAboutForeignAttemptsHasNoEffect) {
  FakeNode first = connect_node(0);
  FakeClient alice = connect(kAlice);
  const AttemptId running = run_on({&first}, alice, submission(1));
  const std::string before = text_of(alice, job_of(running));
  const std::size_t sent = first.connection->sent.size();
  for (const auto phase :
       {base::AttemptPhase::Preparing, base::AttemptPhase::Running, base::AttemptPhase::Exited}) {
    FakeNode rogue = connect_node(1, {{running, phase, {{Rank(0), 1, 0}}, "forged"}});
    settle();
    EXPECT_EQ(text_of(alice, job_of(running)), before);
    EXPECT_EQ(first.connection->sent.size(), sent);
    EXPECT_EQ(secret_of(rogue, running), "");
  }
}

// ---- commands -----------------------------------------------------------------------------------

TEST_F(TrustTest, OnlyNodesWithTasksGetTheSecret) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient alice = connect(kAlice);
  const AttemptId whole = run_on({&first}, alice, script());
  EXPECT_EQ(secret_of(first, whole).size(), proto::kKeyBytes);
  EXPECT_TRUE(second.connection->all<wire::AttemptSecret>().empty());
  const AttemptId step = run_on({&first, &second}, alice, step_of(job_of(whole), 2));
  EXPECT_NE(secret_of(first, step), "");
  EXPECT_NE(secret_of(second, step), "");
  EXPECT_NE(secret_of(first, step), secret_of(second, step));
  EXPECT_EQ(secret_of(second, whole), "");
}

TEST_F(TrustTest, StampNeedsTheSecretOfARunningAttempt) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient alice = connect(kAlice);
  const AttemptId whole = run_on({&first}, alice, script());
  const std::string secret = secret_of(first, whole);
  EXPECT_TRUE(proves(0, kAlice, whole, secret));
  EXPECT_FALSE(proves(0, kBob, whole, secret)) << "another user";
  EXPECT_FALSE(proves(0, UserId(0), whole, secret)) << "root";
  EXPECT_FALSE(proves(1, kAlice, whole, secret)) << "a node of the job without tasks";
  EXPECT_FALSE(proves(1, kAlice, whole, keys_.attempt_secret(whole, "n1")));
  EXPECT_FALSE(proves(0, kAlice, whole, "")) << "no secret";
  EXPECT_FALSE(proves(0, kAlice, whole, std::string(proto::kKeyBytes, 'x')));
  EXPECT_FALSE(proves(0, kAlice, AttemptId(), ""));
  const AttemptId next(whole.value() + 1);
  EXPECT_FALSE(proves(0, kAlice, next, keys_.attempt_secret(next, "n0"))) << "not current";

  const AttemptId step = run_on({&first, &second}, alice, step_of(job_of(whole), 2));
  const std::string of_step = secret_of(second, step);
  EXPECT_TRUE(proves(1, kAlice, step, of_step));
  finish(first, step, 0);
  finish(second, step, 1);
  settle();
  EXPECT_FALSE(proves(1, kAlice, step, of_step)) << "the step has ended";
  EXPECT_TRUE(proves(0, kAlice, whole, secret));
  end(first, whole);
  EXPECT_FALSE(proves(0, kAlice, whole, secret)) << "the job has ended";
}

TEST_F(TrustTest, OlderDaemonGetsNoSecret) {
  FakeNode first = connect_node(0, {}, false);
  FakeClient alice = connect(kAlice);
  run_on({&first}, alice, submission(1));
  EXPECT_TRUE(first.connection->all<wire::AttemptSecret>().empty());
}

// A daemon that was restarted has forgotten its secrets, and a head that was restarted gives the
// same ones.
TEST_F(TrustTest, SecretIsSentAgainAfterReconnection) {
  FakeNode first = connect_node(0);
  FakeClient alice = connect(kAlice);
  const AttemptId running = run_on({&first}, alice, submission(1));
  const std::string secret = secret_of(first, running);
  ASSERT_NE(secret, "");
  start_head();
  use_keys();
  FakeNode again = connect_node(0, {{running, base::AttemptPhase::Running, {}, ""}});
  settle();
  EXPECT_EQ(secret_of(again, running), secret);
  EXPECT_TRUE(proves(0, kAlice, running, secret));
}

TEST_F(TrustTest, TaskCommandActsOnItsJobOnly) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient alice = connect(kAlice);
  const AttemptId whole = run_on({&first}, alice, script(1));
  const AttemptId other = run_on({&second}, alice, submission(1));
  FakeClient command = command_of(kAlice, whole, 0);
  EXPECT_EQ(submit(command, submission(1)), JobId()) << "a job of its own";
  EXPECT_EQ(submit(command, step_of(job_of(other), 1)), JobId());
  command.say(cancel(job_of(other)));
  settle();
  EXPECT_NE(refusal(command), "");
  EXPECT_EQ(state_of(alice, job_of(other)), JobState::Running);
  const JobId step = submit(command, step_of(job_of(whole), 1));
  EXPECT_NE(step, JobId());
  const std::size_t lists = command.connection->all<wire::JobList>().size();
  command.say(wire::ListJobs());
  EXPECT_EQ(command.connection->all<wire::JobList>().size(), lists + 1);
  command.say(cancel(step, 0s));
  settle();
  EXPECT_TRUE(command.connection->all<wire::Done>().size() == 1) << refusal(command);
}

// A connection may outlive the attempt whose secret has opened it.
TEST_F(TrustTest, TaskCommandEndsWithItsAttempt) {
  FakeNode first = connect_node(0);
  FakeClient alice = connect(kAlice);
  const AttemptId whole = run_on({&first}, alice, script(1));
  FakeClient command = command_of(kAlice, whole, 0);
  command.say(wire::ListJobs());
  EXPECT_EQ(refusal(command), "");
  end(first, whole);
  EXPECT_EQ(submit(command, step_of(job_of(whole), 1)), JobId());
  command.say(wire::ListJobs());
  EXPECT_EQ(command.connection->all<wire::JobList>().size(), 1U);
  EXPECT_NE(refusal(command), "");
}

}  // namespace
}  // namespace score::head
