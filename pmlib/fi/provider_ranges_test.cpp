// Tests reads and writes of several ranges of remote memory.
#include "tests/support/pmlib/provider_fixture.hpp"

namespace score::pm::fi {
namespace {

class ProviderRanges : public Provider {
 protected:
  static constexpr std::uint64_t kKeys[] = {11, 12};

  ProviderRanges() {
    for (std::size_t i = 0; i < 2; ++i) {
      memory[i].resize(200'000);
      EXPECT_EQ(fi_mr_reg(b->domain, memory[i].data(), memory[i].size(),
                          FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKeys[i], 0, &mr[i], nullptr),
                0);
    }
  }

  ~ProviderRanges() override {
    for (fid_mr* one : mr) EXPECT_EQ(fi_close(&one->fid), 0);
  }

  // Reads or writes the ranges with the bytes of `local`, in three pieces.
  ssize_t access(bool is_read, std::vector<std::uint8_t>& local,
                 const std::vector<fi_rma_iov>& ranges, std::uint64_t flags = 0) {
    const std::size_t third = local.size() / 3;
    const std::array<iovec, 3> iov{{{local.data(), third},
                                    {local.data() + third, third},
                                    {local.data() + 2 * third, local.size() - 2 * third}}};
    fi_msg_rma m{};
    m.msg_iov = iov.data();
    m.iov_count = iov.size();
    m.addr = a_to_b;
    m.rma_iov = ranges.data();
    m.rma_iov_count = ranges.size();
    m.context = this;
    m.data = 77;
    return is_read ? fi_readmsg(a->ep, &m, flags | FI_COMPLETION)
                   : fi_writemsg(a->ep, &m, flags | FI_COMPLETION);
  }

  bool wait_one() {
    return run_until([&] { return !done_a.empty() || !errors.empty(); }) && !done_a.empty();
  }

  std::array<std::vector<std::uint8_t>, 2> memory;
  std::array<fid_mr*, 2> mr{};
};

TEST_F(ProviderRanges, RangesAreAccessedAsOne) {
  ASSERT_GE(a->info->tx_attr->rma_iov_limit, 4u);
  for (const std::size_t each : {1, 500, 20'000}) {
    const std::vector<fi_rma_iov> ranges = {
        {0, each, kKeys[0]}, {7, each, kKeys[1]}, {100'000, 0, kKeys[0]}, {60'000, each, kKeys[0]}};
    std::vector<std::uint8_t> sent = pattern(3 * each, 3);
    done_a.clear();
    ASSERT_EQ(access(false, sent, ranges), 0);
    ASSERT_TRUE(wait_one()) << each;
    EXPECT_EQ(done_a[0].op_context, this);
    std::size_t at = 0;
    for (const fi_rma_iov& range : ranges) {
      const auto& there = memory[range.key - kKeys[0]];
      EXPECT_TRUE(
          std::equal(sent.begin() + at, sent.begin() + at + range.len, there.begin() + range.addr));
      at += range.len;
    }
    std::vector<std::uint8_t> back(sent.size());
    done_a.clear();
    ASSERT_EQ(access(true, back, ranges), 0);
    ASSERT_TRUE(wait_one()) << each;
    EXPECT_EQ(back, sent);
    run_a_little();
    EXPECT_EQ(done_a.size(), 1u);
  }
}

TEST_F(ProviderRanges, PeerCountsRangesAsOneWrite) {
  std::vector<std::uint8_t> sent = pattern(60'000, 4);
  const std::vector<fi_rma_iov> ranges = {{0, 30'000, kKeys[0]}, {0, 30'000, kKeys[1]}};
  ASSERT_EQ(access(false, sent, ranges, FI_REMOTE_CQ_DATA), 0);
  ASSERT_TRUE(run_until([&] { return !done_b.empty(); }));
  EXPECT_EQ(done_b[0].data, 77u);
  EXPECT_TRUE(std::equal(sent.begin(), sent.begin() + 30'000, memory[0].begin()));
  EXPECT_TRUE(std::equal(sent.begin() + 30'000, sent.end(), memory[1].begin()));
  ASSERT_TRUE(wait_one());
  EXPECT_EQ(fi_cntr_read(b->counter), 1u);
}

TEST_F(ProviderRanges, InjectedWriteReleasesItsBuffer) {
  const std::vector<std::uint8_t> sent = pattern(3000, 5);
  std::vector<std::uint8_t> buffer = sent;
  const std::vector<fi_rma_iov> ranges = {{0, 1500, kKeys[0]}, {0, 1500, kKeys[1]}};
  ASSERT_EQ(access(false, buffer, ranges, FI_INJECT), 0);
  std::fill(buffer.begin(), buffer.end(), 0xee);
  ASSERT_TRUE(wait_one());
  EXPECT_TRUE(std::equal(sent.begin(), sent.begin() + 1500, memory[0].begin()));
  EXPECT_TRUE(std::equal(sent.begin() + 1500, sent.end(), memory[1].begin()));
}

TEST_F(ProviderRanges, RefusedRangeFailsWholeAccessOnce) {
  std::vector<std::uint8_t> bytes(3000);
  for (const std::uint64_t first : {kKeys[0], std::uint64_t{99}}) {
    errors.clear();
    const std::vector<fi_rma_iov> ranges = {{0, 1500, first}, {0, 1500, 110 - first}};
    ASSERT_EQ(access(false, bytes, ranges), 0);
    EXPECT_FALSE(wait_one());
    run_a_little();
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_EQ(errors[0].op_context, this);
  }
}

TEST_F(ProviderRanges, RangesMustMatchLocalLength) {
  std::vector<std::uint8_t> bytes(300);
  EXPECT_EQ(access(false, bytes, {{0, 100, kKeys[0]}, {0, 199, kKeys[1]}}), -FI_EINVAL);
  EXPECT_EQ(access(true, bytes, {{0, 100, kKeys[0]}, {0, 201, kKeys[1]}}), -FI_EINVAL);
  EXPECT_EQ(access(true, bytes, {{0, UINT64_MAX, kKeys[0]}, {0, 301, kKeys[1]}}), -FI_EINVAL);
  EXPECT_EQ(access(true, bytes, {}), -FI_EINVAL);
  EXPECT_EQ(access(true, bytes, std::vector<fi_rma_iov>(5, {0, 60, kKeys[0]})), -FI_EINVAL);
}

}  // namespace
}  // namespace score::pm::fi
