// A time limit ends a job like a cancel does, but with its own cause.
#include "tests/support/head/head_fixture.hpp"

#include <csignal>

namespace score::head {
namespace {

class LimitTest : public HeadFixture {};

TEST_F(LimitTest, LimitEndsAJobWithItsOwnCause) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::Submit message = submission();
  message.mutable_resources()->set_wall_limit_ns(Duration(500ms).count());
  const AttemptId attempt = launch(client, first, second, message);
  pass(1s);
  const auto signals = first.connection->all<wire::SignalTasks>();
  ASSERT_EQ(signals.size(), 2U);
  EXPECT_EQ(signals[0].signal(), SIGTERM);
  EXPECT_EQ(signals[1].signal(), SIGCONT);
  EXPECT_TRUE(first.connection->all<wire::KillTasks>().empty());
  first.say(Exited{attempt, {{Rank(0), 3, 0}}, {}});  // one obeys, one dies of the signal
  settle();
  EXPECT_TRUE(second.connection->all<wire::KillTasks>().empty());
  second.say(Exited{attempt, {{Rank(1), 0, SIGTERM}}, {}});
  settle();
  EXPECT_EQ(state_of(client, JobId(1)), JobState::TimedOut);
  const auto status = client.connection->all<wire::JobList>().back().jobs(0);
  EXPECT_EQ(status.exit_code(), 124);
  ASSERT_EQ(status.reasons_size(), 1);
  EXPECT_EQ(status.reasons(0), "wall-time limit 0.5s reached");
}

TEST_F(LimitTest, EachCancelledTaskGetsTheGrace) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  const AttemptId attempt = launch(client, first, second);
  client.say(cancel(JobId(1), 3s));
  settle();
  first.say(TaskEnded{attempt, {Rank(0), 0, SIGTERM}});
  settle();
  EXPECT_TRUE(second.connection->all<wire::KillTasks>().empty());
}

// A second request does not change why the job ends.
TEST_F(LimitTest, LaterCancelDoesNotChangeTheCause) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::Submit message = submission();
  message.mutable_resources()->set_wall_limit_ns(Duration(500ms).count());
  const AttemptId attempt = launch(client, first, second, message);
  pass(1s);
  client.say(cancel(JobId(1), Duration(0)));
  settle();
  EXPECT_FALSE(first.connection->all<wire::KillTasks>().empty());
  first.say(Exited{attempt, {{Rank(0), 0, SIGKILL}}, {}});
  second.say(Exited{attempt, {{Rank(1), 0, SIGKILL}}, {}});
  settle();
  EXPECT_EQ(state_of(client, JobId(1)), JobState::TimedOut);
}

}  // namespace
}  // namespace score::head
