// Tests UnixConnection, and with it StreamConnection and PlainStream: framing, queueing, deadlines.

#include "proto/transport/unix_connection.hpp"

#include "base/async/task_group.hpp"
#include "proto/frames/errc.hpp"
#include "proto/frames/parse.hpp"
#include "proto/node.pb.h"
#include "proto/shepherd.pb.h"
#include "proto/transport/stream_connection.hpp"

#include <gtest/gtest.h>

#include <array>
#include <fcntl.h>
#include <random>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::proto {
namespace {

using base::Result;

class TemporaryDirectory {
 public:
  TemporaryDirectory() { path_ = ::mkdtemp(text_); }

  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  ~TemporaryDirectory() { ::rmdir(path_.c_str()); }

  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  char text_[32] = "/tmp/score-proto-XXXXXX";
  std::string path_;
};

// One end of a socket pair is a connection; the other end is a bare descriptor or a connection too.
class UnixConnectionTest : public testing::Test {
 protected:
  void open(ConnectionLimits limits = {}) {
    auto pair = base::make_socket_pair(SOCK_STREAM);
    auto ours = adopt_unix(io_.get_executor(), std::move(pair->first), limits);
    connection_ = ours->connection;
    raw_ = std::move(pair->second);
  }

  void open_both(ConnectionLimits limits = {}) {
    open(limits);
    other_ = adopt_unix(io_.get_executor(), std::move(raw_), limits)->connection;
  }

  void write_raw(std::string_view bytes) {
    ASSERT_TRUE(base::write_all(raw_.get(), bytes).has_value());
  }

  Result<InFrame> read(const std::shared_ptr<Connection>& from, Role sender) {
    return base::run(io_, from->read(sender));
  }

  // Has no limit of time: ctest has one.
  void run_until_ended(const base::TaskGroup& tasks) {
    io_.restart();
    while (!tasks.empty()) io_.run_one();
  }

  asio::io_context io_;
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<Connection> other_;
  base::UniqueFd raw_;
};

TEST_F(UnixConnectionTest, CarriesFramesInOrder) {
  open_both();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(connection_->send(FrameType::TaskOutput, std::string(i * 100U, 'x')));
  }
  for (std::size_t i = 0; i < 100; ++i) {
    auto frame = read(other_, Role::Node);
    ASSERT_TRUE(frame.has_value()) << frame.error().message();
    EXPECT_EQ(frame->type, FrameType::TaskOutput);
    EXPECT_EQ(frame->payload.size(), i * 100);
  }
  EXPECT_EQ(connection_->queued_bytes(), 0U);
}

TEST_F(UnixConnectionTest, FramesOfOneTurnAreWrittenTogether) {
  open();
  for (int i = 0; i < 10; ++i) connection_->send(FrameType::Prepared, "\x08\x01");
  io_.poll();
  char bytes[4096];
  EXPECT_EQ(::recv(raw_.get(), bytes, sizeof bytes, MSG_DONTWAIT), 10 * 18);
}

TEST_F(UnixConnectionTest, CarriesAFrameLargerThanTheSocketsBuffer) {
  open_both();
  const std::string large(8U << 20U, 'z');
  ASSERT_TRUE(connection_->send(FrameType::FenceDone, large));
  auto frame = read(other_, Role::Head);
  ASSERT_TRUE(frame.has_value());
  EXPECT_TRUE(frame->payload == large);
}

