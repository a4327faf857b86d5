// The head drains nodes whose hooks have failed.
#include "scored/shared/config/hooks_config.hpp"
#include "tests/support/head/head_fixture.hpp"

namespace score::head {
namespace {

class HookReportsTest : public HeadFixture {
 protected:
  static wire::HookReport report(Hook hook, std::string reason, AttemptId attempt = {}) {
    wire::HookReport made;
    made.set_number(1);
    made.set_hook(static_cast<std::uint32_t>(hook));
    made.set_attempt(attempt.value());
    made.set_reason(std::move(reason));
    return made;
  }

  [[nodiscard]] std::string drain_of(std::uint32_t node) {
    wire::ListNodes question;
    FakeClient client = connect(kAlice);
    client.say(question);
    const wire::NodeStatus row =
        client.connection->all<wire::NodeList>().back().nodes(static_cast<int>(node));
    return row.drained() ? "drained: " + row.reason() : "";
  }

  static std::size_t taken(const FakeNode& node) {
    return node.connection->all<wire::HookReportTaken>().size();
  }
};

TEST_F(HookReportsTest, PrologDrainsBeforeTheNextLaunch) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  const JobId job = submit(client, submission());
  const AttemptId attempt = newest(first);
  ASSERT_NE(attempt, AttemptId());
  first.session->dispatch(frame_of(report(Hook::Prolog, "no /scratch", attempt)));
  EXPECT_EQ(taken(first), 0U) << "it is not stored yet";
  EXPECT_EQ(drain_of(0), fmt::format("drained: prolog of job {} failed: no /scratch", job));
  first.say(Refused{attempt, 125, "prolog failed: no /scratch", true});
  second.say(Prepared{attempt});
  second.say(Exited{attempt, {}, ""});
  settle();
  EXPECT_EQ(taken(first), 1U);
  EXPECT_EQ(newest(first), attempt) << "a drained node gets no job";
  EXPECT_EQ(state_of(client, job), JobState::Pending);
}

TEST_F(HookReportsTest, HealthPassEndsOnlyItsOwnDrain) {
  FakeNode node = connect_node(0);
  node.session->dispatch(frame_of(report(Hook::Health, "disk is full")));
  settle();
  EXPECT_EQ(drain_of(0), "drained: health check: disk is full");
  node.session->dispatch(frame_of(report(Hook::Health, "still full")));
  node.session->dispatch(frame_of(report(Hook::Health, "")));
  settle();
  EXPECT_EQ(drain_of(0), "");
  node.session->dispatch(frame_of(report(Hook::Epilog, "x", make_attempt(JobId(9), 0))));
  node.session->dispatch(frame_of(report(Hook::Health, "")));
  settle();
  EXPECT_EQ(drain_of(0), "drained: epilog of job 9 failed: x");
  EXPECT_EQ(taken(node), 5U);
}

TEST_F(HookReportsTest, AreKeptOverARestart) {
  {
    FakeNode node = connect_node(0);
    node.session->dispatch(frame_of(report(Hook::Health, "disk is full")));
    settle();
  }
  start_head();
  EXPECT_EQ(drain_of(0), "drained: health check: disk is full");
}

TEST_F(HookReportsTest, HostileOnesAreBounded) {
  FakeNode node = connect_node(0);
  for (const std::uint32_t hook : {3U, 4U, 1'000U}) {
    wire::HookReport wrong = report(Hook::Health, "x");
    wrong.set_hook(hook);
    EXPECT_TRUE(node.session->dispatch(frame_of(wrong)));
  }
  EXPECT_EQ(drain_of(0), "");
  for (int i = 0; i < 1'000; ++i) {
    node.session->dispatch(frame_of(report(Hook::Health, i % 2 == 0 ? "\033[2J" : "")));
  }
  settle();
  EXPECT_LE(taken(node), 40U);
  EXPECT_EQ(drain_of(0).find('\033'), std::string::npos);
}

}  // namespace
}  // namespace score::head
