#include "proto/transport/key.hpp"

#include "base/os/daemon_users.hpp"
#include "base/os/fd.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::proto {
namespace {

std::string hex(const Key& key) {
  std::string text;
  for (std::uint8_t byte : key.bytes()) text += fmt::format("{:02x}", byte);
  return text;
}

// The expected value comes from: openssl kdf -keylen 32 -kdfopt digest:SHA256 -kdfopt
// hexkey:0001..1f -kdfopt info:'scored node node00' HKDF
TEST(Key, IsDerivedAccordingToRfc5869) {
  std::array<std::uint8_t, kKeyBytes> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(hex(derive_node_key(Key(bytes), "node00")),
            "c778423fc4a8bf7b49c5401e2c0ae2bc54721e0a4d6681bdae7a1af4ec3fb5d3");
}

TEST(Key, DiffersForEachNodeAndCluster) {
  const Key cluster = random_key();
  EXPECT_NE(derive_node_key(cluster, "node00"), derive_node_key(cluster, "node01"));
  EXPECT_NE(derive_node_key(cluster, "node00"), derive_node_key(random_key(), "node00"));
  EXPECT_EQ(derive_node_key(cluster, "node00"), derive_node_key(cluster, "node00"));
}

TEST(Key, ProvesOnlyOneIncarnationOfTheHead) {
  const Key cluster = random_key();
  const std::string proof = prove_head(cluster, base::Epoch(7));
  EXPECT_TRUE(is_head_proof(cluster, base::Epoch(7), proof));
  EXPECT_FALSE(is_head_proof(cluster, base::Epoch(8), proof));
  EXPECT_FALSE(is_head_proof(random_key(), base::Epoch(7), proof));
  EXPECT_FALSE(is_head_proof(derive_node_key(cluster, "node00"), base::Epoch(7), proof));
  EXPECT_FALSE(is_head_proof(cluster, base::Epoch(7), ""));
  EXPECT_FALSE(is_head_proof(cluster, base::Epoch(7), proof + "x"));
  for (std::size_t i = 0; i < proof.size(); ++i) {
    std::string other = proof;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_FALSE(is_head_proof(cluster, base::Epoch(7), other)) << i;
  }
}

class KeyFile : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(directory_), nullptr); }

  void TearDown() override {
    ::unlink(path().c_str());
    ::unlink((path() + ".link").c_str());
    ::rmdir(directory_);
  }

  std::string path() const { return std::string(directory_) + "/key"; }

  void write(std::string_view text, mode_t mode = 0600) {
    ::unlink(path().c_str());
    auto file = base::open_file(path(), O_CREAT | O_WRONLY | O_EXCL, 0600);
    ASSERT_TRUE(file.has_value());
    ASSERT_TRUE(base::write_all(file->get(), text).has_value());
    ASSERT_EQ(::chmod(path().c_str(), mode), 0);
  }

  char directory_[32] = "/tmp/score-key-XXXXXX";
};

TEST_F(KeyFile, StoredKeyIsLoaded) {
  const Key key = random_key();
  ASSERT_TRUE(store_key(path(), key).has_value());
  const auto loaded = read_key_file(path());
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message();
  EXPECT_EQ(*parse_key(*loaded), key);

  struct stat info {};

  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_TRUE(store_key(path(), key).error().is(base::Errc::Exists));
}

TEST_F(KeyFile, IsRejectedIfReadableByOthers) {
  for (mode_t mode : {0640U, 0604U, 0620U, 0666U}) {
    write(std::string(64, 'a') + "\n", mode);
    const auto key = read_key_file(path());
    ASSERT_FALSE(key.has_value());
    EXPECT_TRUE(key.error().is(base::Errc::Denied)) << key.error().message();
  }
  write(std::string(64, 'a'), 0400);
  EXPECT_TRUE(read_key_file(path()).has_value());
}

TEST_F(KeyFile, IsRejectedIfOwnedByADifferentUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  write(std::string(64, 'a'));
  ASSERT_EQ(::chown(path().c_str(), 12345, 12345), 0);
  EXPECT_TRUE(read_key_file(path()).error().is(base::Errc::Denied));
}

TEST_F(KeyFile, RootReadsKeyFilesOfDaemons) {
  const auto daemon = base::uid_of(base::kHeadUser);
  if (::geteuid() != 0 || !daemon) GTEST_SKIP() << "needs root and the user scored-head";
  write(std::string(64, 'a'));
  ASSERT_EQ(::chown(path().c_str(), *daemon, static_cast<gid_t>(-1)), 0);
  EXPECT_TRUE(read_key_file(path()).has_value());
}

TEST_F(KeyFile, IsRejectedIfLinkLongOrNoFile) {
  write(std::string(64, 'a'));
  ASSERT_EQ(::symlink(path().c_str(), (path() + ".link").c_str()), 0);
  EXPECT_FALSE(read_key_file(path() + ".link").has_value());
  EXPECT_TRUE(read_key_file(directory_).error().is(base::Errc::Malformed));
  EXPECT_FALSE(read_key_file(path() + ".none").has_value());
  write(std::string(kMostKeyFileBytes + 1, 'a'));
  EXPECT_TRUE(read_key_file(path()).error().is(base::Errc::Malformed));
}

TEST(KeyText, IsRejectedForOtherContent) {
  for (const std::string& text :
       {std::string(), std::string(63, 'a'), std::string(65, 'a'), std::string(64, 'g'),
        std::string(64, 'a') + "\n", " " + std::string(63, 'a'), "0x" + std::string(62, 'a'),
        std::string(1000, 'a')}) {
    const auto key = parse_key(text);
    ASSERT_FALSE(key.has_value()) << text;
    EXPECT_TRUE(key.error().is(base::Errc::Malformed)) << key.error().message();
  }
}

}  // namespace
}  // namespace score::proto