TEST_F(UnixConnectionTest, SendsSharedBytesToManyWithoutCopies) {
  open_both();
  auto bytes = encode_frame(FrameType::FenceDone, std::string(100'000, 'k'));
  ASSERT_TRUE(connection_->send_shared(bytes));
  EXPECT_EQ(bytes.use_count(), 2);
  auto frame = read(other_, Role::Head);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->payload.size(), 100'000U);
  EXPECT_EQ(bytes.use_count(), 1);
}

TEST_F(UnixConnectionTest, SendRejectsOversizePayload) {
  open();
  EXPECT_FALSE(connection_->send(FrameType::Prepared, std::string(65, 'x')));
  EXPECT_FALSE(connection_->send(FrameType{999}, ""));
  EXPECT_TRUE(connection_->is_open());
  EXPECT_EQ(connection_->queued_bytes(), 0U);
}

TEST_F(UnixConnectionTest, ClosesItselfWhenTheQueueIsFull) {
  ConnectionLimits limits;
  limits.write_queue_bytes = 1U << 20U;
  open(limits);
  const std::string output(100'000, 'x');
  int sent = 0;
  while (connection_->send(FrameType::TaskOutput, output)) {
    io_.restart();
    io_.poll();
    ASSERT_LT(++sent, 100);
    ASSERT_LE(connection_->queued_bytes(), limits.write_queue_bytes);
  }
  EXPECT_FALSE(connection_->is_open());
}

TEST_F(UnixConnectionTest, DrainedWaitsForTheSlowPeer) {
  open_both();
  bool drained = false;
  auto drain = [](std::shared_ptr<Connection> c, bool& done) -> asio::awaitable<void> {
    co_await c->drained(1);
    done = true;
  };
  connection_->send(FrameType::FenceDone, std::string(4U << 20U, 'x'));
  base::TaskGroup tasks(io_.get_executor(), [](std::string_view, const std::exception_ptr&) {});
  tasks.spawn("drain", drain(connection_, drained));
  io_.poll();
  EXPECT_FALSE(drained);
  ASSERT_TRUE(read(other_, Role::Head).has_value());
  io_.restart();
  io_.poll();
  EXPECT_TRUE(drained);
  EXPECT_EQ(connection_->queued_bytes(), 0U);
}

TEST_F(UnixConnectionTest, SendsQueuedFramesBeforeItCloses) {
  open_both();
  connection_->send(FrameType::Failed, "why");
  connection_->close();
  EXPECT_FALSE(connection_->is_open());
  auto frame = read(other_, Role::Head);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->payload, "why");
  auto end = read(other_, Role::Head);
  ASSERT_FALSE(end.has_value());
  EXPECT_TRUE(end.error().is(base::Errc::Closed));
}

TEST_F(UnixConnectionTest, ReadsDataSentBeforeDisconnect) {
  open();
  write_raw(encode_frame_bytes(FrameType::Prepared, "\x08\x01"));
  raw_.reset();
  connection_->send(FrameType::StartTasks, "\x08\x01");
  io_.poll();
  EXPECT_TRUE(read(connection_, Role::Node).has_value());
  EXPECT_TRUE(read(connection_, Role::Node).error().is(base::Errc::Closed));
}

TEST_F(UnixConnectionTest, CloseEndsAWaitingRead) {
  open();
  asio::post(io_, [this] { connection_->close(); });
  auto frame = read(connection_, Role::Node);
  ASSERT_FALSE(frame.has_value());
  EXPECT_TRUE(frame.error().is(base::Errc::Closed));
}

TEST_F(UnixConnectionTest, TimesOutOnASilentPeer) {
  ConnectionLimits limits;
  limits.header_deadline = 20ms;
  open(limits);
  auto frame = read(connection_, Role::Anonymous);
  ASSERT_FALSE(frame.has_value());
  EXPECT_TRUE(frame.error().is(base::Errc::Timeout)) << frame.error().message();
  EXPECT_FALSE(connection_->is_open());
}

// One byte per millisecond keeps the socket busy, but does not extend the deadline.
TEST_F(UnixConnectionTest, TimesOutOnASlowHeader) {
  ConnectionLimits limits;
  limits.header_deadline = 30ms;
  open(limits);
  base::TaskGroup tasks(io_.get_executor(), [](std::string_view, const std::exception_ptr&) {});
  auto trickle = [](int fd, asio::any_io_executor executor) -> asio::awaitable<void> {
    const std::string bytes = encode_frame_bytes(FrameType::ClientHello, std::string(1000, '\x08'));
    for (char byte : bytes) {
      if (::send(fd, &byte, 1, MSG_NOSIGNAL) != 1) co_return;
      asio::steady_timer pause(executor, 1ms);
      [[maybe_unused]] auto [ec] = co_await pause.async_wait(kNoThrow);
    }
  };
  tasks.spawn("trickle", trickle(raw_.get(), io_.get_executor()));
  auto frame = read(connection_, Role::Anonymous);
  ASSERT_FALSE(frame.has_value());
  EXPECT_TRUE(frame.error().is(base::Errc::Timeout)) << frame.error().message();
  base::run(io_, tasks.stop());
}

TEST_F(UnixConnectionTest, TimesOutOnAnIncompleteFrame) {
  ConnectionLimits limits;
  limits.frame_deadline = 20ms;
  open(limits);
  const std::string whole = encode_frame_bytes(FrameType::Prepared, "\x08\x01");
  write_raw(whole + whole.substr(0, 17));
  EXPECT_TRUE(read(connection_, Role::Node).has_value());
  auto frame = read(connection_, Role::Node);
  ASSERT_FALSE(frame.has_value());
  EXPECT_TRUE(frame.error().is(base::Errc::Timeout)) << frame.error().message();
}

TEST_F(UnixConnectionTest, TimesOutIfPeerReadsNothing) {
  ConnectionLimits limits;
  limits.write_deadline = 20ms;
  open(limits);
  connection_->send(FrameType::FenceDone, std::string(8U << 20U, 'x'));
  auto frame = read(connection_, Role::Node);
  ASSERT_FALSE(frame.has_value());
  EXPECT_TRUE(frame.error().is(base::Errc::Timeout)) << frame.error().message();
}

TEST_F(UnixConnectionTest, WaitsForAPeerWithoutWriteDeadline) {
  ConnectionLimits limits;
  limits.write_deadline = 20ms;
  open(limits);
  connection_->send(FrameType::FenceDone, std::string(8U << 20U, 'x'));
  io_.poll();
  connection_->disable_write_deadline();
  io_.restart();
  io_.run_for(200ms);
  EXPECT_TRUE(connection_->is_open());
  EXPECT_GT(connection_->queued_bytes(), 0U);
}

TEST_F(UnixConnectionTest, ClosesWhenTheUsersBudgetIsFull) {
  open();
  const auto outgoing = std::make_shared<base::ByteBudget>(1'000, 10'000);
  connection_->charge_to(nullptr, outgoing);
  {
    const base::ByteShare other(outgoing, 9'000);
    EXPECT_TRUE(connection_->send(FrameType::TaskOutput, std::string(500, 'x')));
    EXPECT_GT(outgoing->used(), 9'500U);
    EXPECT_FALSE(connection_->send(FrameType::TaskOutput, std::string(500, 'x')));
    EXPECT_FALSE(connection_->is_open());
  }
  EXPECT_EQ(outgoing->used(), 0U);
}

asio::awaitable<void> note_read(std::shared_ptr<Connection> from, bool& came) {
  const auto frame = co_await from->read(Role::Node);
  came = frame.has_value();
}

TEST_F(UnixConnectionTest, ReadsALargeFrameOnlyWithRoom) {
  open();
  const auto incoming = std::make_shared<base::ByteBudget>(100'000, 100'000);
  connection_->charge_to(incoming, nullptr);
  auto other = std::make_unique<base::ByteShare>(incoming, 90'000);
  write_raw(encode_frame_bytes(FrameType::TaskOutput, std::string(50'000, 'x')));
  bool came = false;
  base::TaskGroup tasks(io_.get_executor(), [](std::string_view, const std::exception_ptr&) {});
  tasks.spawn("read", note_read(connection_, came));
  io_.restart();
  io_.run_for(100ms);
  EXPECT_FALSE(came);
  EXPECT_LE(incoming->used(), 90'100U);
  other.reset();
  run_until_ended(tasks);
  EXPECT_TRUE(came);
  EXPECT_EQ(incoming->used(), 0U);
}

asio::awaitable<void> read_frames(std::shared_ptr<Connection> from, std::size_t count,
                                  std::string& sizes) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto frame = co_await from->read(Role::Node);
    if (frame) sizes += std::to_string(frame->payload.size()) + ' ';
  }
}

// A peer sends many frames at once. The frames behind the first one count, and without room for
// them they stay in the socket. No frame is lost.
TEST_F(UnixConnectionTest, ReadsAheadOnlyWithRoom) {
  for (const bool has_room : {true, false}) {
    open();
    constexpr std::size_t kBytes = 16U << 20U;
    const auto incoming = std::make_shared<base::ByteBudget>(kBytes, kBytes);
    auto other = std::make_unique<base::ByteShare>(incoming, has_room ? 1 : kBytes - 10'000);
    connection_->charge_to(incoming, nullptr);
    std::string stream;
    std::string expected;
    for (std::size_t size = 1'000; size < 1'030; ++size) {
      stream += encode_frame_bytes(FrameType::TaskOutput, std::string(size, 'x'));
      expected += std::to_string(size) + ' ';
    }
    write_raw(stream);
    std::string sizes;
    base::TaskGroup tasks(io_.get_executor(), [](std::string_view, const std::exception_ptr&) {});
    tasks.spawn("read one", read_frames(connection_, 1, sizes));
    run_until_ended(tasks);
    io_.run_for(100ms);
    EXPECT_EQ(sizes, "1000 ");
    const std::size_t ahead = incoming->used() - other->bytes();
    if (has_room) {
      EXPECT_GT(ahead, 20'000U);
    } else {
      EXPECT_EQ(ahead, 0U);
    }
    tasks.spawn("read the others", read_frames(connection_, 29, sizes));
    run_until_ended(tasks);
    EXPECT_EQ(sizes, expected);
    EXPECT_EQ(incoming->used(), other->bytes());
  }
}

TEST_F(UnixConnectionTest, ReportsStreamEndInsideAFrame) {
  const std::string whole = encode_frame_bytes(FrameType::Prepared, "\x08\x01");
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
    open();
    write_raw(whole.substr(0, bytes));
    raw_.reset();
    auto frame = read(connection_, Role::Node);
    ASSERT_FALSE(frame.has_value());
    EXPECT_TRUE(frame.error().is(WireErrc::BadFrame)) << frame.error().message();
  }
}

// Frames with descriptors are mixed with plain ones, more than one write accepts at once.
TEST_F(UnixConnectionTest, DescriptorsArriveWithTheirFrames) {
  ConnectionLimits limits;
  limits.descriptors = 64;
  open_both(limits);
  wire::PassedDescriptors message;
  for (std::uint32_t i = 0; i < 40; ++i) {
    message.set_first(i);
    message.set_count(i % 3);
    std::vector<base::UniqueFd> fds;
    for (std::uint32_t n = 0; n < i % 3; ++n) {
      fds.push_back(std::move(*base::open_file("/proc/self/status", O_RDONLY)));
    }
    if (fds.empty()) {
      ASSERT_TRUE(send(*connection_, message));
    } else {
      ASSERT_TRUE(connection_->send_descriptors(FrameType::PassedDescriptors,
                                                message.SerializeAsString(), std::move(fds)));
    }
  }
  for (std::uint32_t i = 0; i < 40; ++i) {
    auto frame = read(other_, Role::Shepherd);
    ASSERT_TRUE(frame);
    auto got = parse<wire::PassedDescriptors>(*frame);
    ASSERT_EQ(got->first(), i);
    const auto fds = other_->take_descriptors(got->count());
    ASSERT_EQ(fds.size(), i % 3);
    for (const auto& fd : fds) EXPECT_GE(::fcntl(fd.get(), F_GETFD), 0);
  }
  EXPECT_TRUE(other_->take_descriptors(8).empty());
}

TEST_F(UnixConnectionTest, MoreDescriptorsThanAllowedAreAnError) {
  ConnectionLimits limits;
  limits.descriptors = 1;
  open(limits);
  const std::array<int, 2> fds{0, 0};
  const std::byte byte{};
  ASSERT_TRUE(base::send_with_fds(raw_.get(), {&byte, 1}, fds));
  EXPECT_FALSE(read(connection_, Role::Shepherd));
}

TEST_F(UnixConnectionTest, UnexpectedDescriptorsAreClosed) {
  open();
  auto pipe = base::make_pipe();
  const int fd = pipe->write.get();
  wire::NetworkRequest request;
  request.set_attempt(1);
  const std::string frame =
      encode_frame_bytes(FrameType::NetworkRequest, request.SerializeAsString());
  ASSERT_TRUE(base::send_with_fds(raw_.get(), std::as_bytes(std::span(frame)), {&fd, 1}));
  pipe->write = base::UniqueFd();
  ASSERT_TRUE(read(connection_, Role::Shepherd));
  char none = 0;
  EXPECT_EQ(::read(pipe->read.get(), &none, 1), 0);  // the only writer of the pipe is closed
}

TEST_F(UnixConnectionTest, RefusesRandomBytes) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    open();
    std::string bytes(4096, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    write_raw(bytes);
    auto frame = read(connection_, Role::Anonymous);
    ASSERT_FALSE(frame.has_value());
    EXPECT_EQ(frame.error().code().category(), wire_category()) << frame.error().message();
  }
}

TEST_F(UnixConnectionTest, RejectsFrameOfUnauthorisedSender) {
  open();
  write_raw(encode_frame_bytes(FrameType::Submit, "x"));
  auto frame = read(connection_, Role::Anonymous);
  ASSERT_FALSE(frame.has_value());
  EXPECT_TRUE(frame.error().is(WireErrc::NotAllowed));
}

class UnixListenerTest : public testing::Test {
 protected:
  Result<UnixListener> listen(mode_t mode = 0600) {
    return UnixListener::open(io_.get_executor(), path_, mode, ConnectionLimits());
  }

  asio::io_context io_;
  TemporaryDirectory directory_;
  std::string path_ = directory_ / "sock";
};

asio::awaitable<Result<UnixPeer>> meet(UnixListener& listener, std::string path,
                                       std::shared_ptr<Connection>& client) {
  auto connected = co_await connect_unix(path, 60s, ConnectionLimits());
  if (!connected) co_return connected.error();
  client = connected->connection;
  co_return co_await listener.accept();
}

TEST_F(UnixListenerTest, ReportsThePeersCredentials) {
  auto listener = listen();
  ASSERT_TRUE(listener.has_value()) << listener.error().message();
  std::shared_ptr<Connection> client;
  auto peer = base::run(io_, meet(*listener, path_, client));
  ASSERT_TRUE(peer.has_value()) << peer.error().message();
  EXPECT_EQ(peer->credentials.uid, base::UserId(::geteuid()));
  EXPECT_EQ(peer->credentials.pid, ::getpid());
  EXPECT_EQ(peer->connection->peer(), fmt::format("uid {} pid {}", ::geteuid(), ::getpid()));
}

TEST_F(UnixListenerTest, SocketHasItsModeAndIsRemoved) {
  struct stat info {};

  {
    auto listener = listen(0640);
    ASSERT_TRUE(listener.has_value());
    ASSERT_EQ(::stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0640U);
  }
  EXPECT_NE(::stat(path_.c_str(), &info), 0);
}

TEST_F(UnixListenerTest, ReplacesAStaleSocket) {
  const std::string kept = directory_ / "kept";
  {
    auto dead = listen();
    ASSERT_TRUE(dead.has_value());
    ASSERT_EQ(::link(path_.c_str(), kept.c_str()), 0);
  }
  ASSERT_EQ(::rename(kept.c_str(), path_.c_str()), 0);
  auto again = listen();
  EXPECT_TRUE(again.has_value()) << again.error().message();
}

TEST_F(UnixListenerTest, RefusesASocketInUseAndOtherFiles) {
  auto first = listen();
  ASSERT_TRUE(first.has_value());
  EXPECT_TRUE(listen().error().is(base::Errc::Exists));
  first->close();
  {
    auto file = base::open_file(path_, O_CREAT | O_WRONLY, 0600);
    ASSERT_TRUE(file.has_value());
  }
  EXPECT_TRUE(listen().error().is(base::Errc::Exists));
  ::unlink(path_.c_str());
}

TEST_F(UnixListenerTest, NamesThePathItCannotConnectTo) {
  auto peer = base::run(io_, connect_unix(path_, 60s, ConnectionLimits()));
  ASSERT_FALSE(peer.has_value());
  EXPECT_NE(peer.error().message().find(path_), std::string::npos) << peer.error().message();
  path_ = std::string(200, 'p');
  EXPECT_TRUE(base::run(io_, connect_unix(path_, 60s, ConnectionLimits()))
                  .error()
                  .is(base::Errc::TooLarge));
}

TEST_F(UnixListenerTest, CloseEndsAnAccept) {
  auto listener = listen();
  ASSERT_TRUE(listener.has_value());
  asio::post(io_, [&listener] { listener->close(); });
  auto peer = base::run(io_, listener->accept());
  ASSERT_FALSE(peer.has_value());
  EXPECT_TRUE(peer.error().is(base::Errc::Closed)) << peer.error().message();
}

// This listener answers every ListNodes and counts the rejected connections.
class Answering {
 public:
  Answering(asio::io_context& io, UnixListener listener)
      : listener_(std::move(listener)), tasks_(io.get_executor(), nothing) {
    tasks_.spawn("accept", accept());
  }

  asio::awaitable<void> stop() {
    listener_.close();
    co_await tasks_.stop();
  }

  std::size_t refused = 0;

 private:
  static void nothing(std::string_view, const std::exception_ptr&) {}

  asio::awaitable<void> accept() {
    for (;;) {
      auto peer = co_await listener_.accept();
      if (!peer) co_return;
      tasks_.spawn("peer", serve(peer->connection));
    }
  }

  asio::awaitable<void> serve(std::shared_ptr<Connection> connection) {
    for (;;) {
      auto frame = co_await connection->read(Role::OtherUser);
      if (!frame) break;
      connection->send(FrameType::NodeList, "");
    }
    ++refused;
    connection->close();
  }

  UnixListener listener_;
  base::TaskGroup tasks_;
};

// Returns one of several attacks: noise, a truncated hello, an oversize claim, or a frame of a
// different role.
std::string attack(std::mt19937& random) {
  std::string bytes(1 + random() % 3000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  switch (random() % 4) {
    case 0:
      return bytes;
    case 1:
      return encode_frame_bytes(FrameType::Submit, bytes).substr(0, bytes.size());
    case 2:
      return encode_frame_bytes(FrameType::ListNodes, bytes);
    default:
      return encode_frame_bytes(FrameType::PrepareTasks, bytes);
  }
}

TEST_F(UnixListenerTest, HostilePeersDisturbNoOther) {
  auto listener = listen();
  ASSERT_TRUE(listener.has_value());
  Answering server(io_, std::move(*listener));
  const auto friendly = base::run(io_, connect_unix(path_, 60s, ConnectionLimits()));
  ASSERT_TRUE(friendly.has_value());
  std::mt19937 random(5);
  for (std::size_t round = 1; round <= 20; ++round) {
    for (int i = 0; i < 50; ++i) {
      auto fd = base::run(io_, connect_unix(path_, 60s, ConnectionLimits()));
      ASSERT_TRUE(fd.has_value());
      const std::string bytes = attack(random);
      const std::array<std::string_view, 1> parts{bytes};
      static_cast<StreamConnection&>(*fd->connection).stream().write_some(parts);
      fd->connection->close();
    }
    ASSERT_TRUE(friendly->connection->send(FrameType::ListNodes, ""));
    auto answer = base::run(io_, friendly->connection->read(Role::Head));
    ASSERT_TRUE(answer.has_value()) << answer.error().message();
    EXPECT_EQ(answer->type, FrameType::NodeList);
    io_.restart();
    while (server.refused < round * 50) io_.run_one();
  }
  EXPECT_EQ(server.refused, 1000U);
  base::run(io_, server.stop());
}

}  // namespace
}  // namespace score::proto
