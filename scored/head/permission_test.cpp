// These tests send every frame of the protocol with every role that a client can have. A forbidden
// frame is refused as Denied before anything happens; an allowed one reaches its handler.
#include "tests/support/head/head_fixture.hpp"
#include "tests/support/shared/recorded_events.hpp"

#include <csignal>
#include <map>

namespace score::head {
namespace {

using proto::Role;

// Fields 1 and 2 are 1: tag and job, or job and bytes, of every frame about a job. Other frames
// have unknown or harmless fields there.
constexpr std::string_view kUniversalPayload = "\x08\x01\x10\x01";

class PermissionTest : public HeadFixture {
 protected:
  FakeClient client_with(Role role) {
    switch (role) {
      case Role::Owner:
        return connect(kAlice);
      case Role::Operator:
        return connect(kOperator);
      case Role::Root:
        return connect(UserId(0));
      default:
        return connect(kBob, role != Role::Anonymous);
    }
  }

  static bool is_denied(const FakeClient& client, std::size_t from) {
    for (std::size_t i = from; i < client.connection->sent.size(); ++i) {
      const proto::InFrame& frame = client.connection->sent[i];
      if (frame.type != proto::FrameType::Failed) continue;
      const auto failed = proto::parse<wire::Failed>(frame);
      if (failed->error().code() == static_cast<int>(Errc::Denied)) return true;
    }
    return false;
  }
};

TEST_F(PermissionTest, EveryFrameAndRoleFollowsTheTable) {
  FakeClient alice = connect(kAlice);
  ASSERT_EQ(submit(alice, submission()), JobId(1));
  for (const proto::FrameRule& rule : proto::kFrameRules) {
    for (const Role role : {Role::OtherUser, Role::Owner, Role::Operator, Role::Root}) {
      // For frames that are not about a job, an owner is like any user.
      const bool may = proto::may_send(role, rule.type) ||
                       (role == Role::Owner && proto::may_send(Role::OtherUser, rule.type));
      FakeClient client = client_with(role);
      const std::size_t before = client.connection->sent.size();
      const bool goes_on = client.session->dispatch({rule.type, std::string(kUniversalPayload)});
      if (may) {
        EXPECT_TRUE(goes_on) << rule.name;
        EXPECT_FALSE(is_denied(client, before)) << rule.name << " as " << proto::name_of(role);
      } else {
        EXPECT_TRUE(!goes_on || is_denied(client, before))
            << rule.name << " as " << proto::name_of(role);
      }
    }
  }
}

TEST_F(PermissionTest, EveryFrameBeforeHelloIsRefused) {
  for (const proto::FrameRule& rule : proto::kFrameRules) {
    if (rule.type == proto::FrameType::ClientHello) continue;
    FakeClient client = connect(UserId(0), false);
    EXPECT_FALSE(client.session->dispatch({rule.type, std::string(kUniversalPayload)}))
        << rule.name;
  }
}

TEST_F(PermissionTest, OtherUserCannotChangeAJob) {
  FakeClient alice = connect(kAlice);
  const JobId job = submit(alice, submission());
  FakeClient bob = connect(kBob);
  bob.say(cancel(job));
  settle();
  EXPECT_TRUE(is_denied(bob, 0));
  EXPECT_EQ(state_of(alice, job), JobState::Pending);
}

// An operator may look at, end and stop a job of a different user, but never act as its user.
TEST_F(PermissionTest, OperatorMayNotActAsTheUser) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient alice = connect(kAlice);
  launch(alice, first, second);
  const auto is_refused = [&](UserId user, const auto& message) {
    FakeClient client = connect(user);
    client.say(message);
    settle();
    return is_denied(client, 0);
  };
  wire::Attach looks = attachment(JobId(1), false);
  wire::Attach types = looks;
  types.set_input(true);
  wire::Input input;
  input.set_job(1);
  wire::Resize resize;
  resize.set_job(1);
  EXPECT_FALSE(is_refused(kOperator, looks));
  EXPECT_TRUE(is_refused(kOperator, types));
  EXPECT_TRUE(is_refused(kOperator, attachment(JobId(1), true)));
  EXPECT_TRUE(is_refused(kOperator, input));
  EXPECT_TRUE(is_refused(kOperator, resize));
  EXPECT_FALSE(is_refused(UserId(0), types)) << "root may";
  EXPECT_FALSE(is_refused(kAlice, resize)) << "its owner may";
  for (const auto& [signal, may] : std::map<int, bool>{{SIGTERM, true},
                                                       {SIGKILL, true},
                                                       {SIGSTOP, true},
                                                       {SIGCONT, true},
                                                       {SIGHUP, false},
                                                       {SIGUSR1, false},
                                                       {SIGINT, false}}) {
    wire::SignalJob message;
    message.set_job(1);
    message.set_signal(signal);
    EXPECT_EQ(is_refused(kOperator, message), !may) << signal;
    EXPECT_FALSE(is_refused(kAlice, message)) << signal;
  }
}

TEST_F(PermissionTest, OperatorMayGiveInputToOwnJob) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient owner = connect(kOperator);
  launch(owner, first, second);
  owner.say(attachment(JobId(1)));
  wire::Input input;
  input.set_job(1);
  input.set_data("x");
  owner.say(input);
  EXPECT_FALSE(is_denied(owner, 0));
}

