// These tests cover the input and output of tasks through a shepherd.
#include "tests/support/job/test_node.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <sys/stat.h>

namespace score::shepherd::test {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kMostMemory = 1U << 30U;  // it keeps freed memory
#else
constexpr std::size_t kMostMemory = 16U << 20U;
#endif

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Shepherd, FloodWaitsForSlowReaderWithoutLoss) {
  constexpr std::uint64_t kBytes = 100'000'000;
  TestNode node;
  node.takes_output = false;
  node.keeps_output = false;
  node.prepare(shell("head -c " + std::to_string(kBytes) + " /dev/zero"));
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  ASSERT_TRUE(node.wait([&] { return node.output_bytes >= 256 * 1024; }));
  EXPECT_FALSE(
      node.wait([&] { return node.output_bytes > 256 * 1024; }, std::chrono::milliseconds(100)));
  EXPECT_LT(node.shepherd_rss_bytes(), kMostMemory);
  node.takes_output = true;
  node.take(node.output_bytes);
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }, std::chrono::seconds(50)));
  EXPECT_EQ(node.output_bytes, kBytes);
  EXPECT_LT(node.shepherd_rss_bytes(), kMostMemory);
}

TEST(Shepherd, InputReachesEveryTask) {
  auto spec = spec_of({"cat"});
  spec.set_stdin_rank(-1);
  TestNode node;
  node.prepare(spec, {.index = 0, .tasks_on_node = {4}});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  std::string sent;
  for (int i = 0; i < 16; ++i) {
    const std::string part(65536, static_cast<char>('a' + i));
    node.input(part, i == 15);
    sent += part;
    // The window is respected: at most 256 KiB are in flight.
    ASSERT_TRUE(node.wait([&] { return node.input_taken + 3 * 65536 >= sent.size(); }));
  }
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  for (std::uint32_t rank = 0; rank < 4; ++rank) EXPECT_TRUE(node.out[rank] == sent) << rank;
  EXPECT_EQ(node.input_taken, sent.size());
}

// Each rank has its own FIFO; a FIFO without a writer blocks neither the shepherd nor other ranks.
TEST(Shepherd, FifoWithoutWriterBlocksOnlyItsTask) {
  const TemporaryDirectory directory;
  TestNode node;
  const std::string pattern = directory.path() + "/input.";
  ASSERT_EQ(mkfifo((pattern + "0").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((pattern + "1").c_str(), 0600), 0);
  auto spec = spec_of({"cat"});
  spec.set_stdin_path(pattern + "%t");
  node.prepare(spec, {.index = 0, .tasks_on_node = {2}});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  ASSERT_TRUE(node.wait([&] { return node.started.has_value(); }));
  std::ofstream(pattern + "1") << "one";  // returns when rank 1 has opened it
  ASSERT_TRUE(node.wait([&] { return node.ended.size() == 1; }));
  EXPECT_EQ(node.ended[0].rank(), 1U);
  std::ofstream(pattern + "0") << "zero";
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_EQ(node.out[0], "zero");
  EXPECT_EQ(node.out[1], "one");
  EXPECT_EQ(node.exit_of(0)->code(), 0);
}

TEST(Shepherd, OnlyTheChosenRankReadsInput) {
  auto spec = spec_of({"cat"});
  spec.set_stdin_rank(1);
  TestNode node;
  node.prepare(spec, {.index = 0, .tasks_on_node = {3}});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.input("early ", false);
  node.start();
  ASSERT_TRUE(node.wait([&] { return node.ended.size() == 2; }));  // the others read /dev/null
  node.input("late", true);
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_EQ(node.out[1], "early late");
  EXPECT_EQ(node.out[0] + node.out[2], "");
}

TEST(Shepherd, InputOfNonReadingTaskIsDropped) {
  auto spec = shell("exec <&-; sleep 1");
  TestNode node;
  node.prepare(spec);
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  for (int i = 0; i < 2; ++i) node.input(std::string(65536, 'x'), false);
  ASSERT_TRUE(node.wait([&] { return node.input_taken == 2 * 65536; }));
  EXPECT_FALSE(node.done.has_value());
}

TEST(Shepherd, InputBeyondWindowDropsOnlyConnection) {
  auto spec = spec_of({"sleep", "1000"});
  TestNode node;
  node.prepare(spec);
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  for (int i = 0; i < 8; ++i) node.input(std::string(64 * 1024, 'x'), false);
  EXPECT_FALSE(node.wait([] { return false; }, std::chrono::seconds(2)));
  EXPECT_FALSE(node.is_connected());
  node.connect();
  node.send(wire::ShepherdResume());
  ASSERT_TRUE(node.wait([&] { return node.report.has_value(); }));
  EXPECT_EQ(node.report->phase(), 2U);
}

TEST(Shepherd, OutputGoesToFilesByPattern) {
  TemporaryDirectory directory;
  auto spec = shell("echo out $SCORE_RANK; echo err $SCORE_RANK >&2");
  spec.set_directory(directory.path());
  spec.set_stdout_path("%j.%2t.%N");
  spec.set_stderr_path("all%%");
  std::ofstream(directory.path() + "/all%") << "old\n";
  TestNode node;
  ASSERT_TRUE(node.run(spec, {.index = 0, .tasks_on_node = {2}}));
  EXPECT_EQ(read_text(directory.path() + "/7.00.node0"), "out 0\n");
  EXPECT_EQ(read_text(directory.path() + "/7.01.node0"), "out 1\n");
  const auto shared = read_text(directory.path() + "/all%");
  EXPECT_TRUE(shared == "err 0\nerr 1\n" || shared == "err 1\nerr 0\n") << shared;
  EXPECT_EQ(node.output_bytes, 0U);
}

TEST(Shepherd, TerminalOfRankZero) {
  auto spec = shell(
      "test -t 0 && test -t 1 && stty size; read x; echo got $x; stty size; "
      "echo $SCORE_RANK >/dev/tty; cat; exit 3");
  spec.set_pty(true);
  spec.set_terminal_rows(33);
  spec.set_terminal_columns(77);
  TestNode node;
  node.prepare(spec);
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  ASSERT_TRUE(node.wait([&] { return node.out[0].find("33 77\r\n") != std::string::npos; }));
  wire::TerminalSize size;
  size.set_rows(44);
  size.set_columns(88);
  node.send(size);
  node.input("hello\n", false);
  ASSERT_TRUE(node.wait([&] { return node.out[0].find("44 88\r\n0\r\n") != std::string::npos; }));
  node.input("", true);
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_NE(node.out[0].find("got hello\r\n"), std::string::npos) << node.out[0];
  EXPECT_EQ(node.exit_of(0)->code(), 3);
}

}  // namespace
}  // namespace score::shepherd::test
