#include "scored/head/nodes/node_keys.hpp"

#include "base/os/fd.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace score::head {
namespace {

class NodeKeysTest : public testing::Test {
 protected:
  NodeKeysTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "score_keys_XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    keys_.emplace(file());
  }

  ~NodeKeysTest() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string file() const { return directory_ + "/node-keys"; }

  void restart() {
    ASSERT_TRUE(replace_file(file(), keys_->text(), 0600));
    keys_.emplace(file());
    ASSERT_TRUE(keys_->load());
  }

  std::string directory_;
  std::optional<NodeKeys> keys_;
};

TEST_F(NodeKeysTest, AcceptsOnlyTheFirstKeyBeforeARotation) {
  restart();
  EXPECT_TRUE(keys_->accepts({"node00", 0}));
  EXPECT_FALSE(keys_->accepts({"node00", 1000}));
  EXPECT_EQ(keys_->wanted("node00"), 0U);
}

TEST_F(NodeKeysTest, AcceptsBothKeysUntilNewOneIsUsed) {
  keys_->rotate({"node00"}, 1000);
  for (int restarts = 0; restarts < 2; ++restarts) {
    EXPECT_TRUE(keys_->accepts({"node00", 0}));
    EXPECT_TRUE(keys_->accepts({"node00", 1000}));
    EXPECT_EQ(keys_->wanted("node00"), 1000U);
    EXPECT_FALSE(keys_->used({"node00", 0}));
    restart();
  }
  EXPECT_TRUE(keys_->used({"node00", 1000}));
  for (int restarts = 0; restarts < 2; ++restarts) {
    EXPECT_FALSE(keys_->accepts({"node00", 0}));
    EXPECT_TRUE(keys_->accepts({"node00", 1000}));
    EXPECT_FALSE(keys_->used({"node00", 1000})) << "it is the old one now";
    restart();
  }
}

TEST_F(NodeKeysTest, InterruptedRotationContinues) {
  const std::vector<std::string> all = {"node00", "node01", "node02"};
  EXPECT_EQ(keys_->rotate(all, 1000), all);
  ASSERT_TRUE(keys_->used({"node01", 1000}));
  restart();
  EXPECT_EQ(keys_->rotate(all, 2000), (std::vector<std::string>{"node00", "node02"}));
  EXPECT_EQ(keys_->wanted("node00"), 1000U) << "a key that was fetched is not overtaken";
  ASSERT_TRUE(keys_->used({"node00", 1000}));
  ASSERT_TRUE(keys_->used({"node02", 1000}));
  EXPECT_EQ(keys_->rotate(all, 2000), all) << "a new one";
  EXPECT_EQ(keys_->wanted("node01"), 2000U);
}

TEST_F(NodeKeysTest, RevokedKeyIsRefusedForever) {
  keys_->rotate({"node00"}, 1000);
  keys_->revoke({"node00"}, 1000);
  for (int restarts = 0; restarts < 2; ++restarts) {
    EXPECT_FALSE(keys_->accepts({"node00", 0}));
    EXPECT_FALSE(keys_->accepts({"node00", 1000})) << "it may have been fetched by a stranger";
    EXPECT_TRUE(keys_->accepts({"node00", 1001}));
    EXPECT_TRUE(keys_->accepts({"node01", 0}));
    restart();
  }
  ASSERT_TRUE(keys_->used({"node00", 1001}));
  EXPECT_FALSE(keys_->state("node00").next);
}

TEST_F(NodeKeysTest, GenerationsAscendIfTheClockIsSetBack) {
  keys_->rotate({"node00"}, 1000);
  ASSERT_TRUE(keys_->used({"node00", 1000}));
  restart();
  keys_->rotate({"node00"}, 5);
  EXPECT_EQ(keys_->wanted("node00"), 1001U);
}

TEST_F(NodeKeysTest, RefusesADamagedFile) {
  for (const char* wrong :
       {"node00", "node00 1", "node00 1 x", "node00 - -", "no/de 1 2", "node00 1 2 3"}) {
    ASSERT_TRUE(replace_file(file(), wrong, 0600));
    keys_.emplace(file());
    EXPECT_TRUE(keys_->load().error().is(Errc::Malformed)) << wrong;
  }
}

}  // namespace
}  // namespace score::head
