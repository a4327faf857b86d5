#include "scored/head/etcd/lease_config.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

const std::string kEtcd = "[heads]\nlease = \"etcd\"\netcd_ca = \"/ca.pem\"\n";
const std::string kMembers = "etcd = [\"https://e0:2379\", \"https://[::1]:2379\"]\n";

Result<LeaseConfig> lease_of(const std::string& text) {
  auto file = ConfigFile::parse(text, "x.toml");
  if (!file) return file.error();
  ConfigSection root = file->root();
  LeaseConfig config = read_lease_config(root);
  if (auto sound = file->finish(); !sound) return sound.error();
  return config;
}

TEST(LeaseConfig, NodesAreTheWitnessesByDefault) {
  EXPECT_FALSE(lease_of("")->is_in_etcd());
  EXPECT_FALSE(lease_of("[heads]\nlease = \"witnesses\"")->is_in_etcd());
}

TEST(LeaseConfig, ReadsTheMembersOfEtcd) {
  const auto lease = lease_of(kEtcd + kMembers + "etcd_prefix = \"/hpc/scored\"");
  ASSERT_TRUE(lease) << lease.error().message();
  ASSERT_EQ(lease->etcd.size(), 2U);
  EXPECT_EQ(lease->etcd[0].host, "e0");
  EXPECT_EQ(lease->etcd[1].host, "::1");
  EXPECT_EQ(lease->prefix, "/hpc/scored");
  EXPECT_EQ(lease->ca_file, "/ca.pem");
}

TEST(LeaseConfig, RefusesWhatCannotWork) {
  for (const std::string& text :
       {kEtcd, kEtcd + "etcd = [\"http://e0:2379\"]", kEtcd + "etcd = [\"e0\"]",
        kEtcd + kMembers + "etcd_certificate = \"/c.pem\"",
        kEtcd + kMembers + "etcd_prefix = \"scored\"", "[heads]\nlease = \"etcd\"\n" + kMembers,
        "[heads]\n" + kMembers, std::string("[heads]\nlease = \"raft\"")}) {
    const auto lease = lease_of(text);
    ASSERT_FALSE(lease) << text;
    EXPECT_EQ(lease.error().message().find('\n'), std::string::npos) << lease.error().message();
  }
}

}  // namespace
}  // namespace score::head
