// These tests cover single rules of the state machine of two-phase commit; pario/sim tests whole
// clusters.
#include "pario/core/transactions.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

namespace score::pario {
namespace {

using Action = Transactions::Action;

constexpr FileId kFile = 1 << kHomeBits;

std::string bytes_of(std::uint64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Drives one server by hand.
struct Single {
  Transactions machine{0, 1};
  std::int64_t now = 0;

  Transactions::Stage write_of(TransactionId id, std::uint64_t offset) {
    return {id, 0, {}, {{kFile, {offset, 8}, bytes_of(id)}}};
  }

  int prepare(TransactionId id, std::vector<std::uint16_t> servers, std::uint32_t stages = 1) {
    machine.prepare({.id = id,
                     .stages = stages,
                     .coordinator = servers.front(),
                     .is_stable = false,
                     .servers = servers,
                     .token = id},
                    now);
    return drain(id);
  }

  // Carries out the machine's actions. Returns the error of the reply to `token`, or -1.
  int drain(std::uint64_t token) {
    int error = -1;
    for (auto actions = machine.take_actions(); !actions.empty();
         actions = machine.take_actions()) {
      for (const Action& action : actions) {
        if (action.kind == Action::Kind::Apply) machine.applied(action.id, 1);
        if (action.kind == Action::Kind::Reply && action.token == token) error = action.error;
      }
    }
    return error;
  }
};

TEST(Transactions, OverwrittenReadConflicts) {
  Single one;
  std::uint64_t stamp = 0;
  ASSERT_EQ(one.machine.stamp(kFile, {{0, 8}}, 0, stamp), 0);
  ASSERT_EQ(one.machine.stage(one.write_of(1, 0), 0), 0);
  EXPECT_EQ(one.prepare(1, {0}), 0);
  ASSERT_EQ(one.machine.stage({2, 0, {{kFile, {0, 8}, stamp}}, {}}, 0), 0);
  EXPECT_EQ(one.prepare(2, {0}), EAGAIN);
  ASSERT_EQ(one.machine.stage({3, 0, {{kFile, {4096, 8}, stamp}}, {}}, 0), 0);
  EXPECT_EQ(one.prepare(3, {0}), 0) << "the read range of the file has not changed";
}

TEST(Transactions, StampOfOtherIncarnationIsRefused) {
  Single one;
  Transactions before(0, 2);
  std::uint64_t stamp = 0;
  ASSERT_EQ(before.stamp(kFile, {{0, 8}}, 0, stamp), 0);
  ASSERT_EQ(one.machine.stage({2, 0, {{kFile, {0, 8}, stamp}}, {}}, 0), 0);
  EXPECT_EQ(one.prepare(2, {0}), EAGAIN);
}

TEST(Transactions, PreparedWriteLocksUntilClientTimesOut) {
  Single one;
  ASSERT_EQ(one.machine.stage(one.write_of(1, 0), 0), 0);
  EXPECT_EQ(one.prepare(1, {0, 1}), 0);
  std::uint64_t stamp = 0;
  EXPECT_EQ(one.machine.stamp(kFile, {{0, 8}}, 0, stamp), EAGAIN);
  ASSERT_EQ(one.machine.stage(one.write_of(2, 0), 0), 0);
  EXPECT_EQ(one.prepare(2, {0, 1}), EAGAIN);
  one.machine.tick(kDoubtMs + 1);
  EXPECT_EQ(one.machine.stamp(kFile, {{0, 8}}, 0, stamp), 0);
  one.machine.decide(1, 1, one.now);
  EXPECT_EQ(one.drain(1), ECANCELED) << "it was aborted permanently";
}

TEST(Transactions, MissingMessageIsConflict) {
  Single one;
  ASSERT_EQ(one.machine.stage(one.write_of(1, 0), 0), 0);
  ASSERT_EQ(one.machine.stage(one.write_of(1, 0), 0), 0) << "repeated";
  EXPECT_EQ(one.prepare(1, {0}, 2), EAGAIN);
}

TEST(Transactions, HostileOrdersAreErrors) {
  Single one;
  one.machine.decide(5, 5, 0);
  EXPECT_EQ(one.drain(5), ECANCELED);
  ASSERT_EQ(one.machine.stage(one.write_of(1, 0), 0), 0);
  one.machine.finish(1, true, 1, 0);
  EXPECT_EQ(one.drain(1), EINVAL) << "not prepared";
  EXPECT_EQ(one.prepare(1, {0, 1}), 0);
  one.machine.finish(1, true, 1, 0);
  EXPECT_EQ(one.drain(1), EINVAL) << "the coordinator commits through decide()";
  ASSERT_EQ(one.machine.stage({9, 0, {}, {{kFile, {0, 1}, "x"}}}, 0), 0);
  int error = 0;
  const std::string large(1 << 20, 'x');
  for (std::uint32_t i = 1; error == 0 && i < 1000; ++i) {
    error = one.machine.stage({9, i, {}, {{kFile, {0, large.size()}, large}}}, 0);
  }
  EXPECT_EQ(error, E2BIG);
}

TEST(Transactions, PlainWriteAfterReadIsConflict) {
  Single one;
  std::uint64_t stamp = 0;
  ASSERT_EQ(one.machine.stamp(kFile, {{0, 8}, {4096, 8}}, 0, stamp), 0);
  const std::uint64_t plain = one.machine.begin_plain(kFile, {{4, 100}});
  ASSERT_NE(plain, 0U);
  std::uint64_t other = 0;
  EXPECT_EQ(one.machine.stamp(kFile, {{0, 8}}, 0, other), EAGAIN) << "under way";
  one.machine.end_plain(kFile, plain);
  ASSERT_EQ(one.machine.stage({2, 0, {{kFile, {0, 8}, stamp}}, {}}, 0), 0);
  EXPECT_EQ(one.prepare(2, {0}), EAGAIN);
  ASSERT_EQ(one.machine.stage({3, 0, {{kFile, {4096, 8}, stamp}}, {}}, 0), 0);
  EXPECT_EQ(one.prepare(3, {0}), 0) << "a different range of the file";
  one.machine.end_plain(kFile, one.machine.begin_plain(kFile, {{1 << 20, 1 << 20}}));
  ASSERT_EQ(one.machine.stage({4, 0, {{kFile, {4096, 8}, stamp}}, {}}, 0), 0);
  EXPECT_EQ(one.prepare(4, {0}), EAGAIN) << "a large change counts for the whole file";
}

TEST(Transactions, PendingPlainWriteConflictsWithPrepare) {
  Single one;
  const std::uint64_t plain = one.machine.begin_plain(kFile, {{0, 8}});
  ASSERT_EQ(one.machine.stage(one.write_of(1, 0), 0), 0);
  EXPECT_EQ(one.prepare(1, {0, 1}), EAGAIN);
  one.machine.end_plain(kFile, plain);
  ASSERT_EQ(one.machine.stage(one.write_of(2, 0), 0), 0);
  EXPECT_EQ(one.prepare(2, {0, 1}), 0);
}

TEST(Transactions, PlainWriteOfLockedBytesWaits) {
  Single one;
  ASSERT_EQ(one.machine.stage(one.write_of(1, 0), 0), 0);
  EXPECT_EQ(one.prepare(1, {0, 1}), 0);
  EXPECT_FALSE(one.machine.take_unlocked());
  EXPECT_EQ(one.machine.begin_plain(kFile, {{4, 8}}), 0U);
  EXPECT_NE(one.machine.begin_plain(kFile, {{8, 8}}), 0U);
  one.machine.finish(1, false, 1, 0);
  EXPECT_TRUE(one.machine.take_unlocked());
  EXPECT_NE(one.machine.begin_plain(kFile, {{4, 8}}), 0U);
}

TEST(Transactions, PossiblyChangedFileIsConflict) {
  Single one;
  std::uint64_t stamp = 0;
  EXPECT_FALSE(one.machine.is_in_use(kFile, 0));
  ASSERT_EQ(one.machine.stamp(kFile, {{0, 8}}, 0, stamp), 0);
  EXPECT_TRUE(one.machine.is_in_use(kFile, 1'000));
  EXPECT_FALSE(one.machine.is_in_use(kFile, kNoLeaseMs));
  one.machine.file_changed(kFile);
  ASSERT_EQ(one.machine.stage({2, 0, {{kFile, {0, 8}, stamp}}, {}}, 0), 0);
  EXPECT_EQ(one.prepare(2, {0}), EAGAIN);
}

TEST(Transactions, ForgottenReadIsConflict) {
  Single one;
  std::uint64_t stamp = 0;
  ASSERT_EQ(one.machine.stamp(kFile, {{0, 8}}, 0, stamp), 0);
  one.machine.tick(kWatchMs + 1);
  std::uint64_t other = 0;
  ASSERT_EQ(one.machine.stamp(kFile, {{0, 8}}, kWatchMs + 1, other), 0);
  ASSERT_EQ(one.machine.stage({2, 0, {{kFile, {0, 8}, stamp}}, {}}, 0), 0);
  EXPECT_EQ(one.prepare(2, {0}), EAGAIN) << "changes in between were not noted";
  ASSERT_EQ(one.machine.stage({3, 0, {{kFile, {0, 8}, other}}, {}}, 0), 0);
  EXPECT_EQ(one.prepare(3, {0}), 0);
}

}  // namespace
}  // namespace score::pario
