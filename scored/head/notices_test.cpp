// These tests show which notices the head makes of jobs and nodes, that it makes them when the
// change is on disk, and that a restarted head repeats none.
#include "scored/head/notices/notices.hpp"

#include "tests/support/head/head_fixture.hpp"

#include <set>
#include <string>
#include <vector>

namespace score::head {
namespace {

class NoticesTest : public HeadFixture, public NoticeOutlet {
 protected:
  void SetUp() override {
    config_.notify.sendmail = "/usr/sbin/sendmail";
    HeadFixture::SetUp();
    head_->notices().connect(*this);
  }

  void restart() {
    start_head();
    head_->notices().connect(*this);
  }

  void send(Notice notice) override { sent_.push_back(std::move(notice)); }

  std::map<NoticeChannel, NoticeCounts> counts() const override { return {}; }

  static wire::Submit asking(const std::string& types, std::uint32_t nodes = 2) {
    wire::Submit message = submission(nodes);
    message.set_detached(true);
    const NoticeChoice choice = parse_mail_types(types).value();
    message.mutable_notices()->set_kinds(choice.kinds.bits);
    message.mutable_notices()->set_array_tasks(choice.array_tasks);
    message.mutable_notices()->set_address("alice@example.org");
    return message;
  }

  // Returns "job:event" of the notices since the last call.
  std::string events() {
    std::string out;
    for (const Notice& notice : std::exchange(sent_, {})) {
      const auto word_after = [&](const std::string& before) {
        const auto at = notice.text.find(before);
        if (at == std::string::npos) return std::string("?");
        const auto begin = at + before.size();
        return notice.text.substr(begin, notice.text.find_first_of("\n\",", begin) - begin);
      };
      const bool is_json = notice.text.starts_with('{');
      const std::string number = word_after(is_json ? "\"number\":\"" : "X-Scored-Job: ");
      const std::string event = word_after(is_json ? "\"event\":\"" : "X-Scored-Event: ");
      out += (out.empty() ? "" : " ") + number + ":" + event;
    }
    return out;
  }

  std::vector<Notice> sent_;
};

TEST_F(NoticesTest, MailIsMadeWhenTheChangeIsStored) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  submit(client, asking("ALL"));
  const AttemptId attempt = newest(first);
  for (FakeNode* node : {&first, &second}) node->say(Prepared{attempt});
  EXPECT_EQ(events(), "") << "the disk has not answered";
  settle();
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Running);
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_[0].command.back(), "alice@example.org");
  EXPECT_EQ(events(), "1:begin");
  finish(first, attempt, 0);
  finish(second, attempt, 1, 7);
  EXPECT_EQ(events(), "");
  settle();
  EXPECT_EQ(events(), "1:fail");
}

TEST_F(NoticesTest, RestartedHeadRepeatsNothing) {
  AttemptId attempt;
  {
    FakeNode first = connect_node(0);
    FakeNode second = connect_node(1);
    FakeClient client = connect(kAlice);
    wire::Submit message = asking("BEGIN,END,TIME_LIMIT_50,TIME_LIMIT_90");
    message.mutable_resources()->set_wall_limit_ns(Duration(100s).count());
    attempt = launch(client, first, second, message);
    EXPECT_EQ(events(), "1:begin");
    pass_alive(52s, {&first, &second});
    EXPECT_EQ(events(), "1:time_limit_50");
  }
  restart();
  FakeNode first = connect_node(0, {{attempt, AttemptPhase::Running, {}, {}}});
  FakeNode second = connect_node(1, {{attempt, AttemptPhase::Running, {}, {}}});
  FakeClient client = connect(kAlice);
  for (FakeNode* node : {&first, &second}) node->say(Started{attempt});
  settle();
  pass_alive(10s, {&first, &second});
  EXPECT_EQ(events(), "");
  pass_alive(30s, {&first, &second});
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Running) << reason_of(client, JobId(1));
  EXPECT_EQ(events(), "1:time_limit_90") << "a part that was reached later";
  finish(first, attempt, 0);
  finish(second, attempt, 1);
  settle();
  EXPECT_EQ(events(), "1:end");
  restart();
  settle();
  EXPECT_EQ(events(), "");
}

TEST_F(NoticesTest, LimitMakesOneMail) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::Submit message = asking("END,FAIL,TIME_LIMIT");
  message.mutable_resources()->set_wall_limit_ns(Duration(500ms).count());
  const AttemptId attempt = launch(client, first, second, message);
  pass(1s);
  EXPECT_EQ(events(), "");
  first.say(Exited{attempt, {{Rank(0), 0, SIGTERM}}, {}});
  second.say(Exited{attempt, {{Rank(1), 0, SIGTERM}}, {}});
  settle();
  EXPECT_EQ(events(), "1:time_limit");
}

