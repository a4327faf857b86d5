#include "pario/core/volume_file.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace score::pario {
namespace {

constexpr std::string_view kGood =
    "# a volume\nname scratch-7\nkey 00112233445566778899aabbccddeeff\nstripe 65536\n"
    "server node1:7711\n server [::1]:7712 \n";

std::string fault(const std::string& text) {
  VolumeDescription volume;
  std::string message;
  return parse_volume(text, volume, message) ? "" : message;
}

TEST(VolumeFile, ParsesNameKeyStripeAndServers) {
  VolumeDescription volume;
  std::string message;
  ASSERT_TRUE(parse_volume(kGood, volume, message)) << message;
  EXPECT_EQ(volume.name, "scratch-7");
  EXPECT_EQ(volume.stripe, 65'536U);
  ASSERT_EQ(volume.servers.size(), 2U);
  EXPECT_EQ(volume.servers[1].host, "::1");
  EXPECT_EQ(volume.servers[1].port, "7712");
  EXPECT_EQ(volume.key[1], 0x11);
}

TEST(VolumeFile, ParsesSizeReplicasExpiryAndOwner) {
  VolumeDescription volume;
  std::string message;
  const std::string text = std::string(kGood) +
                           "replicas 2\nsize 1001\nexpires 1790000000\nowner anna\n"
                           "directory /data\nwait 10\n";
  ASSERT_TRUE(parse_volume(text, volume, message)) << message;
  EXPECT_EQ(volume.replicas, 2U);
  EXPECT_EQ(volume.wait_s, 10U);
  EXPECT_NE(fault(std::string(kGood) + "wait 0\n"), "");
  EXPECT_EQ(capacity_of(volume), 501U);
  EXPECT_EQ(volume.expires_s, 1'790'000'000);
  EXPECT_EQ(volume.owner, "anna");
  EXPECT_EQ(volume.directory, "/data");
}

TEST(VolumeFile, ReportsErrorAndLine) {
  EXPECT_EQ(fault(""), "no line 'server'");
  EXPECT_EQ(fault("name a/b"), "line 1: a name has 1 to 64 letters, digits and . _ -");
  EXPECT_EQ(fault("\nkey 12"), "line 2: a key has 32 hexadecimal digits");
  EXPECT_EQ(fault("stripe 5000"),
            "line 1: a stripe has 4096 to 1073741824 bytes and is a power of two");
  for (const char* server :
       {"server a", "server :1", "server a:0", "server a:65536", "server a:x"}) {
    EXPECT_EQ(fault(server), "line 1: expected HOST:PORT");
  }
  EXPECT_EQ(fault("colour 5"),
            "line 1: expected name, key, stripe, server, replicas, size, expires, owner, "
            "directory, transport, layout or wait");
  EXPECT_EQ(fault("transport carrier"), "line 1: transport: pm or tcp");
  EXPECT_EQ(fault("layout round"), "line 1: layout: local or striped");
  EXPECT_EQ(fault("replicas 3"), "line 1: replicas: 1 or 2");
  EXPECT_EQ(fault("size 0"), "line 1: size: bytes, not 0");
  EXPECT_EQ(fault("size 18446744073709551615"), "line 1: size: bytes, not 0");
  EXPECT_EQ(fault("expires -1"), "line 1: expires: seconds since 1970");
  EXPECT_EQ(fault("directory here"), "line 1: a directory begins with /");
  EXPECT_EQ(fault("name a\nkey 00112233445566778899aabbccddeeff\nserver h:1\nreplicas 2"),
            "replicas 2 needs two servers");
  EXPECT_EQ(fault("key +0112233445566778899aabbccddeeff"),
            "line 1: a key has 32 hexadecimal digits");
}

TEST(VolumeFile, RefusesFileReadableByOthers) {
  char path[] = "/tmp/pario_volume_XXXXXX";
  const int fd = ::mkstemp(path);
  ASSERT_GE(fd, 0);
  std::ofstream(path) << kGood;
  VolumeDescription volume;
  std::string message;
  EXPECT_EQ(read_volume(path, volume, message), 0) << message;
  ::fchmod(fd, 0640);
  EXPECT_EQ(read_volume(path, volume, message), EACCES);
  EXPECT_NE(message.find("chmod 600"), message.npos);
  ::close(fd);
  ::unlink(path);
  EXPECT_EQ(read_volume(path, volume, message), ENOENT);
  EXPECT_EQ(read_volume("/dev/null", volume, message), EINVAL);
}

}  // namespace
}  // namespace score::pario
