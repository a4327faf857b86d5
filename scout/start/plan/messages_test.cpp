#include "scout/start/plan/messages.hpp"

#include "base/text.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::scout {
namespace {

Orders full_orders() {
  Orders orders;
  orders.node = "node03";
  orders.uid = 4242;
  orders.head_host = "fd00::7";
  orders.own_host = "10.1.2.3";
  orders.head_port = 7421;
  orders.key = std::string(64, 'a');
  orders.cores = 4;
  orders.memory = "2G";
  orders.hooks = "[hooks]\nprolog = \"/bin/true\"\n";
  orders.use_cgroups = false;
  return orders;
}

// Returns true if the orders are complete, false if more lines are needed, and nothing after an
// error.
std::optional<bool> take(OrdersReader& reader, std::string_view text) {
  for (const auto line : split(text, '\n')) {
    const auto taken = reader.take_line(line);
    if (!taken) return std::nullopt;
    if (*taken) return true;
  }
  return false;
}

TEST(Orders, SurviveEncoding) {
  OrdersReader reader;
  EXPECT_EQ(take(reader, encode(full_orders())), true);
  EXPECT_EQ(reader.orders(), full_orders());
}

TEST(Orders, EveryTruncationIsIncompleteOrRefused) {
  const auto text = encode(full_orders());
  for (std::size_t length = 0; length + 2 < text.size(); ++length) {
    OrdersReader reader;
    EXPECT_NE(take(reader, text.substr(0, length)), true) << length;
  }
}

TEST(Orders, BadValuesAreRefused) {
  for (const auto* line :
       {"node -x", "node ../a", "uid -1", "uid x", "port 65536", "port", "key 12", "head \"a\"",
        "head a b", "cores -1", "memory x", "cgroups maybe", "other 1", "", "go"}) {
    OrdersReader reader;
    EXPECT_FALSE(reader.take_line(line)) << line;
  }
}

TEST(Orders, RandomBytesNeverCompleteOrders) {
  std::mt19937 random(5);
  for (int round = 0; round < 20'000; ++round) {
    OrdersReader reader;
    std::string line;
    for (auto left = random() % 40; left > 0; --left) line += static_cast<char>(random());
    const auto taken = reader.take_line(line);
    EXPECT_FALSE(taken && *taken);
  }
}

TEST(Reports, SurviveEncoding) {
  for (const auto kind :
       {Report::Kind::Push, Report::Kind::Absent, Report::Kind::Hello, Report::Kind::Ready,
        Report::Kind::Note, Report::Kind::Error, Report::Kind::Gone}) {
    auto line = encode(Report{kind, "some text"});
    ASSERT_EQ(line.back(), '\n');
    line.pop_back();
    const auto report = parse_report(line);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->kind, kind);
    EXPECT_EQ(report->text, "some text");
  }
}

TEST(Reports, AreOneLineWithoutControlCharacters) {
  EXPECT_EQ(encode(Report{Report::Kind::Note, "a\nb"}), "scored-start: note a b\n");
  EXPECT_EQ(parse_report("scored-start: note a\033[2Jb")->text.find('\033'), std::string::npos);
}

TEST(Reports, OtherLinesAreIgnored) {
  for (const auto* line : {"", "Welcome!", "hello 1", "scored-start: other x", "scored-start:"}) {
    EXPECT_FALSE(parse_report(line)) << line;
  }
}

}  // namespace
}  // namespace score::scout
