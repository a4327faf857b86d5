// Tests TLS between head and node over loopback: accepted peers, rejected peers, and that rejected
// peers disturb no other peer.

#include "proto/transport/tls_connection.hpp"

#include "base/async/task_group.hpp"
#include "base/time.hpp"
#include "proto/frames/errc.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <deque>
#include <fstream>
#include <netinet/in.h>
#include <random>
#include <sys/socket.h>
#include <unistd.h>

namespace score::proto {
namespace {

using base::Result;

// This head accepts forever and keeps the result of each peer.
class Head {
 public:
  explicit Head(asio::io_context& io)
      : key_(random_key()),
        context_(TlsContext::server(key_, [](std::string_view name) { return name != "node99"; })),
        listener_(std::move(*TcpListener::open(io.get_executor(), {"127.0.0.1", 0}))),
        tasks_(io.get_executor(),
               [](std::string_view, const std::exception_ptr&) { ADD_FAILURE(); }) {
    tasks_.spawn("accept", accept_loop());
  }

  Key key_of(std::string_view name) const { return derive_node_key(key_, name); }

  std::uint16_t port() const { return listener_.port(); }

  asio::awaitable<void> stop() {
    listener_.close();
    for (auto& peer : peers) peer.connection->close();
    co_await tasks_.stop();
  }

  std::deque<TlsPeer> peers;
  std::deque<base::Error> refused;
  base::Duration deadline = 60s;  // of the handshake
  ConnectionLimits limits;

 private:
  asio::awaitable<void> accept_loop() {
    for (;;) {
      auto socket = co_await listener_.accept();
      if (!socket) co_return;
      tasks_.spawn("peer", serve(std::move(*socket)));
    }
  }

  asio::awaitable<void> serve(base::UniqueFd socket) {
    auto peer = co_await tls_accept(*context_, std::move(socket), deadline, limits);
    if (!peer) {
      refused.push_back(peer.error());
      co_return;
    }
    peers.push_back(*peer);
    auto connection = peer->connection;
    for (;;) {  // answers each heartbeat
      auto frame = co_await connection->read(Role::Node);
      if (!frame) {
        refused.push_back(frame.error());
        connection->close();
        co_return;
      }
      connection->send(FrameType::HeartbeatReply, "\x08\x01");
    }
  }

  Key key_;
  std::unique_ptr<TlsContext> context_;
  TcpListener listener_;
  base::TaskGroup tasks_;
};

class TlsConnectionTest : public testing::Test {
 protected:
  void TearDown() override { base::run(io_, head_.stop()); }

  Result<TlsPeer> connect(const Key& key, std::string name) {
    contexts_.push_back(TlsContext::client(key, std::move(name)));
    return base::run(
        io_, tls_connect(*contexts_.back(), {"127.0.0.1", head_.port()}, 60s, ConnectionLimits()));
  }

  Result<TlsPeer> connect(const std::string& name) { return connect(head_.key_of(name), name); }

  // Sends a request and reads its reply. Returns false if the connection is unusable.
  bool works(const std::shared_ptr<Connection>& connection) {
    if (!connection->send(FrameType::Heartbeat, "\x08\x01")) return false;
    auto frame = base::run(io_, connection->read(Role::Head));
    return frame && frame->type == FrameType::HeartbeatReply;
  }

