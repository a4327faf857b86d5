#include "pmlib/fi/endpoint/matching.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace score::pm::fi {
namespace {

struct Posted : PostedReceive {
  int number = 0;

  Posted(int n, std::uint64_t from, std::uint64_t tag_, std::uint64_t ignored) : number(n) {
    source = from;
    tag = tag_;
    ignore = ignored;
  }
};

struct Early : EarlyMessage {
  int number = 0;

  Early(int n, std::uint64_t from, std::uint64_t tag_) : number(n) {
    source = from;
    tag = tag_;
  }
};

bool fits(const PostedReceive& r, std::uint64_t source, std::uint64_t tag) {
  return (r.source == kAnySource || r.source == source) && ((r.tag ^ tag) & ~r.ignore) == 0;
}

TEST(MatchTable, OldestFittingReceiveTakesMessage) {
  MatchTable table;
  Posted any(1, kAnySource, 0, ~std::uint64_t{0}), exact(2, 7, 5, 0);
  table.post(any);
  table.post(exact);
  EXPECT_EQ(table.find_receive(7, 5), &any);
  table.remove(any);
  EXPECT_EQ(table.find_receive(7, 5), &exact);
  EXPECT_EQ(table.find_receive(7, 6), nullptr);
  EXPECT_EQ(table.find_receive(8, 5), nullptr);
  table.remove(exact);
  EXPECT_EQ(table.posted_count(), 0u);
}

TEST(MatchTable, OldestFittingMessageIsTaken) {
  MatchTable table;
  Early first(1, 3, 9), second(2, 4, 9);
  table.add_early(first);
  table.add_early(second);
  EXPECT_EQ(table.take_early(Posted(0, 4, 9, 0)), &second);
  EXPECT_EQ(table.take_early(Posted(0, kAnySource, 0, ~std::uint64_t{0})), &first);
  EXPECT_EQ(table.take_early(Posted(0, kAnySource, 0, ~std::uint64_t{0})), nullptr);
}

TEST(MatchTable, MessagesOlderThanTheirClassAreFound) {
  MatchTable table;
  std::vector<std::unique_ptr<Early>> messages;
  for (int i = 0; i < 1000; ++i) {
    messages.push_back(std::make_unique<Early>(i, 1, static_cast<std::uint64_t>(i)));
    table.add_early(*messages.back());
  }
  // In a class with an ignored low byte, the oldest of 256 messages is found.
  EXPECT_EQ(table.take_early(Posted(0, 1, 0x2ff, 0xff)), messages[0x200].get());
  EXPECT_EQ(table.early_count(), 999u);
}

// Makes the same random calls on the table and on two plain lists, with more classes than are
// indexed.
TEST(MatchTable, AgreesWithPlainListsOnRandomCalls) {
  std::mt19937 random(4711);
  MatchTable table;
  std::vector<std::unique_ptr<Posted>> posted;
  std::vector<std::unique_ptr<Early>> early;
  const std::vector<std::uint64_t> masks = {0, ~std::uint64_t{0}, 1, 2, 3, 4, 5};
  for (int step = 0; step < 50'000; ++step) {
    const std::uint64_t tag = random() % 8;
    const std::uint64_t source = random() % 3;
    if (random() % 2 == 0) {
      auto r = std::make_unique<Posted>(step, random() % 3 == 0 ? kAnySource : source, tag,
                                        masks[random() % masks.size()]);
      const auto want = std::find_if(early.begin(), early.end(),
                                     [&](const auto& m) { return fits(*r, m->source, m->tag); });
      EarlyMessage* const got = table.take_early(*r);
      ASSERT_EQ(got, want == early.end() ? nullptr : want->get());
      if (got != nullptr) {
        early.erase(want);
      } else {
        table.post(*r);
        posted.push_back(std::move(r));
      }
      continue;
    }
    const auto want = std::find_if(posted.begin(), posted.end(),
                                   [&](const auto& r) { return fits(*r, source, tag); });
    PostedReceive* const got = table.find_receive(source, tag);
    ASSERT_EQ(got, want == posted.end() ? nullptr : want->get());
    if (got != nullptr) {
      table.remove(*got);
      posted.erase(want);
    } else {
      early.push_back(std::make_unique<Early>(step, source, tag));
      table.add_early(*early.back());
    }
  }
  ASSERT_EQ(table.posted_count(), posted.size());
  ASSERT_EQ(table.early_count(), early.size());
}

}  // namespace
}  // namespace score::pm::fi
