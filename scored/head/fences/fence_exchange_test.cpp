#include "scored/head/fences/fence_exchange.hpp"

#include "proto/frames/key_values.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace score::head {
namespace {

constexpr std::uint64_t kNothing = 0;

FenceEntry announcing(std::uint64_t bytes) {
  return {.sequence = 1, .takes_pieces = true, .bytes = bytes};
}

FenceEntry holding(std::string key_values) {
  FenceEntry entry = announcing(key_values.size());
  entry.key_values = std::move(key_values);
  return entry;
}

// Nodes plays the nodes of an exchange: each answers at once, unless the test lets it lag.
struct Nodes {
  explicit Nodes(std::vector<std::string> values, std::vector<FenceEntry> entries)
      : mine(std::move(values)),
        got(mine.size()),
        exchange(std::move(entries), std::vector<bool>(mine.size())) {}

  // Carries out actions until nothing is left to do.
  void run(FenceActions actions) {
    while (!actions.empty()) {
      FenceActions more;
      const auto add = [&more](Result<FenceActions> next) {
        ASSERT_TRUE(next) << next.error().message();
        std::ranges::move(*next, std::back_inserter(more));
      };
      for (const FenceAction& action : actions) {
        if (const auto* fetch = std::get_if<FetchPiece>(&action)) {
          ++fetches;
          if (fetch->node == mute) continue;
          add(exchange.piece(fetch->node, fetch->offset,
                             mine[fetch->node].substr(fetch->offset, fetch->bytes)));
          continue;
        }
        const auto& piece = std::get<SendPiece>(action);
        for (const std::size_t node : piece.nodes) receive(node, piece);
        for (const std::size_t node : piece.nodes) {
          if (node != lagging) add(exchange.taken(node, got[node].size(), piece.total));
        }
      }
      actions = std::move(more);
    }
  }

  void receive(std::size_t node, const SendPiece& piece) {
    if (node == lagging && piece.nodes.size() > 1) unseen += piece.data->size();
    if (node == lagging) return;
    if (piece.total != total) std::ranges::fill(got, std::string());
    total = piece.total;
    ASSERT_LE(piece.offset, got[node].size());
    if (piece.offset + piece.data->size() > got[node].size())
      got[node] += piece.data->substr(got[node].size() - piece.offset);
  }

