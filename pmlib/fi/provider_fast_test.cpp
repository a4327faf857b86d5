// Tests the fast path of short messages through libfabric: see docs/adr/0038.
#include "tests/support/pmlib/provider_fixture.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace score::pm::fi {
namespace {

// The sides are used as an MPI uses them: no counters are bound, so messages take the fast path
// where it applies.
TEST_F(Provider, ShortMessagesCarryTheirBytesTagAndData) {
  make({.counts = false});
  for (const std::uint64_t data :
       {std::uint64_t{0}, std::uint64_t{65'535}, std::uint64_t{65'536}, std::uint64_t{1} << 63}) {
    for (const std::size_t length : {0, 1, 8, 9, 1024, 1025, 1400, 5000}) {
      for (const bool is_expected : {true, false}) {
        const auto sent = pattern(length, static_cast<unsigned>(data));
        std::vector<std::uint8_t> got(length + 1, 0xee);
        const std::uint64_t tag = data + length;
        const auto post = [&] {
          return fi_trecv(b->ep, got.data(), got.size(), nullptr, b_to_a, tag, 0, &got);
        };
        if (is_expected) {
          ASSERT_EQ(post(), 0);
        }
        ASSERT_EQ(fi_tinjectdata(a->ep, sent.data(), length, data, a_to_b, tag), 0);
        if (!is_expected) {
          run_a_little();
          ASSERT_EQ(post(), 0);
        }
        ASSERT_TRUE(run_until([&] { return !done_b.empty(); })) << length;
        const fi_cq_tagged_entry done = done_b.front();
        done_b.pop_front();
        EXPECT_EQ(done.flags, std::uint64_t{FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA});
        EXPECT_EQ(done.data, data);
        EXPECT_EQ(done.tag, tag);
        EXPECT_EQ(done.len, length);
        EXPECT_EQ(done.buf, got.data());
        EXPECT_EQ(done.op_context, static_cast<void*>(&got));
        EXPECT_TRUE(std::equal(sent.begin(), sent.end(), got.begin())) << length;
        EXPECT_EQ(got[length], 0xee);
      }
    }
  }
  EXPECT_TRUE(errors.empty());
}

// With a counter bound, no message is received by the fast path. Messages longer than 1 KB, or with
// more than 16 bits of data, are not sent by it.
TEST_F(Provider, FastPathCompletesAsTheSlowPathDoes) {
  using Seen = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                          std::vector<std::uint8_t>>;
  const auto play = [this](bool counts) {
    make({.counts = counts});
    done_b.clear();
    std::mt19937 random(5);
    std::vector<Seen> seen;
    for (unsigned i = 0; i < 300; ++i) {
      const std::size_t length = random() % 4 == 0 ? random() % 1500 : random() % 16;
      const std::uint64_t data = random() % 2 == 0 ? random() % 65'536 : random();
      const bool is_expected = random() % 3 != 0;
      const auto sent = pattern(length, i);
      std::vector<std::uint8_t> got(length + 1);
      const auto post = [&] {
        EXPECT_EQ(fi_trecv(b->ep, got.data(), got.size(), nullptr, b_to_a, i, 0, &got), 0);
      };
      if (is_expected) post();
      EXPECT_EQ(fi_tinjectdata(a->ep, sent.data(), length, data, a_to_b, i), 0);
      if (!is_expected) post();
      if (!run_until([&] { return !done_b.empty(); })) break;
      const fi_cq_tagged_entry done = done_b.front();
      done_b.pop_front();
      seen.emplace_back(done.flags, done.len, done.data, done.tag, got);
    }
    return seen;
  };
  const auto slow = play(true);
  EXPECT_EQ(slow.size(), 300u);
  EXPECT_EQ(play(false), slow);
}

TEST_F(Provider, ShortMessagesReportTruncation) {
  make({.counts = false});
  std::array<char, 16> got{};
  ASSERT_EQ(fi_trecv(b->ep, got.data(), 4, nullptr, FI_ADDR_UNSPEC, 5, 0, &got), 0);
  ASSERT_EQ(fi_tinject(a->ep, "12345678", 8, a_to_b, 5), 0);
  ASSERT_TRUE(run_until([&] { return !errors.empty(); }));
  EXPECT_EQ(errors[0].err, FI_ETRUNC);
  EXPECT_EQ(errors[0].olen, 4U);
  EXPECT_EQ(std::string(got.data()), "1234");
}

}  // namespace
}  // namespace score::pm::fi
