// These tests use reservations through the head: commands, the store, submissions, the clock.
#include "tests/support/head/head_fixture.hpp"
#include "tests/support/shared/recorded_events.hpp"

namespace score::head {
namespace {

class ReservationsTest : public HeadFixture {
 protected:
  wire::Reserve reserve(const std::string& nodes, Duration from, Duration length) {
    wire::Reserve message;
    message.set_tag(5);
    wire::Reservation& out = *message.mutable_reservation();
    out.add_nodes(nodes);
    const WallTime start = clock_.wall() + from;
    out.set_start_wall_ns(start.time_since_epoch().count());
    out.set_end_wall_ns((start + length).time_since_epoch().count());
    return message;
  }

  // Returns the head's error; "" if it agreed.
  std::string say(FakeClient& client, const wire::Reserve& message) {
    return answer(client, message);
  }

  std::string say(FakeClient& client, const std::string& removed) {
    wire::Unreserve message;
    message.set_name(removed);
    return answer(client, message);
  }

  template <class Message>
  std::string answer(FakeClient& client, const Message& message) {
    const std::size_t done = client.connection->all<wire::Done>().size();
    client.say(message);
    settle();
    if (client.connection->all<wire::Done>().size() > done) return {};
    return refusal(client);
  }

  std::vector<std::string> names(FakeClient& client) {
    client.say(wire::ListReservations());
    std::vector<std::string> out;
    const wire::ReservationList list = client.connection->all<wire::ReservationList>().back();
    for (const auto& one : list.reservations()) {
      out.push_back(one.name());
    }
    return out;
  }

  static wire::Submit job_in(const std::string& reservation, std::uint32_t nodes = 1) {
    wire::Submit message = submission(nodes);
    message.set_detached(true);
    message.mutable_resources()->set_reservation(reservation);
    return message;
  }

