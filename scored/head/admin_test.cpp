// Every administrative command, from every source, is audited once, answered, and refused for users
// who may not give it.
#include "tests/support/head/head_fixture.hpp"
#include "tests/support/shared/recorded_events.hpp"

#include <csignal>
#include <functional>
#include <map>

namespace score::head {
namespace {

class AdminTest : public HeadFixture {
 protected:
  // Sends a command through a session, as from this host or a login node; "" if it succeeded.
  template <class Message>
  std::string by_session(UserId user, const Message& message, const std::string& via) {
    FakeClient client = connect(user, true, via);
    client.say(message);
    settle();
    const auto failed = client.connection->all<wire::Failed>();
    EXPECT_EQ(failed.size() + client.connection->all<wire::Done>().size(), 1U);
    return failed.empty() ? "" : failed[0].error().text();
  }

  // Sends a command like a button of the web page.
  std::string by_web(UserId user, const monitor::Action& action) {
    TaskGroup tasks(io_.get_executor(), [](std::string_view, const std::exception_ptr&) {});
    Monitoring monitoring(io_, clock_, tasks, head_->for_monitoring());
    std::optional<Result<std::string>> done;
    asio::co_spawn(
        io_, monitoring.act({user, "u" + std::to_string(user.value())}, action),
        [&done](const std::exception_ptr&, Result<std::string> text) { done = std::move(text); });
    EXPECT_TRUE(pump_until([&done] { return done.has_value(); }));
    settle();
    return *done ? "" : done->error().context();
  }

  // Submits a job of Alice's that waits, because there is no node.
  JobId waiting_job() {
    FakeClient alice = connect(kAlice);
    wire::Submit message = submission(1);
    message.set_detached(true);
    return submit(alice, message);
  }

  static monitor::Action action(monitor::ActionKind kind, JobId job = {}) {
    monitor::Action wanted;
    wanted.kind = kind;
    wanted.name = "slots";
    wanted.value = "4";
    wanted.nodes = "n0";
    wanted.job = job;
    return wanted;
  }

  void expect_audit(const RecordedEvents& journal, const std::string& what,
                    const std::string& via) {
    long audits = 0;
    for (const JournalEntry& entry : journal.entries) {
      if (!entry.at("MESSAGE").starts_with("audit ")) continue;
      ++audits;
      EXPECT_EQ(entry.at("ACTION"), what);
      EXPECT_EQ(entry.at("USER_NAME"), "u1002");
      EXPECT_EQ(entry.at("VIA"), via);
    }
    EXPECT_EQ(audits, 1) << what << " via " << via;
  }

  void expect_refusal(const RecordedEvents& journal, const std::string& what,
                      const std::string& text) {
    EXPECT_EQ(journal.count("MESSAGE_ID", "77f40fdfe0b944f19a94f8c73c6ede67"), 1) << what;
    EXPECT_EQ(journal.count("USER_NAME", "u1001"), 1) << what;
    EXPECT_NE(text.find("operators may " + what), std::string::npos) << text;
  }

  // Sends the command through both kinds of session, and then as a user who may not send it.
  template <class Message>
  void check_session(const std::string& what, const std::function<Message()>& make) {
    clock_.advance(10s);  // refusals are reported at a limited rate
    for (const std::string via : {"socket", "node07"}) {
      const Message message = make();
      {
        const RecordedEvents journal;
        const std::string refusal = by_session(kBob, message, via);
        expect_refusal(journal, what, refusal);
      }
      const RecordedEvents journal;
      EXPECT_EQ(by_session(kOperator, message, via), "") << what;
      expect_audit(journal, what, via);
    }
  }

