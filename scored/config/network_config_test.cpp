#include "scored/config/network_config.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string_view>

namespace score {
namespace {

std::optional<NetworkConfig> read(std::string_view text) {
  auto file = ConfigFile::parse(text, "test");
  if (!file) return std::nullopt;
  ConfigSection root = file->root();
  auto config = read_network_config(root);
  if (!file->finish()) return std::nullopt;
  return config;
}

TEST(NetworkConfig, WithoutATableJobsUseSharedMemoryAndUdp) {
  const auto config = read("");
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->shmem);
  EXPECT_EQ(config->device, NetworkDevice::Udp);
  EXPECT_EQ(config->channels, 16U);
  EXPECT_EQ(config->payload, 1424U);
  EXPECT_FALSE(config->is_off());
}

TEST(NetworkConfig, TakesEveryKey) {
  const auto config = read(
      "[network]\ndevices = [\"ethernet\"]\nchannels = 1\ninterface = \"eth1\"\n"
      "pm_auth = \"tag\"\npayload = 8952\n");
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->shmem);
  EXPECT_EQ(config->device, NetworkDevice::Ethernet);
  EXPECT_EQ(config->interface, "eth1");
  EXPECT_TRUE(config->tags);
  EXPECT_EQ(config->payload, 8952U);
}

TEST(NetworkConfig, SwitchesByTheClockUnlessBarriersAreAskedFor) {
  EXPECT_EQ(read("")->switch_mode, SwitchMode::Clock);
  EXPECT_EQ(read("[network]\nswitch_mode = \"barrier\"\n")->switch_mode, SwitchMode::Barrier);
}

TEST(NetworkConfig, NoDeviceTurnsItOff) {
  EXPECT_TRUE(read("[network]\ndevices = []\n")->is_off());
}

TEST(NetworkConfig, RefusesWhatMakesNoSense) {
  for (const char* wrong :
       {"devices = [\"myrinet\"]", "devices = [\"udp\", \"ethernet\"]", "devices = [\"ethernet\"]",
        "channels = 0", "channels = 5000", "payload = 1000", "payload = 16000",
        "interface = \"a-name-that-is-too-long\"", "pm_auth = \"none\"", "switch_mode = \"flush\"",
        "channel = 1"}) {
    EXPECT_FALSE(read("[network]\n" + std::string(wrong) + "\n")) << wrong;
  }
}

}  // namespace
}  // namespace score
