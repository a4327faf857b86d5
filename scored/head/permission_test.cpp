// Every frame of the protocol with every role a client can have: what the table forbids is refused
// as Denied before anything happens, what it allows reaches its handler.
#include "scored/head/head_fixture.hpp"

namespace score::head {
namespace {

using proto::Role;

constexpr UserId kOperator(1002);

// Fields 1 and 2 are 1: tag and job, or job and bytes, of every frame about a job; other frames
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

TEST_F(PermissionTest, AsksTheTableForEveryFrameAndRole) {
  FakeClient alice = connect(kAlice);
  ASSERT_EQ(submit(alice, submission()), JobId(1));
  for (const proto::FrameRule& rule : proto::kFrameRules) {
    for (const Role role : {Role::OtherUser, Role::Owner, Role::Operator, Role::Root}) {
      // Of frames that are about no job, an owner is like any user.
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

TEST_F(PermissionTest, LetsNobodySayAnythingBeforeHello) {
  for (const proto::FrameRule& rule : proto::kFrameRules) {
    if (rule.type == proto::FrameType::ClientHello) continue;
    FakeClient client = connect(UserId(0), false);
    EXPECT_FALSE(client.session->dispatch({rule.type, std::string(kUniversalPayload)}))
        << rule.name;
  }
}

TEST_F(PermissionTest, ChangesNothingOfAJobForStrangers) {
  FakeClient alice = connect(kAlice);
  const JobId job = submit(alice, submission());
  FakeClient bob = connect(kBob);
  wire::CancelJob cancel;
  cancel.set_job(job.value());
  bob.say(cancel);
  settle();
  EXPECT_TRUE(is_denied(bob, 0));
  EXPECT_EQ(state_of(alice, job), JobState::Pending);
}

TEST_F(PermissionTest, KeepsNodesByNameForOperators) {
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

TEST_F(PermissionTest, LetsASpareConnectionOnlyEndJobs) {
  FakeClient alice = connect(kAlice);
  const JobId job = submit(alice, submission());
  FakeClient spare;
  spare.connection = std::make_shared<FakeConnection>("spare");
  ClientSession::Setup setup;
  setup.id = ClientId(77);
  setup.peer = {kAlice, Role::OtherUser, "alice"};
  setup.connection = spare.connection;
  setup.budget = std::make_shared<TokenBucket>(1e9, 1e9);
  setup.is_spare = true;
  spare.session = std::make_unique<ClientSession>(*for_clients_, clock_, std::move(setup));
  ASSERT_TRUE(spare.say(hello()));
  spare.say(wire::ListNodes());
  EXPECT_EQ(spare.connection->all<wire::NodeList>().size(), 0u);
  wire::CancelJob cancel;
  cancel.set_job(job.value());
  spare.say(cancel);
  settle();
  EXPECT_EQ(spare.connection->all<wire::Done>().size(), 1u);
  EXPECT_EQ(state_of(alice, job), JobState::Cancelled);
}

TEST_F(PermissionTest, GivesEachJobAKeySpaceOfItsOwn) {
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