  static constexpr std::size_t kNone = 1'000'000;
  std::vector<std::string> mine;
  std::vector<std::string> got;
  FenceExchange exchange;
  std::uint64_t total = 0;
  std::size_t lagging = kNone;  // gets nothing and acknowledges nothing
  std::size_t mute = kNone;     // does not answer
  std::uint64_t unseen = 0;
  std::size_t fetches = 0;
};

std::string values(std::size_t bytes, char first) {
  std::string made(bytes, first);
  for (std::size_t i = 0; i < bytes; i += 97) made[i] = static_cast<char>('0' + i % 10);
  return made;
}

TEST(FenceExchange, PassesOnHeldAndFetchedValuesInOrder) {
  const std::vector<std::string> mine{"few", values(300'000, 'b'), "", values(70'000, 'd')};
  Nodes nodes(mine, {holding("few"), announcing(300'000), announcing(0), announcing(70'000)});
  nodes.run(nodes.exchange.start());
  EXPECT_TRUE(nodes.exchange.is_done());
  for (const auto& got : nodes.got) EXPECT_EQ(got, mine[0] + mine[1] + mine[3]);
}

TEST(FenceExchange, KeepsOneWindowForSlowNode) {
  const std::size_t nodes_count = 16;
  const std::size_t each = 512 << 10U;
  std::vector<std::string> mine(nodes_count, values(each, 'k'));
  Nodes nodes(mine, std::vector<FenceEntry>(nodes_count, announcing(each)));
  nodes.lagging = 5;
  nodes.run(nodes.exchange.start());
  EXPECT_FALSE(nodes.exchange.is_done());
  EXPECT_EQ(nodes.unseen, FenceExchange::window_of(nodes_count));
  nodes.lagging = Nodes::kNone;
  nodes.run(nodes.exchange.resume(5));
  EXPECT_TRUE(nodes.exchange.is_done());
  EXPECT_EQ(nodes.got[5].size(), nodes_count * each);
  EXPECT_EQ(nodes.got[5], nodes.got[0]);
}

TEST(FenceExchange, WindowsOfAllNodesAreBounded) {
  for (const std::size_t nodes : {1U, 2U, 16U, 64U, 128U}) {
    EXPECT_LE(FenceExchange::window_of(nodes) * nodes, FenceExchange::kMaxInFlight) << nodes;
  }
  EXPECT_EQ(FenceExchange::window_of(16'384), FenceExchange::kMinWindow);
}

TEST(FenceExchange, AsksAgainAfterBrokenLink) {
  const std::vector<std::string> mine{values(50'000, 'a'), values(200'000, 'b')};
  Nodes nodes(mine, {announcing(50'000), announcing(200'000)});
  nodes.mute = 1;
  nodes.run(nodes.exchange.start());
  EXPECT_FALSE(nodes.exchange.is_done());
  EXPECT_EQ(nodes.got[0].size(), 50'000U);
  nodes.mute = Nodes::kNone;
  nodes.run(nodes.exchange.resume(1));
  EXPECT_TRUE(nodes.exchange.is_done());
  EXPECT_EQ(nodes.got[0], mine[0] + mine[1]);
  EXPECT_EQ(nodes.got[1], nodes.got[0]);
}

TEST(FenceExchange, ContinuesWhereEarlierHeadStopped) {
  const std::vector<std::string> mine{values(100'000, 'a'), values(100'000, 'b')};
  FenceEntry first = announcing(100'000);
  FenceEntry second = announcing(100'000);
  first.taken = 70'001;
  second.taken = 131'072;
  Nodes nodes(mine, {first, second});
  nodes.total = 200'000;
  nodes.got[0] = mine[0].substr(0, 70'001);
  nodes.got[1] = (mine[0] + mine[1]).substr(0, 131'072);
  nodes.run(nodes.exchange.start());
  EXPECT_TRUE(nodes.exchange.is_done());
  for (const auto& got : nodes.got) EXPECT_EQ(got, mine[0] + mine[1]);
}

TEST(FenceExchange, BeginsAgainWithoutNodeThatEnded) {
  const std::vector<std::string> mine{values(10'000, 'a'), values(90'000, 'b'),
                                      values(10'000, 'c')};
  Nodes nodes(mine, {announcing(10'000), announcing(90'000), announcing(10'000)});
  nodes.mute = 1;
  nodes.run(nodes.exchange.start());
  nodes.run(nodes.exchange.leave(1));
  EXPECT_TRUE(nodes.exchange.is_done());
  EXPECT_EQ(nodes.got[0], mine[0] + mine[2]);
  EXPECT_EQ(nodes.got[2], nodes.got[0]);
}

TEST(FenceExchange, DoesNotWaitForNodeThatEnded) {
  Nodes nodes({"a", "b"}, {holding("a"), holding("b")});
  nodes.lagging = 1;
  nodes.run(nodes.exchange.start());
  EXPECT_FALSE(nodes.exchange.is_done());
  nodes.run(nodes.exchange.leave(1));
  EXPECT_TRUE(nodes.exchange.is_done());
}

TEST(FenceExchange, CollectsWholeResultForOlderNodes) {
  const std::string old = values(200'000, 'o');
  FenceEntry older = holding(old);
  older.takes_pieces = false;
  const std::string other = values(100'000, 'n');
  Nodes nodes({old, other}, {older, announcing(100'000)});
  nodes.run(nodes.exchange.start());
  EXPECT_TRUE(nodes.exchange.is_done());
  EXPECT_TRUE(nodes.exchange.is_whole());
  EXPECT_EQ(nodes.exchange.take_whole(), old + other);
}

TEST(FenceExchange, RefusesWhatWasNotFetchedOrSent) {
  Nodes nodes({values(10'000, 'a'), ""}, {announcing(10'000), announcing(0)});
  nodes.mute = 0;
  nodes.run(nodes.exchange.start());
  EXPECT_TRUE(nodes.exchange.piece(0, 0, "short").error().is(Errc::Malformed));
  EXPECT_TRUE(nodes.exchange.taken(1, 1, 10'000).error().is(Errc::WrongState));
  EXPECT_TRUE(nodes.exchange.piece(0, 77, "unknown place").value().empty());
  EXPECT_TRUE(nodes.exchange.piece(1, 0, "none").value().empty());
  EXPECT_TRUE(nodes.exchange.piece(0, ~kNothing, "far").value().empty());
  EXPECT_TRUE(nodes.exchange.taken(1, ~kNothing, 7).value().empty());
  EXPECT_FALSE(nodes.exchange.is_done());
}

}  // namespace
}  // namespace score::head
