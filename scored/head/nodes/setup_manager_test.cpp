// These tests show which setup tokens the head admits, that each is used once, and that hostile
// hosts get no key.
#include "scored/head/nodes/setup_manager.hpp"

#include "base/async/task_group.hpp"
#include "base/os/fd.hpp"
#include "proto/frames/parse.hpp"
#include "proto/transport/setup_token.hpp"
#include "proto/transport/tls_connection.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

namespace score::head {
namespace {

class SetupManagerTest : public testing::Test {
 protected:
  SetupManagerTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "score_setup_XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    config_.cluster = "blue";
    config_.nodes = {"node00", "node01"};
    start();
  }

  ~SetupManagerTest() override {
    manager_.reset();
    commits_.reset();
    std::filesystem::remove_all(directory_);
  }

  // Starts the manager anew; as one of two heads it waits for release().
  void start(bool has_log = false) {
    manager_.reset();
    commits_.reset();
    auto store = Store::open(directory_);
    ASSERT_TRUE(store) << store.error().message();
    if (has_log) {
      ASSERT_TRUE(store->begin_log(Epoch(1)));
    }
    commits_.emplace(io_, *std::move(store));
    manager_.emplace(SetupManager::Parts{config_, ring_, keys_, *commits_, lease_}, directory_);
  }

  Status use(const std::string& name, WallTime at) {
    std::optional<Status> used;
    manager_->use(name, at, [&used](const Result<LogReceipt>& logged) {
      used = logged ? Status() : logged.error();
    });
    io_.restart();
    const auto work = asio::require(io_.get_executor(), asio::execution::outstanding_work.tracked);
    while (!used) io_.run_one();
    return *used;
  }

  [[nodiscard]] std::string file() const { return directory_ + "/setup-tokens-used"; }

  std::string identity(const std::string& node) {
    return setup_identity(proto::new_setup_token(node, now_));
  }

  // Runs one connection over TLS: a host with this identity and key sends these frames. Returns the
  // replies until the head closes the connection.
  std::vector<proto::InFrame> talk(const std::string& name, const proto::Key& key,
                                   std::vector<std::pair<proto::FrameType, std::string>> frames) {
    std::vector<proto::InFrame> answers;
    const auto context = proto::TlsContext::server(
        [this](std::string_view who) { return manager_->key_of(who, now_); });
    const auto client = proto::TlsContext::client(key, name);
    auto listener = proto::TcpListener::open(io_.get_executor(), {"127.0.0.1", 0});
    TaskGroup tasks(io_.get_executor(),
                    [](std::string_view, const std::exception_ptr&) { ADD_FAILURE(); });
    tasks.spawn("head", serve(*listener, *context));
    io_.restart();
    score::run(io_, converse(*client, listener->port(), std::move(frames), answers));
    io_.restart();
    score::run(io_, tasks.stop());
    return answers;
  }

  static proto::FrameType type(const proto::InFrame& frame) { return frame.type; }

  static std::string hello() {
    wire::SetupHello message;
    message.set_lowest_version(1);
    message.set_highest_version(1);
    return message.SerializeAsString();
  }

  asio::io_context io_{1};
  SteadyClock clock_;
  HeadConfig config_;
  proto::Key key_ = proto::random_key();
  proto::KeyRing ring_{key_};
  NodeKeys keys_{""};
  WallTime now_ = wall_now();
  std::string directory_;
  std::string name_;
  LeaseCheck lease_;
  std::optional<CommitLog> commits_;
  std::optional<SetupManager> manager_;

 private:
  asio::awaitable<void> serve(proto::TcpListener& listener, const proto::TlsContext& context) {
    auto fd = co_await listener.accept();
    if (!fd) co_return;
    auto peer = co_await proto::tls_accept(context, std::move(*fd), Duration(60s), {});
    if (peer) co_await manager_->serve(peer->name, peer->connection, clock_);
  }

