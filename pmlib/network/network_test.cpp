#include "pmlib/network/network.hpp"

#include "pmlib/endpoint/endpoint.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

namespace score::pm {
namespace {

constexpr const char* kGood =
    "# a job\n"
    "key 00ff00ff00ff00ff\n"
    "generation 3\n"
    "channel 2   # comment\n"
    "device udp\n"
    "\n"
    "rank 0 a 10.0.0.1:4000\n"
    "rank 1 b 10.0.0.2:4000\n"
    "rank 2 a 10.0.0.1:4001\n";

std::string error_of(const std::string& text) {
  JobNetwork network;
  std::string error;
  EXPECT_FALSE(parse_network(text, network, error)) << text;
  return error;
}

TEST(Network, AddressFileIsRead) {
  JobNetwork network;
  std::string error;
  ASSERT_TRUE(parse_network(kGood, network, error)) << error;
  EXPECT_EQ(network.key, 0x00ff00ff00ff00ffu);
  EXPECT_EQ(network.generation, 3u);
  EXPECT_EQ(network.channel, 2u);
  EXPECT_EQ(network.device.kind, DeviceKind::Udp);
  ASSERT_EQ(network.ranks.size(), 3u);
  EXPECT_EQ(network.ranks[2].host, "a");
}

TEST(Network, ErrorNamesInvalidLine) {
  EXPECT_NE(error_of("key 1\nfoo bar\n").find("line 2"), std::string::npos);
  EXPECT_NE(error_of("key xyz\n").find("line 1"), std::string::npos);
  EXPECT_NE(error_of("key 1\ndevice carrier-pigeon\n").find("line 2"), std::string::npos);
  EXPECT_NE(error_of("key 1\nrank 0 a\n").find("line 2"), std::string::npos);
  EXPECT_NE(error_of("key 1\nrank 0 a -\nrank 0 a -\n").find("line 3"), std::string::npos);
  EXPECT_NE(error_of("key 1\nrank 1 a -\n").find("rank 0"), std::string::npos);
  EXPECT_NE(error_of("key 1\ndevice udp\nrank 0 a 1.2.3:4\n").find("rank 0"), std::string::npos);
  EXPECT_NE(error_of("key 1\nrank 99999999 a -\n").find("line 2"), std::string::npos);
  EXPECT_NE(error_of("key 1\npayload 9\nrank 0 a -\n"), "");
  EXPECT_NE(error_of(""), "");
}

TEST(Network, AuthAndPeerTimeoutReachTheContext) {
  JobNetwork network;
  std::string error;
  ASSERT_TRUE(parse_network(std::string(kGood) + "auth tag\npeer_timeout 77\n", network, error))
      << error;
  int failed = 0;
  const auto context = create_context(network, 1, false, "", failed);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->segment().header().auth, FrameAuth::Tag);
  EXPECT_EQ(context->segment().header().peer_timeout_s, 77);
  ASSERT_TRUE(parse_network(kGood, network, error));
  EXPECT_EQ(network.auth, FrameAuth::Key);
  EXPECT_EQ(network.peer_timeout_s, kDefaultPeerTimeout);
  EXPECT_NE(error_of("key 1\nauth none\n").find("line 2"), std::string::npos);
  EXPECT_NE(error_of("key 1\npeer_timeout 1h\n").find("line 2"), std::string::npos);
  EXPECT_NE(error_of("key 1\npeer_timeout 241\nrank 0 a -\n"), "");
}

TEST(Network, RemovedEthernetModeIsRefused) {
  EXPECT_EQ(error_of("key 1\nmode xdp\n"),
            "line 2: mode: use ring, the packet ring, or leave it out; AF_XDP was removed");
  JobNetwork network;
  std::string error;
  EXPECT_TRUE(parse_network(std::string(kGood) + "mode ring\n", network, error)) << error;
}

TEST(Network, RandomTextNeverCrashes) {
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i) {
    std::string text = kGood;
    for (int k = 0; k < 5; ++k) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    JobNetwork network;
    std::string error;
    parse_network(text, network, error);
  }
}

TEST(Network, RoutesFollowHosts) {
  JobNetwork network;
  std::string error;
  ASSERT_TRUE(parse_network(kGood, network, error));
  int failed = 0;
  const auto near = create_context(network, 0, true, "", failed);
  ASSERT_TRUE(near);
  EXPECT_EQ(near->segment().peer(0).route, Route::Self);
  EXPECT_EQ(near->segment().peer(1).route, Route::Packet);
  EXPECT_EQ(near->segment().peer(2).route, Route::Shmem);
  const auto far = create_context(network, 0, false, "", failed);
  EXPECT_EQ(far->segment().peer(2).route, Route::Packet);
  EXPECT_FALSE(create_context(network, 3, false, "", failed));
  EXPECT_EQ(failed, EINVAL);
}

