#include "base/systemd/passed_socket.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score {
namespace {

class PassedSocket : public testing::Test {
 protected:
  void SetUp() override {
    std::string made = testing::TempDir() + "passed.XXXXXX";
    ASSERT_NE(::mkdtemp(made.data()), nullptr);
    directory_ = made;
    path_ = directory_ + "/socket";
  }

  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] UniqueFd listener() const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd.get(), 1), 0);
    return fd;
  }

  // Returns the result of `check` in a process to which `fd` was passed as a service manager does
  // it: as descriptor 3 and, for a greater `count`, the next ones.
  static bool in_child(int fd, int count, const std::function<bool()>& check) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (int i = 0; i < count; ++i) ::dup2(fd, 3 + i);
      ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
      ::setenv("LISTEN_FDS", std::to_string(count).c_str(), 1);
      ::_exit(check() ? 0 : 1);
    }
    int status = 0;
    return ::waitpid(pid, &status, 0) == pid && status == 0;
  }

  std::string directory_, path_;
};

TEST_F(PassedSocket, IsAbsentWithoutAServiceManager) {
  const auto taken = take_passed_socket(path_);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(taken->has_value());
}

TEST_F(PassedSocket, IsTakenOnce) {
  const UniqueFd socket = listener();
  EXPECT_TRUE(in_child(socket.get(), 1, [this] {
    auto taken = take_passed_socket(path_);
    auto again = take_passed_socket(path_);
    return taken && taken->has_value() && (*taken)->get() == 3 && again && !again->has_value();
  }));
}

TEST_F(PassedSocket, IsNotPassedOnToPrograms) {
  const UniqueFd socket = listener();
  EXPECT_TRUE(in_child(socket.get(), 1, [this] {
    auto taken = take_passed_socket(path_);
    return taken && (::fcntl(3, F_GETFD) & FD_CLOEXEC) != 0 && ::getenv("LISTEN_FDS") == nullptr;
  }));
}

TEST_F(PassedSocket, IsRejectedIfOfADifferentKind) {
  const UniqueFd socket = listener();
  const auto is_refused = [](const std::string& path) {
    const auto taken = take_passed_socket(path);
    return !taken && taken.error().is(Errc::Malformed);
  };
  EXPECT_TRUE(in_child(socket.get(), 1, [&] { return is_refused(path_ + "2"); }));
  EXPECT_TRUE(in_child(socket.get(), 2, [&] { return is_refused(path_); }));
  const UniqueFd datagrams(::socket(AF_UNIX, SOCK_DGRAM, 0));
  EXPECT_TRUE(in_child(datagrams.get(), 1, [&] { return is_refused(path_); }));
}

}  // namespace
}  // namespace score
