// Only the head in charge of two answers, and it confirms nothing that the other head may
// lack. These tests send every frame of the protocol, so they include frames that are added later.
#include "tests/support/head/head_fixture.hpp"

#include <csignal>
#include <functional>
#include <type_traits>
#include <vector>

namespace score::head {
namespace {

// Fields 1 and 2 are 1: tag and job of every frame about a job, harmless in others.
constexpr std::string_view kTagAndJob = "\x08\x01\x10\x01";

// Only the log makes a receipt, and a frame that confirms a change cannot be sent without one.
static_assert(!std::is_default_constructible_v<LogReceipt>);
static_assert(!is_view(proto::FrameType::Done) && !is_view(proto::FrameType::Submitted));
static_assert(!is_view(proto::FrameType::NodeKeyList) && !is_view(proto::FrameType::NodeKey));

struct Command {
  std::string name;
  std::function<void(FakeClient&)> give;
};

class AnswersTest : public HeadFixture {
 protected:
  void SetUp() override {
    term_ = Epoch(7);
    HeadFixture::SetUp();
    first_ = connect_node(0);
    second_ = connect_node(1);
    root_ = connect(UserId(0));
    head_->lease().use([this] { return is_in_charge_; });
    ASSERT_NE(launch(root_, first_, second_), AttemptId());
    root_.say(attachment(JobId(1)));
    settle();
  }

  // Counts the frames that confirm a change.
  static std::size_t confirmations(const FakeClient& client) {
    return static_cast<std::size_t>(std::ranges::count_if(
        client.connection->sent, [](const proto::InFrame& frame) { return !is_view(frame.type); }));
  }

  template <class Message>
  static Command command(const Message& message) {
    return {std::string(proto::name_of(proto::frame_type<Message>())),
            [message](FakeClient& client) { client.say(message); }};
  }

  static Command control(wire::ControlJob::What what) {
    wire::ControlJob message;
    message.set_job(1);
    message.set_what(what);
    return command(message);
  }

  static wire::SignalJob kill() {
    wire::SignalJob message;
    message.set_job(1);
    message.set_signal(SIGKILL);
    return message;
  }

  static wire::Submit with_request() {
    wire::Submit message = submission();
    message.set_request_id(std::string(16, 'r'));
    message.set_detached(true);
    return message;
  }

  std::vector<Command> commands() {
    wire::DrainNodes drain;
    drain.add_nodes("n0");
    wire::Reserve reserve;
    reserve.set_ends_jobs(true);
    reserve.mutable_reservation()->add_nodes("n1");
    reserve.mutable_reservation()->set_start_wall_ns(
        (clock_.wall() + 1h).time_since_epoch().count());
    reserve.mutable_reservation()->set_end_wall_ns((clock_.wall() + 2h).time_since_epoch().count());
    wire::Detach detach;
    detach.set_job(1);
    return {command(with_request()),
            command(kill()),
            control(wire::ControlJob::SUSPEND),
            control(wire::ControlJob::RESUME),
            command(setting("quantum", "50ms")),
            command(drain),
            command(reserve),
            command(wire::Reload()),
            command(detach),
            command(cancel(JobId(1)))};
  }

  bool is_in_charge_ = true;
  FakeNode first_, second_;
  FakeClient root_;
};

TEST_F(AnswersTest, ReplacedHeadHandlesAndAnswersNoFrame) {
  is_in_charge_ = false;
  const std::size_t to_node = first_.connection->sent.size();
  for (const proto::FrameRule& rule : proto::kFrameRules) {
    for (const bool is_greeted : {false, true}) {
      is_in_charge_ = true;
      FakeClient client = connect(UserId(0), is_greeted);
      const std::size_t before = client.connection->sent.size();
      is_in_charge_ = false;
      EXPECT_FALSE(client.session->dispatch({rule.type, std::string(kTagAndJob)})) << rule.name;
      EXPECT_EQ(client.connection->sent.size(), before) << rule.name;
      EXPECT_FALSE(client.connection->is_open()) << rule.name;
    }
  }
  for (const Command& one : commands()) {
    FakeClient client = connect(UserId(0), false);
    one.give(client);
    EXPECT_TRUE(client.connection->sent.empty()) << one.name;
  }
  settle();
  EXPECT_EQ(first_.connection->sent.size(), to_node) << "a command was carried out";
}

TEST_F(AnswersTest, HeadReplacedDuringACommandDoesNotAnswer) {
  for (const Command& one : commands()) {
    is_in_charge_ = true;
    FakeClient client = connect(UserId(0));
    const std::size_t before = client.connection->sent.size();
    follows_ = false;
    one.give(client);
    settle_alone();
    EXPECT_EQ(client.connection->sent.size(), before) << one.name;
    is_in_charge_ = false;
    follows_ = true;
    settle();  // as if the other head had confirmed in the last moment
    EXPECT_EQ(client.connection->sent.size(), before) << one.name;
    EXPECT_FALSE(client.connection->is_open()) << one.name;
  }
}

TEST_F(AnswersTest, CommandsAreConfirmedAfterFollowerStoredThem) {
  for (const Command& one : commands()) {
    const bool is_detach = one.name == proto::name_of(proto::FrameType::Detach);
    FakeClient other = connect(UserId(0));
    FakeClient& client = is_detach ? root_ : other;
    const std::size_t before = confirmations(client);
    follows_ = false;
    one.give(client);
    settle_alone();
    EXPECT_EQ(confirmations(client), before) << one.name << ": " << refusal(client);
    follows_ = true;
    settle();
    EXPECT_EQ(confirmations(client), before + 1) << one.name << ": " << refusal(client);
  }
}

TEST_F(AnswersTest, NoFrameConfirmsWhatFollowerLacks) {
  for (const proto::FrameRule& rule : proto::kFrameRules) {
    FakeClient client = connect(UserId(0));
    follows_ = false;
    client.session->dispatch({rule.type, std::string(kTagAndJob)});
    settle_alone();
    EXPECT_EQ(confirmations(client), 0U) << rule.name;
    follows_ = true;
    settle();
  }
}

// A job that only this head has would be lost with it.
TEST_F(AnswersTest, RepeatedSubmissionIsConfirmedAfterFollowerStoredIt) {
  FakeClient before = connect(UserId(0));
  const JobId job = submit(before, with_request());
  ASSERT_NE(job, JobId());
  term_ = Epoch(8);
  start_head();
  follows_ = false;
  FakeClient again = connect(UserId(0));
  again.say(with_request());
  settle_alone();
  EXPECT_EQ(confirmations(again), 0U);
  follows_ = true;
  settle();
  const auto submitted = again.connection->all<wire::Submitted>();
  ASSERT_EQ(submitted.size(), 1U);
  EXPECT_EQ(JobId(submitted[0].job()), job);
  EXPECT_TRUE(submitted[0].repeated_request());
}

// Output, news and documents are sent without a request, so the requests' check does not cover
// them.
TEST_F(AnswersTest, ReplacedHeadSendsNoOutput) {
  const AttemptId attempt = newest(first_);
  const std::size_t before = root_.connection->sent.size();
  first_.session->dispatch(frame_of(output(attempt, "one", 0)));
  EXPECT_GT(root_.connection->sent.size(), before);
  is_in_charge_ = false;
  const std::size_t after = root_.connection->sent.size();
  first_.session->dispatch(frame_of(output(attempt, "two", 3)));
  EXPECT_EQ(root_.connection->sent.size(), after);
  EXPECT_FALSE(root_.connection->is_open());
}

}  // namespace
}  // namespace score::head
