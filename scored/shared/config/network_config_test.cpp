#include "scored/shared/config/network_config.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>

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

TEST(NetworkConfig, DefaultIsSharedMemoryAndUdp) {
  const auto config = read("");
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->shmem);
  ASSERT_EQ(config->links.size(), 1U);
  EXPECT_EQ(config->links[0].device, NetworkDevice::Udp);
  EXPECT_EQ(config->channels, 16U);
  EXPECT_EQ(config->payload, 1424U);
  EXPECT_FALSE(config->is_off());
}

TEST(NetworkConfig, ReadsEveryKey) {
  const auto config = read(
      "[network]\ndevices = [\"ethernet\"]\nchannels = 1\ninterface = \"eth1\"\n"
      "pm_auth = \"tag\"\npayload = 8952\n");
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->shmem);
  ASSERT_EQ(config->links.size(), 1U);
  EXPECT_EQ(config->links[0].device, NetworkDevice::Ethernet);
  EXPECT_EQ(config->links[0].interface, "eth1");
  EXPECT_TRUE(config->tags);
  EXPECT_EQ(config->payload, 8952U);
}

TEST(NetworkConfig, SwitchesByTheClockByDefault) {
  EXPECT_EQ(read("")->switch_mode, SwitchMode::Clock);
  EXPECT_EQ(read("[network]\nswitch_mode = \"barrier\"\n")->switch_mode, SwitchMode::Barrier);
}

TEST(NetworkConfig, IsOffWithoutDevices) {
  EXPECT_TRUE(read("[network]\ndevices = []\n")->is_off());
}

TEST(NetworkConfig, ReadsLibfabricAndAdditionalLinks) {
  const auto config = read(
      "[network]\ndevices = [\"shmem\", \"ofi\"]\nprovider = \"verbs;ofi_rxm\"\n"
      "links = [\"udp\", \"ethernet:eth1\", \"ofi:tcp:eth2\"]\nweights = \"1 2 3 255\"\n");
  ASSERT_TRUE(config);
  ASSERT_EQ(config->links.size(), 4U);
  EXPECT_EQ(config->links[0].device, NetworkDevice::Ofi);
  EXPECT_EQ(config->links[0].provider, "verbs;ofi_rxm");
  EXPECT_EQ(config->links[2].interface, "eth1");
  EXPECT_EQ(config->links[3].provider, "tcp");
  EXPECT_EQ(config->links[3].interface, "eth2");
  EXPECT_EQ(config->links[3].weight, 255U);
}

TEST(NetworkConfig, UnknownProviderIsReportedWithFileAndKey) {
  auto file = ConfigFile::parse("[network]\ndevices = [\"ofi\"]\nprovider = \"gni\"\n", "test");
  ConfigSection root = file->root();
  std::ignore = read_network_config(root);
  EXPECT_EQ(file->finish().error().context(),
            "test:3: provider: use one of tcp, verbs;ofi_rxm, efa, cxi, shm");
}

TEST(NetworkConfig, RemovedEthernetModeIsRefused) {
  EXPECT_TRUE(read("[network]\nmode = \"ring\"\n"));
  auto file = ConfigFile::parse("[network]\nmode = \"xdp\"\n", "test");
  ConfigSection root = file->root();
  std::ignore = read_network_config(root);
  EXPECT_EQ(file->finish().error().context(),
            "test:2: mode: use \"ring\", the packet ring, or leave it out; AF_XDP was removed");
}

TEST(NetworkConfig, RefusesInvalidValues) {
  for (const char* wrong : {"devices = [\"myrinet\"]",
                            "devices = [\"udp\", \"ethernet\"]",
                            "devices = [\"ethernet\"]",
                            "channels = 0",
                            "channels = 5000",
                            "payload = 1000",
                            "payload = 16000",
                            "interface = \"a-name-that-is-too-long\"",
                            "pm_auth = \"none\"",
                            "switch_mode = \"flush\"",
                            "channel = 1",
                            "devices = [\"ofi\"]",
                            "devices = [\"ofi\"]\nprovider = \"sockets\"",
                            "links = [\"ofi\"]",
                            "links = [\"ofi:gni\"]",
                            "links = [\"ethernet\"]",
                            "links = [\"udp:a:b\"]",
                            "links = [\"\"]",
                            "links = [\"udp\", \"udp\", \"udp\", \"udp\"]",
                            "devices = [\"ethernet\"]\ninterface = \"a\"\nlinks = [\"ethernet:b\"]",
                            "devices = []\nlinks = [\"udp\"]",
                            "weights = \"1 2\"",
                            "weights = \"0\"",
                            "weights = \"256\"",
                            "weights = \"\"",
                            "weights = \"x\""}) {
    EXPECT_FALSE(read("[network]\n" + std::string(wrong) + "\n")) << wrong;
  }
}

}  // namespace
}  // namespace score
