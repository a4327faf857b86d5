// These tests run the real node daemon and launcher with programs in place of the shepherd, and
// play the head.
#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "tests/support/node/test_head.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace score::node {
namespace {

using test::TestHead;

// Writes a program that sends `words` (an expression of Python) in place of the shepherd and then
// waits.
void write_shepherd(const std::filesystem::path& path, const std::string& words) {
  const std::string text =
      "#!/usr/bin/python3\n"
      "import os, socket, struct, sys, time\n"
      "def frame(kind, body, length=None):\n"
      "    size = len(body) if length is None else length\n"
      "    return struct.pack('<IHHII', 0x44524353, 1, kind, size, 0) + body\n"
      "if sys.argv[1] == 'spawner': time.sleep(1000)\n"
      "door = socket.socket(fileno=3)\n"
      "peer, _ = door.accept()\n"
      "peer.sendall(" +
      words +
      ")\n"
      "time.sleep(1000)\n";
  ASSERT_TRUE(replace_file(path, text, 0755));
}

// Prepares attempt 256 with a shepherd that sends these words.
void prepare_with(TestHead& head, const std::string& words) {
  write_shepherd(head.dir / "shepherd.py", words);
  head.start_launcher(head.dir / "shepherd.py");
  head.start_node();
  ASSERT_TRUE(head.wait_for_node());
  head.prepare(256, "true");
}

class HostileShepherd : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(, HostileShepherd,
                         ::testing::Values("os.urandom(4096)", "b'\\0' * 4096", "frame(200, b'')",
                                           "frame(122, b'')", "frame(9999, b'')",
                                           "frame(108, b'', 0x7fffffff)",
                                           "frame(201, b'\\xff' * 60)",
                                           // These frames are output of a different attempt and an
                                           // invalid end of a task.
                                           "frame(108, b'\\x08\\x80\\x04\\x22\\x01x')",
                                           "frame(204, b'\\xff\\xff')"));

TEST_P(HostileShepherd, EndsItsOwnAttemptAlone) {
  TestHead head(true);
  ASSERT_NO_FATAL_FAILURE(prepare_with(head, GetParam()));
  head.kill(256);  // ends an attempt whose invalid frames were accepted, as any job could send them
  EXPECT_TRUE(head.wait([&] {
    for (const auto& frame : head.frames) {
      const bool is_end =
          frame.type == proto::FrameType::Exited || frame.type == proto::FrameType::Refused;
      if (is_end) return true;
    }
    return false;
  }));
  EXPECT_TRUE(head.wait([&] { return std::filesystem::is_empty(head.dir / "shepherds"); }));
  EXPECT_TRUE(head.outputs.empty());
  EXPECT_EQ(head.hellos.size(), 1U);
  EXPECT_EQ(head.stop_node(), 0);
}

// Only 5,000 frames per second and attempt may reach the head; the other frames wait.
TEST(FloodingShepherd, IsSlowedDown) {
  TestHead head(true);
  ASSERT_NO_FATAL_FAILURE(
      prepare_with(head, "frame(201, b'') + frame(110, b'\\x08\\x80\\x02\\x10\\x01') * 20000"));
  const auto fences = [&] {
    return std::ranges::count_if(
        head.frames, [](const auto& frame) { return frame.type == proto::FrameType::FenceEnter; });
  };
  ASSERT_TRUE(head.wait([&] { return fences() > 0; }));
  const TimePoint began = monotonic_now();
  ASSERT_TRUE(head.wait([&] { return fences() >= 5'000; }));
  EXPECT_GE(monotonic_now() - began, 700ms);
  head.kill(256);
  EXPECT_EQ(head.stop_node(), 0);
}

// Large messages of jobs wait in their shepherds until the head has room for them.
TEST(FloodingShepherd, LargeMessagesWaitForRoom) {
  TestHead head(true);
  head.bounds_exchange = true;
  ASSERT_NO_FATAL_FAILURE(
      prepare_with(head,
                   "frame(201, b'') + frame(218, b'\\x08\\x80\\x02\\x7a\\x80\\x80\\x08' + b'x' * "
                   "131072) * 3"));
  const auto count = [&](bool questions) {
    return std::ranges::count_if(head.frames, [questions](const auto& frame) {
      const auto relay = proto::parse<wire::JobRelay>(frame);
      return relay && (relay->ask_bytes() > 0) == questions;
    });
  };
  ASSERT_TRUE(head.wait([&] { return count(true) >= 3; })) << "it asks until it is answered";
  EXPECT_EQ(count(false), 0);
  wire::JobRelay answer;
  answer.set_attempt(256);
  answer.set_may_send(true);
  head.send(answer);
  ASSERT_TRUE(head.wait([&] { return count(false) == 1; }));
  const auto asked = count(true);
  ASSERT_TRUE(head.wait([&] { return count(true) > asked; }));
  EXPECT_EQ(count(false), 1) << "each message needs an answer";
  head.kill(256);
  EXPECT_EQ(head.stop_node(), 0);
}

TEST(FloodingShepherd, FenceBeyondPieceEndsItsAttempt) {
  TestHead head(true);
  head.bounds_exchange = true;
  ASSERT_NO_FATAL_FAILURE(
      prepare_with(head,
                   "frame(201, b'') + frame(110, b'\\x08\\x80\\x02\\x1a\\x80\\x80\\x08' + b'x' * "
                   "131072)"));
  EXPECT_TRUE(head.wait([&] {
    return std::ranges::any_of(head.frames, [](const auto& frame) {
      return frame.type == proto::FrameType::Exited || frame.type == proto::FrameType::Refused;
    });
  }));
  EXPECT_EQ(head.hellos.size(), 1U);
  EXPECT_EQ(head.stop_node(), 0);
}

// A lie about the user could give the attempt the channel sockets of that user.
TEST(LyingShepherd, ClaimOfOtherUserIsRefusedAfterRestart) {
  TestHead head(true);
  if (!head.has_cgroups()) GTEST_SKIP() << "no cgroup2 that may be written";
  const std::string says_it_is_nobodys =
      "b'')\n"
      "first, _ = door.accept()\n"
      "first.sendall(frame(208, b'\\x08\\x80\\x02\\x10\\x01\\x18\\xfe\\xff\\x03\\x2a\\x01\\x01')";
  ASSERT_NO_FATAL_FAILURE(prepare_with(head, "frame(201, b'') + " + says_it_is_nobodys));
  ASSERT_NE(head.expect<wire::Prepared>(256), nullptr)
      << read_file(head.dir / "node.log", 1U << 20U).value_or("");
  head.kill_node();
  head.start_node();
  ASSERT_TRUE(head.wait_for_node(2));
  EXPECT_EQ(head.hellos.back().attempts_size(), 0);
  const auto log = read_file(head.dir / "node.log", 1U << 20U).value_or("");
  EXPECT_NE(log.find("the shepherd claims user 65534"), std::string::npos) << log;
  EXPECT_TRUE(head.wait([&] { return std::filesystem::is_empty(head.dir / "shepherds"); }));
  EXPECT_EQ(head.stop_node(), 0);
}

}  // namespace
}  // namespace score::node
