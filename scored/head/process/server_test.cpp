// These tests use the head's listeners with real sockets: valid clients, hostile clients and
// crowds.
#include "scored/head/process/server.hpp"

#include "base/os/fd.hpp"
#include "proto/frames/parse.hpp"
#include "tests/support/head/head_fixture.hpp"

#include <arpa/inet.h>
#include <cstdio>
#include <random>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace score::head {
namespace {

class ServerTest : public HeadFixture {
 protected:
  void SetUp() override {
    HeadFixture::SetUp();
    config_.socket = directory_ + "/head.sock";
    config_.listen = {"127.0.0.1", 0};
    open({64, 32, 2, 8});
  }

  void TearDown() override {
    close();
    HeadFixture::TearDown();
  }

  void open(ServerLimits limits) {
    close();
    server_ = std::make_unique<Server>(io_, steady_, *head_, head_->for_clients());
    tasks_ = std::make_unique<TaskGroup>(io_.get_executor(),
                                         [](std::string_view, const std::exception_ptr&) {});
    ASSERT_TRUE(server_->open(config_, ring_, limits));
    server_->start(*tasks_);
  }

  void close() {
    if (!server_) return;
    server_->close();
    io_.restart();
    score::run(io_, tasks_->stop());
    server_.reset();
    tasks_.reset();
  }

  UniqueFd connect_command() const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    config_.socket.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  UniqueFd connect_node_port() const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->node_port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_TRUE(set_nonblocking(fd.get(), true));
    return fd;
  }

  // Runs the loop until the head has closed this connection.
  bool is_closed_soon(const UniqueFd& fd) {
    return pump_until_ready([&fd] {
      char buffer[4096];
      const ssize_t got = ::recv(fd.get(), buffer, sizeof buffer, 0);
      return got == 0 || (got < 0 && errno != EAGAIN);
    });
  }

  static bool has_bytes(const UniqueFd& fd) {
    char byte = 0;
    return ::recv(fd.get(), &byte, 1, MSG_PEEK) == 1;
  }

  template <typename Predicate>
  bool pump_until_ready(Predicate done) {
    io_.restart();
    for (int i = 0; i < 120'000; ++i) {
      if (done()) return true;
      io_.run_for(std::chrono::milliseconds(1));
      io_.restart();
    }
    return false;
  }

  // Runs a whole conversation: hello and one request.
  asio::awaitable<bool> is_served() {
    auto peer = co_await proto::connect_unix(config_.socket, Duration(10s), {});
    if (!peer) co_return false;
    co_return co_await ask_info(peer->connection);
  }

  static asio::awaitable<bool> greet(std::shared_ptr<proto::Connection> connection) {
    proto::send(*connection, hello());
    auto answer = co_await connection->read(proto::Role::Head);
    co_return answer && answer->type == proto::FrameType::ServerHello;
  }

  static asio::awaitable<bool> ask_info(std::shared_ptr<proto::Connection> connection) {
    if (!co_await greet(connection)) co_return false;
    proto::send(*connection, wire::GetInfo());
    auto info = co_await connection->read(proto::Role::Head);
    co_return info && info->type == proto::FrameType::Info;
  }

  bool serves() {
    io_.restart();
    return score::run(io_, is_served());
  }

  asio::awaitable<void> submit_many(int count, int& accepted) {
    auto peer = co_await proto::connect_unix(config_.socket, Duration(10s), {});
    if (!peer) co_return;
    const auto connection = peer->connection;
    if (!co_await greet(connection)) co_return;
    wire::Submit message = submission();
    message.set_detached(true);
    message.mutable_spec()->add_env(std::string("PAD=") + std::string(2000, 'x'));
    for (int i = 0; i < count; ++i) {
      message.set_request_id(proto::to_wire(RequestId::random()));
      proto::send(*connection, message);
      auto answer = co_await connection->read(proto::Role::Head);
      if (!answer || answer->type != proto::FrameType::Submitted) co_return;
      ++accepted;
    }
  }

  SteadyClock steady_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<TaskGroup> tasks_;
  const proto::KeyRing ring_{proto::random_key()};
};

TEST_F(ServerTest, ServesACommand) {
  EXPECT_TRUE(serves());
}

TEST_F(ServerTest, ClosesGarbageOnBothListenersAndContinues) {
  std::mt19937 random(3);
  for (int i = 0; i < 20; ++i) {
    std::string garbage(16 + random() % 3000, '\0');
    for (char& byte : garbage) byte = static_cast<char>(random());
    const UniqueFd command = connect_command();
    const UniqueFd node = connect_node_port();
    ASSERT_TRUE(write_all(command.get(), garbage));
    ASSERT_TRUE(write_all(node.get(), garbage));
    EXPECT_TRUE(is_closed_soon(command));
    EXPECT_TRUE(is_closed_soon(node));
  }
  EXPECT_TRUE(serves());
}