  base::UniqueFd connect_plain() {
    base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(head_.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  // Runs the loop until the head has rejected `count` peers.
  void wait_refused(std::size_t count) {
    const auto deadline = base::monotonic_now() + 120s;
    while (head_.refused.size() < count && base::monotonic_now() < deadline) {
      io_.restart();
      io_.run_for(1ms);
    }
    EXPECT_EQ(head_.refused.size(), count);
  }

  asio::io_context io_;
  Head head_{io_};
  std::deque<std::unique_ptr<TlsContext>> contexts_;
};

TEST_F(TlsConnectionTest, ProvesTheNodesName) {
  auto node = connect("node03");
  ASSERT_TRUE(node.has_value()) << node.error().message();
  EXPECT_TRUE(works(node->connection));
  ASSERT_EQ(head_.peers.size(), 1U);
  EXPECT_EQ(head_.peers[0].name, "node03");
  EXPECT_TRUE(head_.peers[0].connection->peer().starts_with("node03 127.0.0.1:"));
}

TEST_F(TlsConnectionTest, CarriesLargeFramesBothWays) {
  auto node = connect("node00");
  ASSERT_TRUE(node.has_value());
  ASSERT_TRUE(works(node->connection));
  const std::string large(8U << 20U, 'k');
  ASSERT_TRUE(head_.peers[0].connection->send(FrameType::FenceDone, large));
  ASSERT_TRUE(node->connection->send(FrameType::FenceEnter, large.substr(0, 4U << 20U)));
  bool got_large = false;
  for (int i = 0; i < 2; ++i) {
    auto frame = base::run(io_, node->connection->read(Role::Head));
    ASSERT_TRUE(frame.has_value()) << frame.error().message();
    got_large |= frame->payload == large;
  }
  EXPECT_TRUE(got_large);
}

TEST_F(TlsConnectionTest, ManySmallFramesArriveInOrder) {
  auto node = connect("node00");
  ASSERT_TRUE(node.has_value());
  ASSERT_TRUE(works(node->connection));
  for (std::size_t i = 0; i < 5000; ++i) {
    ASSERT_TRUE(head_.peers[0].connection->send(FrameType::TaskInput, std::string(i % 700, 'i')));
  }
  for (std::size_t i = 0; i < 5000; ++i) {
    auto frame = base::run(io_, node->connection->read(Role::Head));
    ASSERT_TRUE(frame.has_value()) << frame.error().message();
    ASSERT_EQ(frame->payload.size(), i % 700);
  }
}

TEST_F(TlsConnectionTest, RefusesAWrongKey) {
  auto node = connect(random_key(), "node03");
  ASSERT_FALSE(node.has_value());
  EXPECT_TRUE(node.error().is(WireErrc::BadPeer)) << node.error().message();
  wait_refused(1);
  EXPECT_TRUE(head_.refused[0].is(WireErrc::BadPeer)) << head_.refused[0].message();
  EXPECT_TRUE(head_.peers.empty());
}

TEST_F(TlsConnectionTest, RejectsKeyOfADifferentNode) {
  auto node = connect(head_.key_of("node04"), "node03");
  ASSERT_FALSE(node.has_value());
  wait_refused(1);
  EXPECT_TRUE(head_.peers.empty());
}

TEST_F(TlsConnectionTest, RefusesAnUnknownName) {
  auto node = connect("node99");
  ASSERT_FALSE(node.has_value());
  wait_refused(1);
  auto odd = connect("../../etc/passwd");
  ASSERT_FALSE(odd.has_value());
  wait_refused(2);
  EXPECT_TRUE(head_.peers.empty());
}

// A process that listens in place of the head does not have the node's key.
TEST_F(TlsConnectionTest, NodeRejectsHeadWithDifferentClusterKey) {
  Head other(io_);
  auto context = TlsContext::client(head_.key_of("node03"), "node03");
  auto node =
      base::run(io_, tls_connect(*context, {"127.0.0.1", other.port()}, 60s, ConnectionLimits()));
  EXPECT_FALSE(node.has_value());
  base::run(io_, other.stop());
}

TEST_F(TlsConnectionTest, RefusesPlainTextAtOnce) {
  auto fd = connect_plain();
  const std::string_view request = "GET / HTTP/1.1\r\nHost: head\r\n\r\n";
  ASSERT_TRUE(base::write_all(fd.get(), request).has_value());
  wait_refused(1);
  EXPECT_TRUE(head_.refused[0].is(WireErrc::BadPeer)) << head_.refused[0].message();
}

TEST_F(TlsConnectionTest, RefusesFramesWithoutTls) {
  auto fd = connect_plain();
  ASSERT_TRUE(base::write_all(fd.get(), encode_frame_bytes(FrameType::Heartbeat, "")).has_value());
  wait_refused(1);
}

TEST_F(TlsConnectionTest, TimesOutOnASilentPeer) {
  head_.deadline = 20ms;
  auto fd = connect_plain();
  wait_refused(1);
  EXPECT_TRUE(head_.refused[0].is(base::Errc::Timeout)) << head_.refused[0].message();
}

TEST_F(TlsConnectionTest, TimesOutWithoutAFrameAfterHandshake) {
  head_.limits.header_deadline = 20ms;
  auto node = connect("node00");
  ASSERT_TRUE(node.has_value());
  wait_refused(1);
  EXPECT_TRUE(head_.refused[0].is(base::Errc::Timeout)) << head_.refused[0].message();
}

TEST_F(TlsConnectionTest, RejectsOversizeFramesOfAProvenNode) {
  std::string claim = encode_frame_bytes(FrameType::Heartbeat, "");
  claim[11] = '\x7f';  // claims that 2 GiB follow
  const auto node = connect("node00");
  ASSERT_TRUE(node.has_value());
  // send() would reject this frame, so it is sent as the tail of a valid frame's payload.
  auto raw = std::make_shared<const std::string>(
      encode_frame_bytes(FrameType::Heartbeat, "\x08\x01") + claim);
  ASSERT_TRUE(node->connection->send_shared(raw));
  wait_refused(1);
  EXPECT_TRUE(head_.refused[0].is(WireErrc::TooLong)) << head_.refused[0].message();
}

long resident_kib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  long kib = 0;
  while (status >> word) {
    if (word == "VmRSS:") status >> kib;
  }
  return kib;
}

// Random bytes, truncated handshakes and slow ones come hundreds at a time. All are rejected, the
// connected node is served in the meantime, and memory does not grow.
TEST_F(TlsConnectionTest, HostilePeersDisturbNoOther) {
  const auto node = connect("node00");
  ASSERT_TRUE(node.has_value());
  ASSERT_TRUE(works(node->connection));
  head_.deadline = 100ms;
  std::mt19937 random(3);
  [[maybe_unused]] long before = 0;  // sanitizers keep freed memory
  for (std::size_t round = 0; round < 12; ++round) {
    std::vector<base::UniqueFd> attackers;
    for (std::size_t i = 0; i < 50; ++i) {
      auto fd = connect_plain();
      std::string bytes(random() % 2000, '\0');
      for (char& byte : bytes) byte = static_cast<char>(random());
      if (i % 2 == 0 && bytes.size() > 5) bytes.replace(0, 5, "\x16\x03\x01\x40\x00", 5);
      ASSERT_TRUE(base::write_all(fd.get(), bytes).has_value());
      attackers.push_back(std::move(fd));
    }
    EXPECT_TRUE(works(node->connection)) << "round " << round;
    wait_refused((round + 1) * attackers.size());
    if (round == 1) before = resident_kib();
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(resident_kib() - before, 2048) << "memory grows with every refused peer";
#endif
  EXPECT_EQ(head_.peers.size(), 1U);
}

TEST(TcpEndpoint, ReadsHostAndPort) {
  EXPECT_EQ(format_endpoint(*parse_endpoint("head:6810")), "head:6810");
  EXPECT_EQ(parse_endpoint("[::1]:80")->host, "::1");
  EXPECT_EQ(format_endpoint(*parse_endpoint("[::1]:80")), "[::1]:80");
  for (const char* bad :
       {"", "head", "head:", ":80", "head:65536", "head:-1", "::1:80", "head:8 "}) {
    EXPECT_FALSE(parse_endpoint(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace score::proto
