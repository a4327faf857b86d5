// These tests use accounts, limits of running jobs and fair shares with a store and over restarts
// of the head.
#include "tests/support/head/head_fixture.hpp"

namespace score::head {
namespace {

class SharesTest : public HeadFixture {
 protected:
  static wire::Submit job_in(const std::string& account, std::uint32_t nodes = 1) {
    wire::Submit message = submission(nodes);
    message.set_detached(true);
    message.mutable_resources()->set_account(account);
    return message;
  }

  void use(const AccountRules& rules) {
    config_.accounts = rules;
    start_head();
  }

  static AccountRules one_account(RunningLimits limits = {}, std::uint32_t max_jobs = 0) {
    AccountRules rules;
    rules.accounts = {{"physics", false, {"1000", "1001"}, 1, max_jobs, limits}};
    return rules;
  }

  wire::ShareRow row(FakeClient& client, const std::string& account, std::uint32_t user = 0) {
    client.say(wire::ListShares());
    const auto lists = client.connection->all<wire::ShareList>();
    if (lists.empty()) return ADD_FAILURE() << "no answer", wire::ShareRow();
    for (const auto& one : lists.back().rows()) {
      const bool is_user = !one.user_name().empty();
      if (one.account() == account && (user == 0 ? !is_user : is_user && one.user() == user)) {
        return one;
      }
    }
    ADD_FAILURE() << "no row of " << account << " " << user;
    return {};
  }

  static double core_seconds(const wire::ShareRow& row) {
    return static_cast<double>(row.core_ns()) / 1e9;
  }
};

TEST_F(SharesTest, RefusesAnAccountOfOtherUsers) {
  use(one_account());
  FakeClient alice = connect(kAlice);
  EXPECT_EQ(submit(alice, job_in("art")), JobId());
  EXPECT_NE(refusal(alice).find("no account art"), std::string::npos) << refusal(alice);
  FakeClient eve = connect(UserId(1007));
  EXPECT_EQ(submit(eve, job_in("physics")), JobId());
  EXPECT_NE(refusal(eve).find("not in account physics"), std::string::npos) << refusal(eve);
  EXPECT_EQ(submit(eve, job_in("")), JobId());
  EXPECT_NE(submit(alice, job_in("")), JobId()) << "the only one she is in";
  EXPECT_EQ(row(alice, "physics").jobs(), 1U);
  FakeClient root = connect(UserId(0));
  EXPECT_NE(submit(root, job_in("")), JobId());
}

TEST_F(SharesTest, JobBeyondALimitWaitsWithAReason) {
  use(one_account({1, 0, Bytes(0), 0}));
  FakeNode node = connect_node(0);
  FakeNode other = connect_node(1);
  FakeClient alice = connect(kAlice);
  FakeClient bob = connect(kBob);
  const JobId first = submit(alice, job_in(""));
  const JobId second = submit(bob, job_in(""));
  EXPECT_EQ(state_of(alice, first), JobState::Launching);
  EXPECT_EQ(reason_of(bob, second),
            "accounts.physics.max_running_jobs is 1: account physics has 1 running");
  FakeNode& where = newest(node) == AttemptId() ? other : node;
  const AttemptId attempt = newest(where);
  start(where, attempt);
  end(where, attempt);
  EXPECT_EQ(state_of(bob, second), JobState::Launching);
}

TEST_F(SharesTest, LimitsSurviveARestartAndFollowAReload) {
  use(one_account({0, 1, Bytes(0), 0}));
  FakeNode node = connect_node(0);
  FakeClient alice = connect(kAlice);
  submit(alice, job_in(""));
  const JobId second = submit(alice, job_in(""));
  const AttemptId attempt = newest(node);
  start(node, attempt);
  start_head();
  FakeNode again = connect_node(0, {{attempt, AttemptPhase::Running, {}, ""}});
  FakeNode other = connect_node(1);
  FakeClient client = connect(kAlice);
  pass(1s);
  EXPECT_EQ(state_of(client, second), JobState::Pending);
  EXPECT_EQ(reason_of(client, second),
            "accounts.physics.max_nodes is 1: account physics uses 1, the job needs 1");
  HeadConfig changed = config_;
  changed.accounts = one_account({0, 2, Bytes(0), 0});
  reload(changed);
  EXPECT_EQ(state_of(client, second), JobState::Launching);
}

TEST_F(SharesTest, JobBeyondMaxJobsIsRefused) {
  use(one_account({}, 2));
  FakeClient alice = connect(kAlice);
  FakeClient bob = connect(kBob);
  submit(alice, job_in(""));
  submit(bob, job_in(""));
  EXPECT_EQ(submit(alice, job_in("")), JobId());
  EXPECT_NE(refusal(alice).find("accounts.physics.max_jobs"), std::string::npos);
  start_head();
  FakeClient again = connect(kAlice);
  EXPECT_EQ(submit(again, job_in("")), JobId()) << "also after a restart";
}

TEST_F(SharesTest, UseSurvivesARestartAndIsCountedOnce) {
  AccountRules rules = one_account();
  rules.half_life = 24h * 365;
  use(rules);
  FakeNode node = connect_node(0);
  FakeClient alice = connect(kAlice);
  submit(alice, job_in(""));
  const AttemptId attempt = newest(node);
  start(node, attempt);
  pass_alive(60s, {&node});
  const double running = core_seconds(row(alice, "physics", 1000));
  EXPECT_GT(running, 40);
  EXPECT_LT(running, 62);
  start_head();
  FakeNode again = connect_node(0, {{attempt, AttemptPhase::Running, {}, ""}});
  FakeClient client = connect(kAlice);
  EXPECT_NEAR(core_seconds(row(client, "physics", 1000)), running, 0.5);
  pass_alive(20s, {&again});
  end(again, attempt);
  const double ended = core_seconds(row(client, "physics", 1000));
  EXPECT_GT(ended, running + 5);
  EXPECT_LT(ended, 90);
  start_head();
  FakeClient last = connect(kAlice);
  EXPECT_NEAR(core_seconds(row(last, "physics", 1000)), ended, 0.5);
  EXPECT_NEAR(core_seconds(row(last, "physics")), ended, 0.5);
  EXPECT_LT(row(last, "physics", 1000).factor(), row(last, "physics", 1001).factor());
}

// Alice has used the only node for 30 s; then she and, after her, Bob each submit one more job.
class NextUserTest : public SharesTest {
 protected:
  struct States {
    JobState of_alice;
    JobState of_bob;
  };