// Refusals are logged at one place, with uid and request at a limited rate, and all are counted.
TEST_F(PermissionTest, RefusalsAreCountedAndRateLimited) {
  FakeClient alice = connect(kAlice);
  submit(alice, submission());
  FakeClient bob = connect(kBob);
  const RecordedEvents journal;
  constexpr int kTimes = 1000;
  wire::CancelJob cancel;
  cancel.set_job(1);
  wire::SignalJob signal;
  signal.set_job(1);
  signal.set_signal(SIGKILL);
  for (int i = 0; i < kTimes; ++i) {
    bob.say(cancel);
    bob.say(signal);
    bob.say(attachment(JobId(1)));
  }
  bob.say(wire::Set());
  Permissions::Counts expected;
  for (const char* rpc : {"CancelJob", "SignalJob", "Attach"})
    expected[{rpc, "not_owner"}] = kTimes;
  expected[{"Set", "not_operator"}] = 1;
  EXPECT_EQ(head_->admin().permissions().denied(), expected);
  EXPECT_EQ(journal.entries.size(), 5U) << "the burst, as no time passes";
  EXPECT_NE(journal.entries.at(0).at("MESSAGE").find("uid=1001 rpc=CancelJob"), std::string::npos);
}

TEST_F(PermissionTest, UserNameCannotForgeALogLine) {
  FakeClient alice = connect(kAlice);
  submit(alice, submission());
  const RecordedEvents journal;
  const Peer mallory{kBob, Role::OtherUser, "x\nerr audit user=root\x1b[2J", "node\n07"};
  head_->admin().execute(mallory, CancelJob{JobId(1), {}, false}, [](const auto&) {});
  ASSERT_EQ(journal.entries.size(), 1U);
  for (const auto& [field, text] : journal.entries.at(0)) {
    EXPECT_EQ(text.find_first_of("\n\x1b"), std::string::npos) << field;
  }
}

TEST_F(PermissionTest, OnlyOperatorsMayChooseNodesByName) {
  wire::Submit message = submission(1);
  message.mutable_resources()->add_only_nodes("n1");
  FakeClient alice = connect(kAlice);
  EXPECT_EQ(submit(alice, message), JobId());
  EXPECT_TRUE(is_denied(alice, 0));
  FakeClient operator_ = connect(kOperator);
  EXPECT_NE(submit(operator_, message), JobId());
}

TEST_F(PermissionTest, RefusesJobsOfRootUnlessAsked) {
  wire::Submit message = submission(1);
  message.set_allow_root(false);
  FakeClient root = connect(UserId(0));
  EXPECT_EQ(submit(root, message), JobId());
  message.set_allow_root(true);
  EXPECT_NE(submit(root, message), JobId());
}

TEST_F(PermissionTest, SpareConnectionMayOnlyEndJobs) {
  FakeClient alice = connect(kAlice);
  const JobId job = submit(alice, submission());
  FakeClient spare;
  spare.connection = std::make_shared<FakeConnection>("spare");
  ClientSession::Setup setup;
  setup.id = ClientId(77);
  setup.peer = {kAlice, Role::OtherUser, "alice"};
  setup.connection = spare.connection;
  setup.budget = std::make_shared<UserBudget>();
  setup.is_spare = true;
  spare.session = std::make_unique<ClientSession>(*for_clients_, clock_, std::move(setup));
  ASSERT_TRUE(spare.say(hello()));
  spare.say(wire::ListNodes());
  EXPECT_EQ(spare.connection->all<wire::NodeList>().size(), 0u);
  spare.say(cancel(job));
  settle();
  EXPECT_EQ(spare.connection->all<wire::Done>().size(), 1u);
  EXPECT_EQ(state_of(alice, job), JobState::Cancelled);
}

TEST_F(PermissionTest, EachJobGetsItsOwnKeySpace) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::Submit message = submission();
  message.mutable_spec()->set_key_space("of another");
  launch(client, first, second, message);
  std::vector<std::string> spaces;
  for (FakeNode* node : {&first, &second}) {
    wire::LaunchSpec spec;
    ASSERT_TRUE(spec.ParseFromString(node->connection->all<wire::PrepareTasks>().at(0).spec()));
    spaces.push_back(spec.key_space());
  }
  EXPECT_EQ(spaces[0], spaces[1]) << "the nodes of a job share it";
  EXPECT_TRUE(spaces[0].starts_with(config_.cluster + ".")) << spaces[0];
  EXPECT_EQ(spaces[0].size(), config_.cluster.size() + 17);
}

}  // namespace
}  // namespace score::head