TEST(Network, RanksFindEachOtherThroughFile) {
  const auto directory =
      std::filesystem::temp_directory_path() / ("pm-network-test-" + std::to_string(getpid()));
  std::filesystem::create_directory(directory);
  const std::string file = directory / "addresses";
  std::ofstream(file) << "key 5\ndevice none\nshmem " << (directory / "job").string()
                      << "\nrank 0 x -\nrank 1 x -\n";
  int error = 0;
  std::string message;
  {
    auto zero = Endpoint::open_file(file, 0, error, message);
    ASSERT_TRUE(zero) << message;
    std::byte* buffer = nullptr;
    EXPECT_EQ(zero->get_send_buffer(1, 1, &buffer), ENOBUFS);  // its peer has not started yet
    auto one = Endpoint::open_file(file, 1, error, message);
    ASSERT_TRUE(one) << message;
    ASSERT_EQ(zero->get_send_buffer(1, 1, &buffer), 0);
    buffer[0] = std::byte{77};
    ASSERT_EQ(zero->send(), 0);
    ReceivedMessage received;
    ASSERT_EQ(one->receive(received), 0);
    EXPECT_EQ(received.bytes[0], std::byte{77});
    one->release(received);
    EXPECT_FALSE(Endpoint::open_file(file, 2, error, message));
  }
  EXPECT_FALSE(std::filesystem::exists(directory / "job.0"));
  EXPECT_FALSE(Endpoint::open_file(directory / "absent", 0, error, message));
  EXPECT_EQ(error, ENOENT);
  std::filesystem::remove_all(directory);
}

TEST(Network, InheritedContextIsFoundThroughEnvironment) {
  JobNetwork network;
  network.key = 9;
  network.ranks = {{"x", "-"}, {"x", "-"}};
  int error = 0;
  const auto zero = create_context(network, 0, true, "", error);
  const auto one = create_context(network, 1, true, "", error);
  const int first = 200;
  ASSERT_EQ(dup2(zero->fd(), first), first);
  ASSERT_EQ(dup2(one->fd(), first + 1), first + 1);
  unsetenv("PM_CONTEXT_FD");
  EXPECT_FALSE(Endpoint::open_inherited(error));
  EXPECT_EQ(error, ENOENT);
  setenv("PM_LOCAL_FDS", "200", 1);
  setenv("PM_CONTEXT_FD", "201", 1);
  auto b = Endpoint::open_inherited(error);
  setenv("PM_CONTEXT_FD", "200", 1);
  auto a = Endpoint::open_inherited(error);
  ASSERT_TRUE(a && b);
  std::byte* buffer = nullptr;
  ASSERT_EQ(a->get_send_buffer(1, 1, &buffer), 0);
  ASSERT_EQ(a->send(), 0);
  ReceivedMessage received;
  EXPECT_EQ(b->receive(received), 0);
  b->release(received);
  for (const char* name : {"PM_LOCAL_FDS", "PM_CONTEXT_FD"}) unsetenv(name);
  close(first);
  close(first + 1);
}

// Makes the context of rank 0 of two ranks on different nodes, over UDP.
std::unique_ptr<MappedSegment> context_of(std::uint64_t key, const std::string& other,
                                          std::uint32_t payload = 1424) {
  JobNetwork network;
  network.key = key;
  network.generation = static_cast<std::uint32_t>(key);
  network.payload_bytes = payload;
  network.device.kind = DeviceKind::Udp;
  network.ranks = {{"x", "10.0.0.1:1"}, {"y", other}};
  int error = 0;
  return create_context(network, 0, true, "", error);
}

TEST(MoveContext, RestoredContextGetsIdentityAndAddresses) {
  const auto restored = context_of(1, "10.0.0.2:2");
  const auto target = context_of(2, "10.0.0.3:3");
  restored->segment().peer(1).send.max_sent = 77;
  ASSERT_EQ(move_context(restored->segment(), target->segment()), 0);
  EXPECT_EQ(restored->segment().header().key, 2U);
  EXPECT_EQ(restored->segment().header().generation, 2U);
  EXPECT_EQ(restored->segment().header().resumes.load(), 1U);
  EXPECT_EQ(restored->segment().peer(1).address, target->segment().peer(1).address);
  EXPECT_EQ(restored->segment().peer(1).send.max_sent, 77U);
}

TEST(MoveContext, OtherNetworkIsRefusedAndChangesNothing) {
  const auto restored = context_of(1, "10.0.0.2:2");
  const auto small = context_of(2, "10.0.0.3:3", 1000);
  EXPECT_EQ(move_context(restored->segment(), small->segment()), EMSGSIZE);
  JobNetwork near;
  near.key = 3;
  near.ranks = {{"x", "-"}, {"x", "-"}};
  int error = 0;
  const auto other = create_context(near, 0, true, "", error);
  EXPECT_EQ(move_context(restored->segment(), other->segment()), EINVAL);
  const auto untouched = context_of(1, "10.0.0.2:2");
  EXPECT_EQ(restored->segment().header().key, 1U);
  EXPECT_EQ(restored->segment().peer(1).address, untouched->segment().peer(1).address);
}

}  // namespace
}  // namespace score::pm
