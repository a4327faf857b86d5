#include "scored/shared/facts/host_facts.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace score::facts {
namespace {

TEST(HostFacts, ContainModeAndOwner) {
  const auto path = std::filesystem::temp_directory_path() / ("facts_" + std::to_string(getpid()));
  std::ofstream(path) << "x";
  std::filesystem::permissions(path, std::filesystem::perms(0640));
  auto facts = of_this_host();
  add_file(facts, wire::FileFact::KEY, path);
  std::filesystem::remove(path);
  add_file(facts, wire::FileFact::KEY, path);
  ASSERT_EQ(facts.files_size(), 2);
  EXPECT_EQ(facts.files(0).mode() & 07777U, 0640U);
  EXPECT_TRUE(S_ISREG(facts.files(0).mode()));
  EXPECT_EQ(facts.files(0).owner(), geteuid());
  EXPECT_EQ(facts.files(0).problem(), "");
  EXPECT_EQ(facts.files(1).problem(), "No such file or directory");
}

}  // namespace
}  // namespace score::facts
