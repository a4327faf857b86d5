// These tests cover the fill policy, the accounting of filled time, and the report of deadlocks.
#include "tests/support/head/head_fixture.hpp"
#include "tests/support/shared/recorded_events.hpp"

namespace score::head {
namespace {

class FillTest : public HeadFixture {
 protected:
  // Returns the error; "" if it succeeded.
  std::string set_fill(UserId user, bool on) {
    FakeClient client = connect(user);
    client.say(setting("fill", on ? "on" : "off"));
    settle();
    const auto failed = client.connection->all<wire::Failed>();
    return failed.empty() ? "" : failed.back().error().text();
  }

  wire::Info info() {
    FakeClient client = connect(kAlice);
    client.say(wire::GetInfo());
    return client.connection->all<wire::Info>().back();
  }
};

TEST_F(FillTest, OperatorsSetThePolicyWhichSurvivesARestart) {
  EXPECT_EQ(value_in_force("fill"), "off");
  EXPECT_EQ(set_fill(kAlice, true), "only operators may set fill");
  EXPECT_EQ(set_fill(kOperator, true), "");
  EXPECT_EQ(value_in_force("fill"), "on");
  EXPECT_EQ(info().fill_queues_size(), 2);
  start_head();
  EXPECT_EQ(value_in_force("fill"), "on");
  EXPECT_EQ(set_fill(kOperator, false), "");
  start_head();
  EXPECT_EQ(value_in_force("fill"), "off");
}

TEST_F(FillTest, IsRefusedInBarrierMode) {
  EXPECT_EQ(set_fill(kOperator, true), "");
  config_.network.switch_mode = SwitchMode::Barrier;
  start_head();
  EXPECT_EQ(value_in_force("fill"), "off") << "the stored policy is ignored";
  EXPECT_NE(set_fill(kOperator, true).find("switch_mode"), std::string::npos);
  EXPECT_EQ(set_fill(kOperator, false), "");
}

TEST_F(FillTest, TimetablesNameTheJobsThatMayFill) {
  EXPECT_EQ(set_fill(kOperator, true), "");
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient alice = connect(kAlice);
  wire::Submit alone = submission();
  alone.mutable_resources()->set_no_fill(true);
  const AttemptId fills = launch(alice, first, second);
  const AttemptId refuses = launch(alice, first, second, alone);
  pass_alive(1s, {&first, &second});
  const auto tables = first.connection->all<wire::SetTimetable>();
  ASSERT_FALSE(tables.empty());
  ASSERT_EQ(tables.back().fill_size(), 1);
  EXPECT_EQ(tables.back().fill(0), fills.value());
  EXPECT_TRUE(status_of(alice, job_of(refuses)).no_fill());
  EXPECT_FALSE(status_of(alice, job_of(fills)).no_fill());
}

TEST_F(FillTest, FilledTimeIsSummedOverNodes) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient alice = connect(kAlice);
  const AttemptId attempt = launch(alice, first, second);
  first.say(Exited{attempt, {{Rank(0), 0, 0}}, {}, 3s});
  settle();
  start_head();
  alice = connect(kAlice);
  second = connect_node(1, {{attempt, AttemptPhase::Running, {}, {}}});
  second.say(Exited{attempt, {{Rank(1), 0, 0}}, {}, 4s});
  first = connect_node(0, {{attempt, AttemptPhase::Exited, {{Rank(0), 0, 0}}, {}, 3s}});
  settle();
  wire::GetAccounting question;
  alice.say(question);
  const auto page = alice.connection->all<wire::Accounting>().back();
  ASSERT_EQ(page.rows_size(), 1);
  EXPECT_EQ(page.rows(0).filled_ns(), Duration(7s).count());
}

// Filled time is reported once per heartbeat, even while no viewer watches.
TEST_F(FillTest, RunningJobShowsItsFilledTime) {
  TaskGroup tasks(io_.get_executor(), [](std::string_view, const std::exception_ptr&) {});
  Monitoring monitoring(io_, clock_, tasks, head_->for_monitoring());
  head_->nodes().set_observer(&monitoring);
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient alice = connect(kAlice);
  const AttemptId attempt = launch(alice, first, second);
  const auto filled = [&](FakeNode& node, AttemptId of, Duration time) {
    wire::NodeSample sample;
    sample.set_taken_ns(clock_.now().time_since_epoch().count());
    sample.set_totals_only(true);
    auto& gang = *sample.add_gangs();
    gang.set_attempt(of.value());
    gang.set_filled_ns(time.count());
    node.session->dispatch(frame_of(sample));
    settle();
    return Duration(status_of(alice, job_of(attempt)).filled_ns());
  };
  EXPECT_EQ(filled(first, attempt, 3s), 3s);
  EXPECT_EQ(filled(second, attempt, 2s), 5s);
  EXPECT_EQ(filled(first, attempt, 2s), 5s) << "a late sample";
  EXPECT_EQ(filled(first, AttemptId(attempt.value() + 1), 9s), 5s) << "of another attempt";
  first.say(Exited{attempt, {{Rank(0), 0, 0}}, {}, 4s});
  settle();
  EXPECT_GE(Duration(status_of(alice, job_of(attempt)).filled_ns()), 5s);
}

TEST_F(FillTest, IdleJobShowsTheWaitsOfItsRanks) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient alice = connect(kAlice);
  const AttemptId attempt = launch(alice, first, second);
  first.say(ActivityChanged{attempt, {.idle = true, .tasks = {{0, "MPI_Recv", 1, 7, 8}}}});
  second.say(ActivityChanged{attempt, {.idle = true}});
  pass_alive(2s, {&first, &second});
  ASSERT_EQ(status_of(alice, job_of(attempt)).waits_size(), 1);
  EXPECT_EQ(status_of(alice, job_of(attempt)).waits(0),
            "rank 0 in MPI_Recv from rank 1, tag 7, 8 bytes");
  second.say(ActivityChanged{attempt, {.idle = false}});
  settle();
  EXPECT_EQ(status_of(alice, job_of(attempt)).waits_size(), 0) << "it is busy";
}

TEST_F(FillTest, DeadlockIsReportedWithTheWaitsOfRanks) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient alice = connect(kAlice);
  const AttemptId attempt = launch(alice, first, second);
  RecordedEvents journal;
  first.say(
      ActivityChanged{attempt, {.idle = true, .waits = true, .tasks = {{0, "MPI_Recv", 1, 7, 8}}}});
  second.say(
      ActivityChanged{attempt, {.idle = true, .waits = true, .tasks = {{1, "MPI_Barrier"}}}});
  pass_alive(8s, {&first, &second});
  const std::string line =
      "deadlock: no task can send: rank 0 in MPI_Recv from rank 1, tag 7, 8 bytes; rank 1 in "
      "MPI_Barrier";
  EXPECT_EQ(status_of(alice, job_of(attempt)).reasons(0), line);
  const auto is_about = [&](const JournalEntry& entry) {
    return entry.contains("REASON") && "deadlock: " + entry.at("REASON") == line &&
           entry.contains("JOB_ID");
  };
  EXPECT_EQ(std::ranges::count_if(journal.entries, is_about), 1);
}

}  // namespace
}  // namespace score::head