  std::string reservation_of(FakeClient& client, int node) {
    client.say(wire::ListNodes());
    return client.connection->all<wire::NodeList>().back().nodes(node).reservation();
  }
};

TEST_F(ReservationsTest, MaintenanceKeepsJobsOffAndEndsByItself) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient admin = connect(kOperator);
  FakeClient alice = connect(kAlice);
  const RecordedEvents events;
  ASSERT_EQ(say(admin, reserve("n[0-1]", 1min, 1min)), "");
  EXPECT_EQ(events.count("ACTION", "reserve"), 1);
  EXPECT_EQ(names(alice), std::vector<std::string>{"r1"});
  const JobId job = submit(alice, job_in(""));
  EXPECT_EQ(state_of(alice, job), JobState::Pending);
  EXPECT_NE(status_of(alice, job).reasons(1).find("reservation r1 begins in 1m"),
            std::string::npos);
  const std::int64_t end = (clock_.wall() + 2min).time_since_epoch().count();
  EXPECT_NEAR(static_cast<double>(status_of(alice, job).expected_start_wall_ns()),
              static_cast<double>(end), 1e9);
  EXPECT_EQ(reservation_of(alice, 0), "");
  pass_alive(1min, {&first, &second});
  EXPECT_EQ(reservation_of(alice, 0), "r1");
  EXPECT_EQ(state_of(alice, job), JobState::Pending);
  pass_alive(1min, {&first, &second});
  EXPECT_EQ(state_of(alice, job), JobState::Launching);
  EXPECT_TRUE(names(alice).empty());
  start_head();
  FakeClient again = connect(kOperator);
  EXPECT_TRUE(names(again).empty()) << "it has left the store";
}

TEST_F(ReservationsTest, SurviveARestart) {
  FakeClient admin = connect(kOperator);
  wire::Reserve message = reserve("n1", 1min, 1h);
  message.mutable_reservation()->set_name("course");
  message.mutable_reservation()->add_users("1000");
  ASSERT_EQ(say(admin, message), "");
  start_head();
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient alice = connect(kAlice);
  EXPECT_EQ(names(alice), std::vector<std::string>{"course"});
  const JobId job = submit(alice, job_in("course"));
  EXPECT_EQ(state_of(alice, job), JobState::Pending);
  EXPECT_EQ(status_of(alice, job).reservation(), "course");
  start_head();
  FakeNode n0 = connect_node(0);
  FakeNode n1 = connect_node(1);
  FakeClient again = connect(kAlice);
  pass_alive(1min, {&n0, &n1});
  EXPECT_EQ(state_of(again, job), JobState::Launching);
  EXPECT_EQ(status_of(again, job).nodes(0), "n1");
}

TEST_F(ReservationsTest, OnlyOperatorsMakeAndRemoveThem) {
  FakeClient alice = connect(kAlice);
  FakeClient admin = connect(kOperator);
  EXPECT_EQ(say(alice, reserve("n0", 1min, 1h)), "only operators may reserve");
  ASSERT_EQ(say(admin, reserve("n0", 1min, 1h)), "");
  EXPECT_EQ(say(alice, std::string("r1")), "only operators may unreserve");
  EXPECT_EQ(say(admin, std::string("r1")), "");
  EXPECT_EQ(say(admin, std::string("r1")), "no reservation r1");
  EXPECT_TRUE(names(alice).empty());
  start_head();
  FakeClient again = connect(kAlice);
  EXPECT_TRUE(names(again).empty());
}

TEST_F(ReservationsTest, InvalidOnesAreRefusedAndNotStored) {
  FakeClient admin = connect(kOperator);
  ASSERT_EQ(say(admin, reserve("n0", 1h, 1h)), "");
  wire::Reserve message = reserve("n[0-1]", 90min, 1h);
  EXPECT_EQ(say(admin, message).substr(0, 20), "reservation r1 has n");
  EXPECT_NE(say(admin, reserve("n7", 1min, 1h)).find("n7"), std::string::npos);
  EXPECT_NE(say(admin, reserve("n1", -1h, 2h)).find("which is past"), std::string::npos);
  EXPECT_EQ(say(admin, reserve("n1", 1h, 0s)), "the end is not after the start");
  EXPECT_NE(say(admin, reserve("n1", 1h, 24h * 3'000)).find("use a duration"), std::string::npos);
  message = reserve("n1", 1h, 1h);
  message.mutable_reservation()->add_users("no_such_user_here");
  EXPECT_EQ(say(admin, message), "no user no_such_user_here");
  message.mutable_reservation()->clear_users();
  message.mutable_reservation()->add_accounts("art");
  EXPECT_EQ(say(admin, message), "no account art");
  message.mutable_reservation()->clear_accounts();
  message.mutable_reservation()->set_name("r1");
  EXPECT_EQ(say(admin, message), "there is a reservation r1 already");
  start_head();
  FakeClient again = connect(kOperator);
  EXPECT_EQ(names(again), std::vector<std::string>{"r1"});
}

TEST_F(ReservationsTest, SubmissionsForThemAreChecked) {
  FakeClient admin = connect(kOperator);
  FakeClient alice = connect(kAlice);
  FakeClient bob = connect(kBob);
  wire::Reserve message = reserve("n0", 1h, 1h);
  message.mutable_reservation()->add_users("1000");
  ASSERT_EQ(say(admin, message), "");
  ASSERT_EQ(say(admin, reserve("n1", 1h, 1h)), "");
  EXPECT_EQ(submit(alice, job_in("other")), JobId());
  EXPECT_EQ(refusal(alice), "no reservation other");
  EXPECT_EQ(submit(bob, job_in("r1")), JobId());
  EXPECT_EQ(refusal(bob), "reservation r1 is for other users");
  EXPECT_EQ(submit(alice, job_in("r2")), JobId());
  EXPECT_EQ(refusal(alice), "reservation r2 is for maintenance: no job can use it");
  EXPECT_EQ(submit(alice, job_in("r1", 2)), JobId());
  EXPECT_EQ(refusal(alice), "requested 2 nodes; reservation r1 has 1");
  EXPECT_NE(submit(alice, job_in("r1")), JobId());
}

TEST_F(ReservationsTest, JobsInTheWayAreNamedOrEnded) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient alice = connect(kAlice);
  wire::Submit open = submission();
  open.set_detached(true);
  const AttemptId attempt = launch(alice, first, second, open);
  FakeClient admin = connect(kOperator);
  EXPECT_EQ(say(admin, reserve("n0", 1min, 1h)),
            "job 1 may still run there when it starts: choose a later start, cancel it, or give "
            "--end-jobs");
  EXPECT_TRUE(names(admin).empty());
  wire::Reserve message = reserve("n0", 1min, 1h);
  message.set_ends_jobs(true);
  ASSERT_EQ(say(admin, message), "");
  EXPECT_EQ(state_of(alice, base::job_of(attempt)), JobState::Running);
  pass_alive(1min + 7s, {&first, &second});  // and kill_grace
  EXPECT_EQ(state_of(alice, base::job_of(attempt)), JobState::Completing);
  EXPECT_NE(status_of(alice, base::job_of(attempt)).reasons(0).find("has begun on n0"),
            std::string::npos);
}

}  // namespace
}  // namespace score::head