  States when_the_node_is_free(const AccountRules& rules) {
    config_.settings.set(Setting::Slots, 1);
    use(rules);
    FakeNode node = connect_node(0);
    FakeClient alice = connect(kAlice);
    FakeClient bob = connect(kBob);
    submit(alice, job_in(""));
    const AttemptId first = newest(node);
    start(node, first);
    pass_alive(30s, {&node});
    const JobId of_alice = submit(alice, job_in(""));
    const JobId of_bob = submit(bob, job_in(""));
    end(node, first);
    return {state_of(alice, of_alice), state_of(bob, of_bob)};
  }
};

TEST_F(NextUserTest, IsTheOneWithLessUse) {
  AccountRules rules;
  rules.half_life = 24h;
  const States states = when_the_node_is_free(rules);
  EXPECT_EQ(states.of_bob, JobState::Launching);
  EXPECT_EQ(states.of_alice, JobState::Pending);
}

TEST_F(NextUserTest, IsTheFirstSubmitterWithoutAHalfLife) {
  const States states = when_the_node_is_free({});
  EXPECT_EQ(states.of_alice, JobState::Launching);
  EXPECT_EQ(states.of_bob, JobState::Pending);
}

TEST_F(SharesTest, PrivateClusterShowsOnlyOwnRows) {
  config_.monitor.is_private = true;
  use(one_account());
  FakeClient alice = connect(kAlice);
  submit(alice, job_in(""));
  FakeClient bob = connect(kBob);
  submit(bob, job_in(""));
  bob.say(wire::ListShares());
  const auto lists = bob.connection->all<wire::ShareList>();
  ASSERT_EQ(lists.size(), 1U);
  for (const auto& one : lists[0].rows()) {
    EXPECT_TRUE(one.user_name().empty() || one.user() == kBob.value()) << one.user_name();
  }
}

}  // namespace
}  // namespace score::head
