#include "base/os/fd.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score {
namespace {

bool is_open(int fd) {
  return fcntl(fd, F_GETFD) >= 0;
}

bool closes_on_exec(int fd) {
  return (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class FdTest : public testing::Test {
 protected:
  FdTest() {
    std::string name = std::filesystem::temp_directory_path() / "score_fd_XXXXXX";
    directory = mkdtemp(name.data());
  }

  ~FdTest() override { std::filesystem::remove_all(directory); }

  std::string directory;
};

TEST(UniqueFd, ClosesWhatItOwns) {
  int number = -1;
  {
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe);
    number = pipe->read.get();
    EXPECT_TRUE(is_open(number));
    EXPECT_TRUE(closes_on_exec(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(UniqueFd, MovesOwnership) {
  auto pipe = make_pipe();
  const int number = pipe->read.get();
  UniqueFd other = std::move(pipe->read);
  EXPECT_FALSE(pipe->read);
  EXPECT_EQ(other.get(), number);
  other = std::move(pipe->write);
  EXPECT_FALSE(is_open(number));
  const int released = other.release();
  EXPECT_FALSE(other);
  EXPECT_TRUE(is_open(released));
  close(released);
}

TEST(Descriptor, DuplicatesAndSwitchesBlocking) {
  auto pipe = make_pipe();
  auto copy = duplicate(pipe->read.get());
  ASSERT_TRUE(copy);
  EXPECT_TRUE(closes_on_exec(copy->get()));
  ASSERT_TRUE(set_nonblocking(copy->get(), true));
  char byte = 0;
  EXPECT_EQ(read(pipe->read.get(), &byte, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_FALSE(set_nonblocking(-1, true));
  EXPECT_FALSE(duplicate(-1));
}

TEST_F(FdTest, ReplacedFileIsReadBack) {
  const auto path = directory + "/file";
  ASSERT_TRUE(replace_file(path, "one", 0600));
  ASSERT_TRUE(replace_file(path, std::string(10'000, 'x'), 0640));
  EXPECT_EQ(read_file(path, 10'000).value(), std::string(10'000, 'x'));

  struct stat info {};

  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0640U);
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST_F(FdTest, FileAboveTheLimitIsRejected) {
  const auto path = directory + "/file";
  ASSERT_TRUE(replace_file(path, "12345", 0600));
  EXPECT_TRUE(read_file(path, 4).error().is(Errc::TooLarge));
  EXPECT_TRUE(read_file("/dev/zero", 100'000).error().is(Errc::TooLarge));
}

TEST_F(FdTest, NamesThePathInErrors) {
  const auto missing = read_file(directory + "/none", 10);
  ASSERT_FALSE(missing);
  EXPECT_TRUE(missing.error().is(std::errc::no_such_file_or_directory));
  EXPECT_NE(missing.error().message().find(directory + "/none"), std::string::npos);
  EXPECT_FALSE(replace_file(directory + "/none/x", "a", 0600));
}

TEST_F(FdTest, ReplaceRefusesLinkAsTemporaryFile) {
  const auto victim = directory + "/victim";
  ASSERT_TRUE(replace_file(victim, "keep", 0600));
  std::filesystem::create_symlink(victim, directory + "/file.new");
  EXPECT_FALSE(replace_file(directory + "/file", "bad", 0600));
  EXPECT_EQ(read_file(victim, 10).value(), "keep");
}

TEST(PassedFds, ArriveWithTheirMessage) {
  auto sockets = make_socket_pair(SOCK_SEQPACKET);
  auto pipe = make_pipe();
  ASSERT_TRUE(sockets && pipe);
  const int passed[] = {pipe->write.get()};
  ASSERT_TRUE(send_with_fds(sockets->first.get(), bytes_of("take it"), passed));
  auto message = receive_with_fds(sockets->second.get(), 100);
  ASSERT_TRUE(message);
  EXPECT_EQ(text_of(message->bytes), "take it");
  ASSERT_EQ(message->fds.size(), 1U);
  EXPECT_TRUE(closes_on_exec(message->fds[0].get()));
  ASSERT_TRUE(write_all(message->fds[0].get(), "hello"));
  message->fds.clear();
  pipe->write.reset();
  EXPECT_EQ(read_all(pipe->read.get(), 100).value(), "hello");
}

TEST(PassedFds, MoreThanLimitAreRejectedWithoutLeak) {
  auto sockets = make_socket_pair(SOCK_SEQPACKET);
  const std::vector<int> many(kMaxPassedFds + 1, 0);
  EXPECT_TRUE(send_with_fds(sockets->first.get(), bytes_of("x"), many).error().is(Errc::TooLarge));
  const std::vector<int> all(kMaxPassedFds, 0);
  ASSERT_TRUE(send_with_fds(sockets->first.get(), bytes_of("x"), all));
  EXPECT_EQ(receive_with_fds(sockets->second.get(), 10)->fds.size(), kMaxPassedFds);
}

TEST(PassedFds, LongMessageIsRejected) {
  auto sockets = make_socket_pair(SOCK_SEQPACKET);
  ASSERT_TRUE(send_with_fds(sockets->first.get(), bytes_of("0123456789"), {}));
  EXPECT_TRUE(receive_with_fds(sockets->second.get(), 9).error().is(Errc::TooLarge));
}

TEST(PassedFds, EndOfStreamIsAnEmptyMessage) {
  auto sockets = make_socket_pair(SOCK_SEQPACKET);
  sockets->first.reset();
  auto message = receive_with_fds(sockets->second.get(), 10);
  ASSERT_TRUE(message);
  EXPECT_TRUE(message->bytes.empty());
  EXPECT_FALSE(send_with_fds(sockets->second.get(), bytes_of("x"), {}));
}

TEST(PeerCredentials, AreThisProcess) {
  auto sockets = make_socket_pair(SOCK_STREAM);
  const auto peer = peer_credentials(sockets->first.get());
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->pid, getpid());
  EXPECT_EQ(peer->uid, UserId(getuid()));
  EXPECT_EQ(peer->gid, GroupId(getgid()));
  auto pipe = make_pipe();
  EXPECT_FALSE(peer_credentials(pipe->read.get()));
}

}  // namespace
}  // namespace score
