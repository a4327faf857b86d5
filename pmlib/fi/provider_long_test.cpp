// Tests messages that are sent out of the sender's own memory without asking.
#include "pmlib/fi/link/wire.hpp"
#include "tests/support/pmlib/provider_fixture.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace score::pm::fi {
namespace {

// The messages may be incomplete when they are claimed or discarded.
TEST_F(Provider, ClaimsAndDiscardsLongMessages) {
  const auto sent = pattern(400'000, 4);
  fi_msg_tagged m{};
  m.addr = b_to_a;
  m.tag = 9;
  m.context = &m;
  std::vector<std::uint8_t> got(sent.size());
  const iovec iov{got.data(), got.size()};
  for (const bool discards : {true, false}) {
    done_a.clear();
    done_b.clear();
    ASSERT_TRUE(send_only(sent.data(), sent.size(), 9));
    m.msg_iov = &iov;
    m.iov_count = 0;
    ASSERT_TRUE(run_until([&] {
      errors.clear();
      EXPECT_EQ(fi_trecvmsg(b->ep, &m, FI_PEEK | (discards ? FI_DISCARD : FI_CLAIM)), 0);
      take(*b, done_b);
      return !done_b.empty();
    }));
    EXPECT_EQ(done_b[0].len, sent.size());
    m.iov_count = 1;
    if (!discards) {
      ASSERT_EQ(fi_trecvmsg(b->ep, &m, FI_CLAIM), 0);
    }
    ASSERT_TRUE(run_until([&] { return !done_a.empty() && (discards || done_b.size() == 2); }));
    EXPECT_EQ(got == sent, !discards);
  }
}

// The receiver has to keep messages that are sent without asking.
TEST_F(Provider, SendsAtMostOneMegabyteUnasked) {
  meet_by_relays(0);
  constexpr std::size_t kCount = 12, kLength = 300'000;
  std::set<std::uint64_t> begun, announced;  // tags
  relays[0]->sees = [&](std::span<const char> frame) {
    if (frame.size() < sizeof(FrameHeader)) return;
    std::span<const std::byte> bytes = std::as_bytes(frame).subspan(sizeof(FrameHeader));
    const auto header = fi::take<Header>(bytes);
    if (!header || header->kind != MessageKind::Tagged) return;
    if ((header->flags & kSplit) != 0) begun.insert(header->tag);
    if ((header->flags & kLarge) != 0) announced.insert(header->tag);
  };
  std::vector<std::vector<std::uint8_t>> sent, got(kCount, std::vector<std::uint8_t>(kLength));
  for (std::size_t i = 0; i < kCount; ++i) {
    sent.push_back(pattern(kLength, static_cast<unsigned>(i)));
    ASSERT_TRUE(send_tagged(sent[i].data(), kLength, i));
  }
  ASSERT_TRUE(run_until([&] { return begun.size() + announced.size() == kCount; }));
  EXPECT_EQ(begun, (std::set<std::uint64_t>{0, 1, 2}));
  EXPECT_TRUE(done_a.empty());
  for (std::size_t i = kCount; i-- > 0;) {
    ASSERT_EQ(fi_trecv(b->ep, got[i].data(), kLength, nullptr, FI_ADDR_UNSPEC, i, 0, nullptr), 0);
  }
  ASSERT_TRUE(run_until([&] { return done_a.size() == kCount && done_b.size() == kCount; }));
  EXPECT_TRUE(got == sent);
}

TEST_F(Provider, DeliversLongMessagesUnderLoss) {
  meet_by_relays(5);
  std::vector<std::uint8_t> got(500'000);
  for (unsigned i = 0; i < 20; ++i) {
    const auto sent = pattern(70'000 + 22'345 * i, i);
    done_a.clear();
    done_b.clear();
    const auto post = [&] {
      return fi_trecv(b->ep, got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, i, 0, nullptr);
    };
    if (i % 2 == 0) {
      ASSERT_EQ(post(), 0);
    }
    ASSERT_TRUE(send_tagged(sent.data(), sent.size(), i));
    if (i % 2 != 0) {
      run_a_little();
      ASSERT_EQ(post(), 0);
    }
    ASSERT_TRUE(run_until([&] { return !done_b.empty() && !done_a.empty(); })) << i;
    ASSERT_EQ(done_b[0].len, sent.size());
    ASSERT_TRUE(std::equal(sent.begin(), sent.end(), got.begin())) << i;
  }
}

}  // namespace
}  // namespace score::pm::fi