  static asio::awaitable<void> converse(
      const proto::TlsContext& client, std::uint16_t port,
      std::vector<std::pair<proto::FrameType, std::string>> frames,
      std::vector<proto::InFrame>& answers) {
    proto::TcpEndpoint where;
    where.host = "127.0.0.1";
    where.port = port;
    auto peer = co_await proto::tls_connect(client, where, Duration(60s), {});
    if (!peer) co_return;
    for (const auto& [type, payload] : frames) {
      peer->connection->send(type, payload);
      auto answer = co_await peer->connection->read(proto::Role::Head);
      if (!answer) break;
      answers.push_back(std::move(*answer));
    }
    peer->connection->close();
  }
};

TEST_F(SetupManagerTest, TokenIsAdmittedForAnHour) {
  const std::string name = identity("node00");
  EXPECT_TRUE(manager_->admits(name, now_));
  EXPECT_TRUE(manager_->admits(name, now_ + 59min));
  EXPECT_FALSE(manager_->admits(name, now_ + 1h));
  EXPECT_FALSE(manager_->admits(name, now_ - 1min)) << "it lasts longer than a token does";
  EXPECT_FALSE(manager_->admits(identity("node02"), now_)) << "no node of this cluster";
  EXPECT_FALSE(manager_->admits("node00", now_));
}

TEST_F(SetupManagerTest, TokenIsAdmittedOnceEvenAfterARestart) {
  const std::string name = identity("node00");
  ASSERT_TRUE(use(name, now_));
  EXPECT_FALSE(manager_->admits(name, now_));
  EXPECT_TRUE(use(name, now_).error().is(Errc::Exists));
  EXPECT_TRUE(manager_->admits(identity("node00"), now_)) << "another token of the same node";

  start();
  EXPECT_FALSE(manager_->admits(name, now_));
  ASSERT_TRUE(use(identity("node01"), now_ + 2h));
  EXPECT_EQ(read_file(file(), 4096)->find(name), std::string::npos) << "expired ones are dropped";
}

// If the head in charge were lost, the other one would admit the token again.
TEST_F(SetupManagerTest, KeyIsSentAfterFollowerKnowsToken) {
  start(true);
  bool was_committed = false;
  commits_->on_committed([&](std::uint64_t sequence, const std::string&) {
    was_committed = true;
    EXPECT_TRUE(manager_->admits(name_, now_)) << "it is not used before the other head knows";
    asio::post(io_, [this, sequence] { commits_->release(sequence); });
  });
  name_ = identity("node01");
  const auto key = proto::derive_setup_key(key_, name_);
  const auto both = talk(
      name_, key, {{proto::FrameType::SetupHello, hello()}, {proto::FrameType::TakeNodeKey, ""}});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[1].type, proto::FrameType::NodeKey);
  EXPECT_TRUE(was_committed);
  EXPECT_FALSE(manager_->admits(name_, now_));
}

TEST_F(SetupManagerTest, ReplacedHeadSendsNoKey) {
  lease_.use([] { return false; });
  const std::string name = identity("node01");
  const auto key = proto::derive_setup_key(key_, name);
  EXPECT_TRUE(talk(name, key, {{proto::FrameType::SetupHello, hello()}}).empty());
}

TEST_F(SetupManagerTest, TokenStaysUsableIfStoringFails) {
  start();
  commits_->stop();  // nothing can be stored any more
  const std::string name = identity("node00");
  bool is_done = false;
  manager_->use(name, now_, [&is_done](const Result<LogReceipt>&) { is_done = true; });
  io_.restart();
  io_.poll();
  EXPECT_FALSE(is_done);
  EXPECT_TRUE(manager_->admits(name, now_));
}

TEST_F(SetupManagerTest, GivesTheNodesKeyOnce) {
  const std::string name = identity("node01");
  const auto key = proto::derive_setup_key(key_, name);
  const auto first = talk(name, key, {{proto::FrameType::SetupHello, hello()}});
  ASSERT_EQ(first.size(), 1U);
  const auto offer = proto::parse<wire::SetupOffer>(first[0]);
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->cluster(), "blue");
  EXPECT_EQ(offer->node(), "node01");
  EXPECT_TRUE(manager_->admits(name, now_)) << "looking does not use the token up";

  const auto both = talk(
      name, key, {{proto::FrameType::SetupHello, hello()}, {proto::FrameType::TakeNodeKey, ""}});
  ASSERT_EQ(both.size(), 2U);
  const auto given = proto::parse<wire::NodeKey>(both[1]);
  ASSERT_TRUE(given);
  const auto wanted = proto::derive_node_key(key_, "node01").bytes();
  EXPECT_EQ(given->key(), std::string(wanted.begin(), wanted.end()));
  EXPECT_TRUE(talk(name, key, {{proto::FrameType::SetupHello, hello()}}).empty());
}

TEST_F(SetupManagerTest, RefusesWrongKeysAndOtherVersions) {
  const std::string name = identity("node01");
  const auto key = proto::derive_setup_key(key_, name);
  const std::pair<proto::FrameType, std::string> good{proto::FrameType::SetupHello, hello()};
  EXPECT_TRUE(talk(name, proto::random_key(), {good}).empty());
  EXPECT_TRUE(talk(name, proto::derive_node_key(key_, "node01"), {good}).empty());
  EXPECT_TRUE(talk(identity("node01"), key, {good}).empty()) << "the key of another token";

  wire::SetupHello later;
  later.set_lowest_version(7);
  later.set_highest_version(8);
  const auto answers = talk(name, key, {{proto::FrameType::SetupHello, later.SerializeAsString()}});
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_NE(proto::parse<wire::Failed>(answers[0])->error().text().find("7..8"), std::string::npos);
  EXPECT_TRUE(manager_->admits(name, now_));
}

// The holder of a token may send anything, but gets no key without asking for it in order.
TEST_F(SetupManagerTest, SurvivesHostileFrames) {
  const std::string name = identity("node01");
  const auto key = proto::derive_setup_key(key_, name);
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const auto type = round % 3 == 0 ? proto::FrameType::NodeHello : proto::FrameType::SetupHello;
    for (const auto& answer : talk(name, key, {{type, bytes}, {type, bytes}})) {
      EXPECT_NE(answer.type, proto::FrameType::NodeKey);
    }
  }
  EXPECT_TRUE(talk(name, key, {{proto::FrameType::TakeNodeKey, ""}}).empty());
  EXPECT_TRUE(manager_->admits(name, now_));
}

}  // namespace
}  // namespace score::head
