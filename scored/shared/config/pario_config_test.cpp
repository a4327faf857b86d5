#include "scored/shared/config/pario_config.hpp"

#include <gtest/gtest.h>

namespace score {
namespace {

Result<ParioConfig> read(const std::string& lines) {
  auto file = ConfigFile::parse("[pario]\n" + lines + "\n", "f");
  if (!file) return file.error();
  ConfigSection root = file->root();
  ParioConfig config = read_pario_config(root);
  if (auto sound = file->finish(); !sound) return sound.error();
  return config;
}

std::string fault_of(const std::string& lines) {
  const auto config = read(lines);
  return config ? "accepted" : config.error().context();
}

TEST(ParioConfig, OffersNothingByDefault) {
  EXPECT_EQ(read("")->path, "");
}

TEST(ParioConfig, ReadsADirectoryAndItsCapacity) {
  const auto config = read("path = \"/scratch\"\ncapacity = \"2T\"");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->path, "/scratch");
  EXPECT_EQ(config->capacity, parse_bytes("2T").value());
}

TEST(ParioConfig, ReportsEachError) {
  EXPECT_EQ(fault_of("path = \"here\"\ncapacity = \"1G\""), "f:2: path: must be an absolute path");
  EXPECT_EQ(fault_of("path = \"/scratch\""), "f:2: path: needs capacity, such as \"500G\"");
  EXPECT_EQ(fault_of("capacity = \"1G\""), "f:2: capacity: needs path");
  EXPECT_EQ(fault_of("path = \"/scratch\"\ncapacity = \"0\""),
            "f:3: capacity: must be a size, such as \"16G\"");
  EXPECT_EQ(fault_of("size = \"1G\""), "f:2: unknown key 'pario.size'");
}

}  // namespace
}  // namespace score