TEST_F(NoticesTest, ScheduledTimeCountsForItsParts) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::Submit message = asking("TIME_LIMIT_50,TIME_LIMIT_80");
  message.mutable_resources()->set_scheduled_limit_ns(Duration(100s).count());
  launch(client, first, second, message);
  pass_alive(45s, {&first, &second});
  EXPECT_EQ(events(), "");
  pass_alive(10s, {&first, &second});
  EXPECT_EQ(events(), "1:time_limit_50");
  pass_alive(30s, {&first, &second});
  EXPECT_EQ(events(), "1:time_limit_80");
}

TEST_F(NoticesTest, LostNodeMakesARequeue) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  wire::Submit message = asking("ALL", 1);
  message.mutable_resources()->set_requeue(static_cast<std::uint32_t>(Requeue::Yes));
  submit(client, message);
  start(node, newest(node));
  EXPECT_EQ(events(), "1:begin");
  FakeNode back = connect_node(0);  // it knows no attempts
  settle();
  start(back, newest(back));
  EXPECT_EQ(events(), "1:requeue 1:begin");
}

TEST_F(NoticesTest, CancelledJobThatNeverRanHasEnded) {
  FakeClient client = connect(kAlice);
  const JobId job = submit(client, asking("BEGIN,END,FAIL"));
  client.say(cancel(job));
  settle();
  EXPECT_EQ(events(), "1:end");
}

TEST_F(NoticesTest, ArrayMakesOneMailUnlessTasksAreWanted) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  std::set<AttemptId> ended;
  const auto run = [&](const std::string& types) {
    wire::Submit message = asking(types, 1);
    message.set_array("3-4");
    submit(client, message);
    for (int i = 0; i < 10; ++i) {
      for (int j = 0; j < 8; ++j) settle();
      for (const auto& prepare : node.connection->all<wire::PrepareTasks>()) {
        const AttemptId attempt(prepare.attempt());
        if (!ended.insert(attempt).second) continue;
        node.session->dispatch(frame_of(wire::Heartbeat()));
        node.say(Prepared{attempt});
        pass(200ms);
        node.say(Started{attempt});
        settle();
        end(node, attempt);
      }
    }
    return events();
  };
  EXPECT_EQ(run("ALL"), "1:begin 1:end");
  EXPECT_EQ(run("END,ARRAY_TASKS"), "5:end 6:end");
}

TEST_F(NoticesTest, BadRequestsAreRefusedInOneLine) {
  FakeClient client = connect(kAlice);
  for (const char* bad : {"-oQ/tmp", "a\nBcc: b", "a b", "|sh"}) {
    wire::Submit message = asking("END");
    message.mutable_notices()->set_address(bad);
    EXPECT_EQ(submit(client, message), JobId());
    EXPECT_TRUE(refusal(client).starts_with("--mail-user: ")) << refusal(client);
    EXPECT_EQ(refusal(client).find('\n'), std::string::npos);
  }
  wire::Submit message = asking("END");
  message.mutable_notices()->set_address(std::string(255, 'a'));
  EXPECT_EQ(submit(client, message), JobId());
  wire::Submit unknown = asking("END");
  unknown.mutable_notices()->set_kinds(1U << 20);
  EXPECT_EQ(submit(client, unknown), JobId());
}

TEST_F(NoticesTest, ClusterWithoutMailSaysSo) {
  FakeClient client = connect(kAlice);
  submit(client, asking("END"));
  EXPECT_FALSE(client.connection->all<wire::Submitted>().back().no_mail());
  HeadConfig changed = config_;
  changed.notify = {};
  reload(changed);
  submit(client, asking("END"));
  EXPECT_TRUE(client.connection->all<wire::Submitted>().back().no_mail());
  submit(client, submission());
  EXPECT_FALSE(client.connection->all<wire::Submitted>().back().no_mail());
}

TEST_F(NoticesTest, WebhooksGetJobsAndNodesAfterAReload) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  wire::Submit message = submission(1);
  message.set_detached(true);
  submit(client, message);
  start(node, newest(node));
  EXPECT_EQ(events(), "") << "no notice was requested";
  HeadConfig changed = config_;
  changed.notify.webhooks.resize(1);
  changed.notify.webhooks[0].url = "https://a/";
  for (const char* event : {"end", "node_down", "node_up"}) {
    ASSERT_TRUE(add_notice_word(event, changed.notify.webhooks[0].choice));
  }
  reload(changed);
  end(node, newest(node), 3);
  EXPECT_EQ(events(), "1:end");
  for (int i = 0; i < 60; ++i) pass(1s);  // the node says nothing
  EXPECT_EQ(events(), "?:node_down");
  connect_node(0);
  settle();
  EXPECT_EQ(events(), "?:node_up");
}

}  // namespace
}  // namespace score::head