TEST_F(ServerTest, ClosesForeignOrTooLongFrames) {
  proto::FrameHeader header;
  std::array<std::byte, proto::kHeaderBytes> bytes{};
  for (const auto& [type, length] : {std::pair(proto::FrameType::NodeHello, 1U),
                                     std::pair(proto::FrameType::ClientHello, 1U << 30U)}) {
    header.type = static_cast<std::uint16_t>(type);
    header.length = length;
    proto::encode_header(header, bytes);
    const UniqueFd command = connect_command();
    ASSERT_TRUE(
        write_all(command.get(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    EXPECT_TRUE(is_closed_soon(command));
  }
  EXPECT_TRUE(serves());
}

TEST_F(ServerTest, SurvivesTruncatedFramesAndSuddenCloses) {
  const std::string whole =
      *proto::encode_frame(proto::FrameType::ClientHello, hello().SerializeAsString());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const UniqueFd command = connect_command();
    ASSERT_TRUE(write_all(command.get(), whole.substr(0, length)));
  }
  EXPECT_TRUE(serves());
  EXPECT_TRUE(pump_until_ready([this] { return server_->client_count() == 0; }));
}

TEST_F(ServerTest, ClosesTheOldestOfTooManySilentClients) {
  open({4, 4, 2, 8});
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 4; ++i) crowd.push_back(connect_command());
  ASSERT_TRUE(pump_until_ready([this] { return server_->client_count() == 4; }));
  EXPECT_TRUE(serves());
  EXPECT_TRUE(is_closed_soon(crowd.front()));
  char byte = 0;
  EXPECT_EQ(::recv(crowd.back().get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(ServerTest, ReservesSpareConnectionsBeyondTheLimit) {
  open({4, 4, 2, 8});
  const std::string whole =
      *proto::encode_frame(proto::FrameType::ClientHello, hello().SerializeAsString());
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 6; ++i) {
    crowd.push_back(connect_command());
    ASSERT_TRUE(write_all(crowd.back().get(), whole));
    ASSERT_TRUE(pump_until_ready([&] { return has_bytes(crowd.back()); }));
  }
  ASSERT_TRUE(pump_until_ready([this] { return server_->client_count() == 6; }));
  const UniqueFd late = connect_command();
  EXPECT_TRUE(is_closed_soon(late));
  crowd.clear();
  ASSERT_TRUE(pump_until_ready([this] { return server_->client_count() == 0; }));
  EXPECT_TRUE(serves());
}

TEST_F(ServerTest, ClosesTheOldestOfTooManyHandshakes) {
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 9; ++i) crowd.push_back(connect_node_port());
  EXPECT_TRUE(is_closed_soon(crowd.front()));
  char byte = 0;
  EXPECT_EQ(::recv(crowd.back().get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
}

// The key alone is no reason to stay: a node says at once who it is.
TEST_F(ServerTest, ClosesOldestNodeThatSendsNothing) {
  const proto::NodeIdentity identity{"n0", 0};
  const auto tls =
      proto::TlsContext::client(*ring_.node_key(identity), proto::format_node_identity(identity));
  const proto::TcpEndpoint head{"127.0.0.1", server_->node_port()};
  io_.restart();
  auto peer = score::run(io_, proto::tls_connect(*tls, head, Duration(60s), {}));
  ASSERT_TRUE(peer) << peer.error().message();
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 8; ++i) crowd.push_back(connect_node_port());
  io_.restart();
  const auto read = score::run(io_, peer->connection->read(proto::Role::Head));
  ASSERT_FALSE(read);
  EXPECT_TRUE(read.error().is(Errc::Closed)) << read.error().message();
}

// The time is only printed, because it depends on the disk and on other users of the machine.
TEST_F(ServerTest, AcknowledgesSubmissionsOfSixteenClients) {
  constexpr int kClients = 16;
  constexpr int kEach = 100;
  int accepted = 0;
  const TimePoint start = monotonic_now();
  {
    TaskGroup clients(io_.get_executor(), [](std::string_view, const std::exception_ptr&) {});
    for (int i = 0; i < kClients; ++i) clients.spawn("client", submit_many(kEach, accepted));
    io_.restart();
    while (!clients.empty() && io_.run_one() > 0) {
    }
  }
  const std::chrono::duration<double> took = monotonic_now() - start;
  EXPECT_EQ(accepted, kClients * kEach);
  std::printf("%.0f acknowledged submissions/s through sockets\n", accepted / took.count());
}

}  // namespace
}  // namespace score::head