  void check_web(const std::string& what, const std::function<monitor::Action()>& make) {
    clock_.advance(10s);
    const monitor::Action wanted = make();
    {
      const RecordedEvents journal;
      expect_refusal(journal, what, by_web(kBob, wanted));
    }
    const RecordedEvents journal;
    EXPECT_EQ(by_web(kOperator, wanted), "") << what;
    expect_audit(journal, what, "web");
  }
};

TEST_F(AdminTest, ClusterChangesAreAuditedOnceFromEverySource) {
  for (const SettingRule& rule : settings()) {
    check_session<wire::Set>(fmt::format("set {}", rule.name), [&rule] {
      return setting(std::string(rule.name), format_setting(rule, rule.most));
    });
  }
  check_session<wire::DrainNodes>("drain", [] {
    wire::DrainNodes message;
    message.add_nodes("n[0-1]");
    return message;
  });
  check_session<wire::Reload>("reload", [] { return wire::Reload(); });
  check_web("set slots", [] { return action(monitor::ActionKind::Set); });
  check_web("drain", [] { return action(monitor::ActionKind::Drain); });
  check_web("resume", [] { return action(monitor::ActionKind::Resume); });
}

TEST_F(AdminTest, RefusesUnknownSettingsAndValues) {
  EXPECT_EQ(by_session(kOperator, setting("quanta\n", "1"), "socket"), "no setting 'quanta\\n'");
  EXPECT_EQ(by_session(kOperator, setting("slots", "65"), "socket"),
            "slots '65': use a number from 1 to 64");
  EXPECT_EQ(by_session(kOperator, setting("fill", ""), "socket"), "fill '': use on or off");
  EXPECT_EQ(value_in_force("slots"), "64");
}

TEST_F(AdminTest, JobChangesAreAuditedOnceFromEverySource) {
  using Control = wire::ControlJob;
  const std::map<Control::What, std::string> names = {{Control::HOLD, "hold"},
                                                      {Control::SET_WEIGHT, "set weight"},
                                                      {Control::SET_PRIORITY, "set priority"}};
  for (const auto& [what, name] : names) {
    check_session<Control>(name, [this, what = what] {
      Control message;
      message.set_job(waiting_job().value());
      message.set_what(what);
      message.set_weight(7);
      return message;
    });
  }
  check_session<wire::ChangeJob>("change", [this] {
    wire::ChangeJob message;
    message.set_job(waiting_job().value());
    message.add_keys(0);  // time
    return message;
  });
  check_session<wire::CancelJob>("cancel", [this] {
    wire::CancelJob message;
    message.set_job(waiting_job().value());
    message.set_wait(true);
    return message;
  });
  check_web("cancel", [this] { return action(monitor::ActionKind::Cancel, waiting_job()); });
}

TEST_F(AdminTest, RunningJobChangesAreAuditedFromEverySource) {
  using Control = wire::ControlJob;
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient alice = connect(kAlice);
  launch(alice, first, second);
  check_session<wire::SignalJob>("signal", [] {
    wire::SignalJob message;
    message.set_job(1);
    message.set_signal(SIGTERM);
    return message;
  });
  const auto control = [](Control::What what) {
    Control message;
    message.set_job(1);
    message.set_what(what);
    return message;
  };
  for (const std::string via : {"socket", "node07"}) {
    for (const auto what : {Control::SUSPEND, Control::RESUME}) {
      const RecordedEvents journal;
      EXPECT_EQ(by_session(kOperator, control(what), via), "");
      expect_audit(journal, what == Control::SUSPEND ? "suspend" : "resume", via);
    }
  }
  check_web("suspend", [] { return action(monitor::ActionKind::Suspend, JobId(1)); });
  check_web("resume", [] { return action(monitor::ActionKind::Continue, JobId(1)); });
}

TEST_F(AdminTest, ShutdownEndsEveryJobFirst) {
  bool exited = false;
  requests_.exit = [&exited] { exited = true; };
  start_head();
  FakeClient root = connect(UserId(0));
  submit(root, submission());
  submit(root, submission(1));
  root.say(wire::Shutdown());
  ASSERT_TRUE(pump_until([&exited] { return exited; }));
  EXPECT_EQ(state_of(root, JobId(1)), JobState::Cancelled);
  EXPECT_EQ(state_of(root, JobId(2)), JobState::Cancelled);
  EXPECT_EQ(submit(root, submission()), JobId());
}

TEST_F(AdminTest, ShutdownIsAuditedAndAnsweredAfterAllJobs) {
  bool has_exited = false;
  requests_.exit = [&has_exited] { has_exited = true; };
  start_head();
  const JobId job = waiting_job();
  const RecordedEvents journal;
  EXPECT_EQ(by_session(kOperator, wire::Shutdown(), "socket"), "only root may shut down");
  FakeClient root = connect(UserId(0));
  root.say(wire::Shutdown());
  EXPECT_TRUE(root.connection->all<wire::Done>().empty()) << "its end is not on disk yet";
  EXPECT_TRUE(pump_until([&has_exited] { return has_exited; }));
  EXPECT_EQ(root.connection->all<wire::Done>().at(0).text(), "every job has ended");
  EXPECT_EQ(state_of(root, job), JobState::Cancelled);
  EXPECT_EQ(journal.count("ACTION", "shut down"), 2) << "refused, and done";
}

TEST_F(AdminTest, WaitingCancelIsAnsweredWhenEndIsStored) {
  const JobId job = waiting_job();
  FakeClient alice = connect(kAlice);
  wire::CancelJob cancel;
  cancel.set_tag(7);
  cancel.set_job(job.value());
  cancel.set_wait(true);
  alice.say(cancel);
  EXPECT_TRUE(alice.connection->all<wire::Done>().empty());
  EXPECT_TRUE(pump_until([&] { return !alice.connection->all<wire::Done>().empty(); }));
  wire::GetAccounting question;
  alice.say(question);
  ASSERT_EQ(alice.connection->all<wire::Accounting>().at(0).rows_size(), 1);
  EXPECT_EQ(alice.connection->all<wire::Accounting>()[0].rows(0).job(), job.value());
}

}  // namespace
}  // namespace score::head
