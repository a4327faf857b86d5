#include "base/systemd/notify.hpp"

#include "base/os/fd.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace score {
namespace {

class Notify : public ::testing::Test {
 protected:
  void SetUp() override {
    manager_ = UniqueFd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "scored-notify-test-" + std::to_string(getpid());
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    ASSERT_EQ(bind(manager_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);
  }

  void TearDown() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  }

  std::string received() {
    std::array<char, 512> text{};
    const ssize_t got = recv(manager_.get(), text.data(), text.size(), 0);
    return got < 0 ? "nothing" : std::string(text.data(), static_cast<std::size_t>(got));
  }

  UniqueFd manager_;
};

TEST_F(Notify, ReportsReady) {
  notify_ready();
  EXPECT_EQ(received(), "READY=1");
}

TEST_F(Notify, KeepsAStatusOnOneLine) {
  notify_status("two\nREADY=1");
  EXPECT_EQ(received(), "STATUS=two\\nREADY=1");
}

TEST_F(Notify, IsSilentWithoutAManager) {
  unsetenv("NOTIFY_SOCKET");
  notify_ready();
  EXPECT_EQ(received(), "nothing");
}

TEST_F(Notify, IgnoresANameThatIsNotASocket) {
  for (const char* name : {"", "@", "relative", "/no/such/socket"}) {
    setenv("NOTIFY_SOCKET", name, 1);
    notify_ready();
  }
  setenv("NOTIFY_SOCKET", std::string(300, '/').c_str(), 1);
  notify_ready();
  EXPECT_EQ(received(), "nothing");
}

TEST_F(Notify, FeedsTheWatchdogTwicePerTimeout) {
  EXPECT_EQ(watchdog_period(), std::nullopt);
  setenv("WATCHDOG_USEC", "10000000", 1);
  EXPECT_EQ(watchdog_period(), Duration{5s});
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(watchdog_period(), std::nullopt);
  unsetenv("WATCHDOG_PID");
  setenv("WATCHDOG_USEC", "soon", 1);
  EXPECT_EQ(watchdog_period(), std::nullopt);
}

}  // namespace
}  // namespace score
