#include "scored/job/waiting/own_client.hpp"

#include "base/os/cgroup.hpp"
#include "base/os/fd.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::shepherd {
namespace {

// Listens, and has one client.
class OwnClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    auto* generic = reinterpret_cast<sockaddr*>(&address_);
    ASSERT_EQ(bind(listener_.get(), generic, size), 0);
    ASSERT_EQ(listen(listener_.get(), 4), 0);
    ASSERT_EQ(getsockname(listener_.get(), generic, &size), 0);
  }

  void TearDown() override { end_client(); }

  [[nodiscard]] base::UniqueFd connect_here() const {
    base::UniqueFd made(socket(AF_INET, SOCK_STREAM, 0));
    const auto* generic = reinterpret_cast<const sockaddr*>(&address_);
    return connect(made.get(), generic, sizeof address_) == 0 ? std::move(made) : base::UniqueFd();
  }

  // Starts a client that first does `change`. Returns its connection.
  base::UniqueFd accept_client(const std::function<bool()>& change) {
    client_ = fork();
    if (client_ == 0) {
      if (!change()) _exit(1);
      const base::UniqueFd connection = connect_here();
      for (;;) pause();
    }
    return base::UniqueFd(accept(listener_.get(), nullptr, nullptr));
  }

  void end_client() {
    if (client_ <= 0) return;
    kill(client_, SIGKILL);
    waitpid(client_, nullptr, 0);
    client_ = 0;
  }

  [[nodiscard]] bool has_own() const { return has_own_client(ntohs(address_.sin_port)); }

  base::UniqueFd listener_{socket(AF_INET, SOCK_STREAM, 0)};
  sockaddr_in address_{};
  pid_t client_ = 0;
};

TEST_F(OwnClientTest, ProcessOfThisUserAndCgroupIsOwn) {
  EXPECT_FALSE(has_own()) << "no client";
  const base::UniqueFd connection = accept_client([] { return true; });
  EXPECT_TRUE(has_own());
  EXPECT_TRUE(is_own_client(connection.get()));
  end_client();
  EXPECT_FALSE(is_own_client(connection.get())) << "it has ended";
}

TEST_F(OwnClientTest, OtherUserIsAStranger) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  const base::UniqueFd connection =
      accept_client([] { return setresuid(65534, 65534, 65534) == 0; });
  EXPECT_FALSE(has_own());
  EXPECT_FALSE(is_own_client(connection.get()));
  const base::UniqueFd second = connect_here();
  EXPECT_TRUE(has_own()) << "beside the stranger";
  EXPECT_FALSE(is_own_client(connection.get()));
}

TEST_F(OwnClientTest, OtherCgroupIsAStranger) {
  const auto own = base::own_cgroup();
  const std::string other = own ? *own + "/own-client-" + std::to_string(getpid()) : "";
  auto cgroup =
      other.empty() ? base::Result<base::Cgroup>(own.error()) : base::Cgroup::create(other);
  if (!cgroup) GTEST_SKIP() << "no cgroup2 that may be written";
  const base::UniqueFd connection =
      accept_client([&] { return cgroup->add(getpid()).has_value(); });
  EXPECT_FALSE(has_own());
  EXPECT_FALSE(is_own_client(connection.get()));
  end_client();
  for (int i = 0; i < 1'000 && !base::remove_cgroup_tree(other); ++i) usleep(2'000);
}

}  // namespace
}  // namespace score::shepherd
