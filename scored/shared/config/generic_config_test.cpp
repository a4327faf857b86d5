#include "scored/shared/config/generic_config.hpp"

#include <gtest/gtest.h>

namespace score {
namespace {

std::string read(std::string_view text, std::vector<GenericConfig>* out = nullptr) {
  auto file = ConfigFile::parse(text, "f");
  if (!file) return file.error().context();
  ConfigSection root = file->root();
  const auto kinds = read_generic_config(root);
  if (out != nullptr) *out = kinds;
  const auto sound = file->finish();
  return sound ? "" : sound.error().context();
}

TEST(GenericConfig, ReadsKindsWithUnits) {
  std::vector<GenericConfig> kinds;
  EXPECT_EQ(read("[gres.nic]\ncount = 3\n"
                 "[gres.gpu]\nfiles = [\"/dev/a\", \"/dev/b\"]\nshared = true\nmemory = \"40G\"\n",
                 &kinds),
            "");
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].resource, (GenericResource{"gpu", 2, Bytes(40ULL << 30U), true}));
  EXPECT_EQ(kinds[0].files, (std::vector<std::string>{"/dev/a", "/dev/b"}));
  EXPECT_EQ(kinds[1].resource, (GenericResource{"nic", 3}));
  EXPECT_EQ(read("gres = { gpu = { count = 2 } }", &kinds), "");
  EXPECT_EQ(kinds, (std::vector<GenericConfig>{{{"gpu", 2}, {}}}));
}

TEST(GenericConfig, ReportsTheLineOfEachError) {
  const std::pair<const char*, const char*> cases[] = {
      {"[gres.gpu]\n", "f:1: count: missing"},
      {"[gres.gpu]\ncount = 0\n", "f:2: count: "},
      {"[gres.gpu]\ncount = 1000000000\n", "f:2: count: "},
      {"[gres.gpu]\ncount = \"two\"\n", "f:2: count: "},
      {"[gres.gpu]\ncount = 3\nfiles = [\"/dev/a\"]\n",
       "f:3: files: 1 files for 3 units: one per unit"},
      {"[gres.gpu]\nfiles = [\"null\"]\n", "f:2: files: 'null' is not an absolute path"},
      {"[gres.gpu]\ncount = 1\nmemory = \"much\"\n", "f:3: memory: "},
      {"[gres.gpu]\ncount = 1\ncolour = 1\n", "f:3: unknown key 'gres.gpu.colour'"},
      {"[gres.\"g pu\"]\ncount = 1\n", "f:2: count: the name of the resource"},
  };
  for (const auto& [text, start] : cases) {
    const std::string fault = read(text);
    EXPECT_TRUE(fault.starts_with(start)) << text << fault;
  }
}

}  // namespace
}  // namespace score
