#include "scored/shared/config/device_config.hpp"

#include <gtest/gtest.h>

namespace score {
namespace {

Result<DeviceAccess> read(const std::string& text) {
  auto file = ConfigFile::parse(text, "f");
  if (!file) return file.error();
  ConfigSection root = file->root();
  DeviceAccess config = read_device_config(root);
  if (auto sound = file->finish(); !sound) return sound.error();
  return config;
}

TEST(DeviceAccess, AllowsAllByDefault) {
  EXPECT_FALSE(read("")->restricts());
  EXPECT_FALSE(read("[devices]\ndeny = []\n")->restricts());
}

TEST(DeviceAccess, EmptyAllowListAllowsNothing) {
  const auto config = read("[devices]\nallow = []\n");
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->restricts());
  EXPECT_NE(config->text(), read("")->text());
}

TEST(DeviceAccess, ReadsBothLists) {
  const auto config =
      read("[devices]\nallow = [\"/dev/nvidia*\", \"char-infiniband\"]\ndeny = [\"/dev/kvm\"]\n");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->text(), "allow /dev/nvidia* char-infiniband;deny /dev/kvm");
}

TEST(DeviceAccess, RefusesEntriesThatAreNotDevices) {
  for (const auto* entry : {"kvm", "/etc/passwd", "/dev/../etc", "/dev/a b", "/dev/a;b", ""}) {
    const auto config = read(fmt::format("[devices]\ndeny = [\"{}\"]\n", entry));
    ASSERT_FALSE(config) << entry;
    EXPECT_NE(config.error().message().find("f:2: deny"), std::string::npos)
        << config.error().message();
  }
  EXPECT_FALSE(read("[devices]\ndeny = \"/dev/kvm\"\n"));
  EXPECT_FALSE(read("[devices]\ndenied = []\n"));
}

}  // namespace
}  // namespace score
