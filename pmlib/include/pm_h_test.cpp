// These tests check the C functions that do more than call Endpoint, with handles that are no
// longer valid.
#include "pmlib/include/pm.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

// Handles has one rank that is its own peer.
class Handles : public testing::Test {
 protected:
  Handles() {
    std::string path = "/tmp/pm_h_test.XXXXXX";
    const int fd = mkstemp(path.data());
    const std::string text = "key 1f\ndevice none\nrank 0 here -\n";
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(fd);
    char message[200] = "";
    EXPECT_EQ(pm_open_file(path.c_str(), 0, &context_, message, sizeof message), 0) << message;
    unlink(path.c_str());
  }

  ~Handles() override { pm_close(context_); }

  pm_context* context_ = nullptr;
  std::vector<char> memory_ = std::vector<char>(8192);
};

TEST_F(Handles, HandlesAreRefusedAfterDeregistration) {
  pm_handle old{}, now{};
  ASSERT_EQ(pm_register(context_, memory_.data(), memory_.size(), &old), 0);
  ASSERT_EQ(pm_deregister(context_, &old), 0);
  EXPECT_EQ(pm_deregister(context_, &old), PM_EINVAL);
  // The same entry of the table now belongs to a different registration.
  ASSERT_EQ(pm_register(context_, memory_.data(), memory_.size(), &now), 0);
  ASSERT_EQ(now.region, old.region);
  pm_op op = 0;
  EXPECT_EQ(pm_write(context_, 0, &now, 0, &old, 0, 8, &op), PM_EINVAL);
  EXPECT_EQ(pm_send_large(context_, 0, &old, 0, 8, &op), PM_EINVAL);
  EXPECT_EQ(pm_deregister(context_, &old), PM_EINVAL);
  EXPECT_EQ(pm_write(context_, 0, &now, 0, &now, 4096, 8, &op), 0);
  EXPECT_EQ(pm_test(context_, op), 0);
  EXPECT_EQ(pm_deregister(context_, &now), 0);
}

TEST_F(Handles, DatagramsAreMarkedAndCounted) {
  const std::uint32_t self = 0;
  ASSERT_EQ(pm_send_datagram(context_, &self, 1, "hello", 5), 0);
  pm_message message{};
  ASSERT_EQ(pm_receive(context_, &message), 0);
  EXPECT_EQ(message.flags, PM_DATAGRAM);
  EXPECT_EQ(std::string(static_cast<const char*>(message.data), message.length), "hello");
  pm_release_receive_buffer(context_, &message);
  const std::uint32_t nobody = 1;
  EXPECT_EQ(pm_send_datagram(context_, &nobody, 1, "hello", 5), PM_EINVAL);
  pm_statistics statistics{};
  pm_get_statistics(context_, &statistics, sizeof statistics);
  EXPECT_EQ(statistics.datagrams_sent, 1u);
  EXPECT_EQ(statistics.datagrams_received, 1u);
  EXPECT_EQ(statistics.messages_sent, 0u);
  // A program built for version 1.0 has a shorter structure.
  pm_statistics old{};
  pm_get_statistics(context_, &old, offsetof(pm_statistics, datagrams_sent));
  EXPECT_EQ(old.datagrams_sent, 0u);
}

}  // namespace
