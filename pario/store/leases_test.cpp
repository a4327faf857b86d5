#include "pario/store/leases.hpp"

#include "tests/support/pario/test_directory.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <unistd.h>
#include <vector>

namespace score::pario {
namespace {

constexpr std::uint64_t kMegabyte = std::uint64_t{1} << 20;

class LeasesTest : public testing::Test {
 protected:
  LeasesTest() {
    EXPECT_EQ(files_.open(directory_.fd(), [](FileId) { return false; }), 0);
    EXPECT_EQ(files_.get(make_id(7, 0), true, file_), 0);
  }

  // Writes as a client that writes the file itself.
  void write(std::uint64_t bytes) {
    const std::vector<char> data(bytes, 'x');
    EXPECT_EQ(::pwrite(file_->fd.get(), data.data(), bytes, 0), static_cast<ssize_t>(bytes));
  }

  static const void* holder(std::uintptr_t number) { return reinterpret_cast<const void*>(number); }

  TestDirectory directory_;
  DataFiles files_{10 * kMegabyte};
  Leases leases_{files_};
  std::shared_ptr<DataFile> file_;
};

TEST_F(LeasesTest, ReservesSpaceAndCountsWrittenBytes) {
  EXPECT_EQ(leases_.take(holder(1), file_, 8 * kMegabyte, 0), 0);
  EXPECT_EQ(files_.quota().free(), 2 * kMegabyte);
  write(kMegabyte);
  leases_.leave(holder(1));
  EXPECT_EQ(files_.quota().used(), kMegabyte);
  EXPECT_EQ(files_.quota().free(), 9 * kMegabyte);
}

TEST_F(LeasesTest, RenewalCountsOnce) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(leases_.take(holder(1), file_, 6 * kMegabyte, i), 0);
    write(2 * kMegabyte);
  }
  EXPECT_EQ(leases_.size(), 1U);
  EXPECT_EQ(leases_.take(holder(1), file_, 0, 9), 0);
  EXPECT_EQ(files_.quota().used(), 2 * kMegabyte);
  EXPECT_EQ(files_.quota().free(), 8 * kMegabyte);
}

TEST_F(LeasesTest, RefusesLeaseBeyondFreeSpace) {
  EXPECT_EQ(leases_.take(holder(1), file_, 6 * kMegabyte, 0), 0);
  EXPECT_EQ(leases_.take(holder(2), file_, 6 * kMegabyte, 0), ENOSPC);
  EXPECT_EQ(leases_.take(holder(2), file_, UINT64_MAX, 0), ENOSPC);
  EXPECT_EQ(leases_.take(holder(2), file_, 4 * kMegabyte, 0), 0);
  EXPECT_EQ(leases_.size(), 2U);
}

TEST_F(LeasesTest, EndsByTime) {
  EXPECT_EQ(leases_.take(holder(1), file_, 6 * kMegabyte, 1'000), 0);
  leases_.tick(1'000 + kLeaseMs - 1);
  EXPECT_EQ(leases_.size(), 1U);
  leases_.tick(1'000 + kLeaseMs);
  EXPECT_EQ(leases_.size(), 0U);
  EXPECT_EQ(files_.quota().free(), 10 * kMegabyte);
}

TEST_F(LeasesTest, AreBounded) {
  for (std::uintptr_t i = 1; i <= Leases::kMost; ++i) {
    EXPECT_EQ(leases_.take(holder(i), file_, 1, 0), 0);
  }
  EXPECT_EQ(leases_.take(holder(Leases::kMost + 1), file_, 1, 0), ENOBUFS);
}

}  // namespace
}  // namespace score::pario
