#include "pario/server/io/ring.hpp"

#include "base/os/fd.hpp"
#include "tests/support/pario/test_directory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace score::pario {
namespace {

struct Seen final : Completion {
  void complete(int result) override { results.push_back(result); }

  std::vector<int> results;
};

// Each test runs over io_uring and over threads.
class RingTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      ring_.open_plain();
    } else if (ring_.open(64) != 0) {
      GTEST_SKIP() << "io_uring is refused here";
    }
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    near_ = UniqueFd(ends[0]);
    far_ = UniqueFd(ends[1]);
  }

  int result_of(Seen& seen) {
    for (int i = 0; i < 100 && seen.results.empty(); ++i) EXPECT_EQ(ring_.turn(1'000'000), 0);
    if (seen.results.empty()) return -ETIMEDOUT;
    const int result = seen.results.back();
    seen.results.clear();
    return result;
  }

  bool is_open(Seen& seen) {
    EXPECT_EQ(ring_.turn(0), 0);
    return seen.results.empty();
  }

  UniqueFd near_;
  UniqueFd far_;
  Seen seen_;
  Ring ring_;
};

TEST_P(RingTest, WritesSyncsAndReadsFiles) {
  const TestDirectory directory;
  const UniqueFd file(openat(directory.fd(), "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const std::string text = "striped";
  io_uring_prep_write(ring_.next(&seen_), file.get(), text.data(), 7, 3);
  EXPECT_EQ(result_of(seen_), 7);
  io_uring_prep_fsync(ring_.next(&seen_), file.get(), IORING_FSYNC_DATASYNC);
  EXPECT_EQ(result_of(seen_), 0);
  std::string read(16, '-');
  io_uring_prep_read(ring_.next(&seen_), file.get(), read.data(), 16, 3);
  EXPECT_EQ(result_of(seen_), 7);
  EXPECT_EQ(read, text + "---------");
  io_uring_prep_read(ring_.next(&seen_), -1, read.data(), 16, 3);
  EXPECT_EQ(result_of(seen_), -EBADF);
}

TEST_P(RingTest, RunsManyFileRequestsAtOnce) {
  const TestDirectory directory;
  const UniqueFd file(openat(directory.fd(), "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  constexpr unsigned kMany = 500;  // more than the ring has entries
  const std::string text(4096, 'x');
  for (unsigned i = 0; i < kMany; ++i) {
    io_uring_prep_write(ring_.next(&seen_), file.get(), text.data(), 4096, i * std::size_t{4096});
  }
  for (int i = 0; i < 1'000 && seen_.results.size() < kMany; ++i) ring_.turn(1'000'000);
  EXPECT_EQ(seen_.results, std::vector<int>(kMany, 4096));
}

TEST_P(RingTest, SocketsWaitForData) {
  std::string received(4, '-');
  io_uring_prep_recv(ring_.next(&seen_), near_.get(), received.data(), 4, 0);
  EXPECT_TRUE(is_open(seen_));
  ASSERT_EQ(send(far_.get(), "data", 4, 0), 4);
  EXPECT_EQ(result_of(seen_), 4);
  EXPECT_EQ(received, "data");
  io_uring_prep_recv(ring_.next(&seen_), near_.get(), received.data(), 4, 0);
  EXPECT_TRUE(is_open(seen_));
  shutdown(near_.get(), SHUT_RDWR);
  EXPECT_EQ(result_of(seen_), 0);
}

TEST_P(RingTest, SenderContinuesWhenThereIsRoom) {
  std::vector<char> bytes(4U << 20U, 'b');
  std::size_t sent = 0;
  std::size_t received = 0;
  while (sent < bytes.size()) {
    iovec piece{bytes.data() + sent, bytes.size() - sent};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    io_uring_prep_sendmsg(ring_.next(&seen_), near_.get(), &message, MSG_NOSIGNAL);
    while (is_open(seen_)) {
      std::vector<char> some(100'000);
      const ssize_t got = recv(far_.get(), some.data(), some.size(), MSG_DONTWAIT);
      received += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    const int result = result_of(seen_);
    ASSERT_GT(result, 0);
    sent += static_cast<std::size_t>(result);
  }
  std::vector<char> rest(bytes.size());
  while (received < sent) {
    const ssize_t got = recv(far_.get(), rest.data(), rest.size(), 0);
    ASSERT_GT(got, 0);
    received += static_cast<std::size_t>(got);
  }
  EXPECT_EQ(received, bytes.size());
}

TEST_P(RingTest, ReportsClosedPeerToSender) {
  far_.reset();
  char byte = 'b';
  iovec piece{&byte, 1};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  io_uring_prep_sendmsg(ring_.next(&seen_), near_.get(), &message, MSG_NOSIGNAL);
  EXPECT_EQ(result_of(seen_), -EPIPE);
}

TEST_P(RingTest, AcceptsConnections) {
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage address{};
  address.ss_family = AF_UNIX;  // the kernel chooses a name
  auto* name = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener.get(), name, sizeof(sa_family_t)), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  socklen_t length = sizeof address;
  ASSERT_EQ(getsockname(listener.get(), name, &length), 0);
  sockaddr_storage peer{};
  socklen_t peer_length = sizeof peer;
  io_uring_prep_accept(ring_.next(&seen_), listener.get(), reinterpret_cast<sockaddr*>(&peer),
                       &peer_length, SOCK_CLOEXEC);
  EXPECT_TRUE(is_open(seen_));
  const UniqueFd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.get(), name, length), 0);
  const UniqueFd accepted(result_of(seen_));
  ASSERT_TRUE(accepted);
  EXPECT_EQ(fcntl(accepted.get(), F_GETFD), FD_CLOEXEC);
}

TEST_P(RingTest, RemovedPollIsCancelled) {
  io_uring_prep_poll_add(ring_.next(&seen_), near_.get(), POLLIN);
  EXPECT_TRUE(is_open(seen_));
  io_uring_prep_poll_remove(ring_.next(nullptr),
                            reinterpret_cast<std::uint64_t>(static_cast<Completion*>(&seen_)));
  EXPECT_EQ(result_of(seen_), -ECANCELED);
  io_uring_prep_poll_add(ring_.next(&seen_), near_.get(), POLLIN);
  ASSERT_EQ(send(far_.get(), "d", 1, 0), 1);
  EXPECT_EQ(result_of(seen_), POLLIN);
}

TEST_P(RingTest, TimeoutsExpire) {
  __kernel_timespec time{0, 1'000'000};
  io_uring_prep_timeout(ring_.next(&seen_), &time, 0, 0);
  EXPECT_EQ(ring_.turn(-1), 0);
  EXPECT_EQ(result_of(seen_), -ETIME);
}

INSTANTIATE_TEST_SUITE_P(Ways, RingTest, testing::Bool(),
                         [](const auto& way) { return way.param ? "Threads" : "IoUring"; });

}  // namespace
}  // namespace score::pario
