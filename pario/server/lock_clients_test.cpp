#include "pario/server/lock_clients.hpp"

#include "pario/server/clients.hpp"
#include "tests/support/pario/asked_requests.hpp"
#include "tests/support/pario/test_directory.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <sys/socket.h>

namespace score::pario {
namespace {

constexpr FileId kFile = make_id(5, 0);
constexpr FileId kOther = make_id(6, 0);

class LockClientsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string message;
    ASSERT_EQ(Store::open(directory_.path(), {"test", 0, 1, 4096}, store_, message), 0);
    locks_ = std::make_unique<LockClients>(0, *store_, peers_);
  }

  std::unique_ptr<Connection> connect() {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    ::close(pair[1]);
    return std::make_unique<Connection>(pair[0], "peer", identity_, ring_, owner_);
  }

  static TransferPtr lock_of(std::uint64_t client, Connection& connection, std::uint32_t mode,
                             FileId file = kFile) {
    auto transfer = std::make_unique<Transfer>();
    transfer->connection = &connection;
    transfer->client = connection.number();
    transfer->request = {.op = Op::Lock, .id = file, .mode = mode, .number = client};
    return transfer;
  }

  // Grants a lock that the client then has in the file.
  void grant(std::uint64_t client, Connection& connection, std::int64_t now_ms,
             FileId file = kFile) {
    const TransferPtr transfer = lock_of(client, connection, kExclusiveLock, file);
    EXPECT_EQ(locks_->note(*transfer, now_ms), 0);
    transfer->answer.number = 1;
    locks_->answered(*transfer);
  }

  void wait(std::uint64_t client, Connection& connection, std::int64_t now_ms) {
    TransferPtr transfer = lock_of(client, connection, kExclusiveLock | kWaitForLock);
    EXPECT_EQ(locks_->note(*transfer, now_ms), 0);
    transfer->answer.error = EAGAIN;
    ASSERT_TRUE(locks_->must_wait(*transfer, now_ms));
    locks_->park(std::move(transfer));
  }

  TestDirectory directory_;
  std::unique_ptr<Store> store_;
  AskedRequests peers_;
  std::unique_ptr<LockClients> locks_;
  Ring ring_;
  Buffers buffers_;
  Connection::Identity identity_;
  Clients owner_{{}, buffers_, ring_, {}};
};

TEST_F(LockClientsTest, LateRequestOfOldConnectionIsRefused) {
  const auto first = connect();
  const auto second = connect();
  EXPECT_EQ(locks_->note(*lock_of(7, *second, kShared), 0), 0);
  EXPECT_EQ(locks_->note(*lock_of(7, *first, kShared), 0), ESTALE);
  EXPECT_EQ(locks_->note(*lock_of(8, *first, kShared), 0), 0);
  EXPECT_EQ(locks_->note(*lock_of(7, *first, kDropClient), 0), 0) << "from a server";
}

TEST_F(LockClientsTest, LocksOfDisconnectedClientAreReleased) {
  const auto connection = connect();
  locks_->tick(true, 0);
  grant(7, *connection, 100);
  EXPECT_TRUE(locks_->leave(*connection, 200).empty());
  locks_->tick(true, 199 + LockClients::kReconnectMs);
  EXPECT_TRUE(peers_.asked.empty()) << "it has time to connect again";
  locks_->tick(true, 200 + LockClients::kReconnectMs);
  ASSERT_EQ(peers_.asked.size(), 1U);
  EXPECT_EQ(peers_.asked[0].request.mode, kDropClient);
  EXPECT_EQ(peers_.asked[0].request.number, 7U);
  EXPECT_EQ(peers_.asked[0].request.id, kFile);
}

TEST_F(LockClientsTest, ClientThatReportsKeepsItsLocks) {
  const auto connection = connect();
  locks_->tick(true, 0);
  grant(7, *connection, 0);
  auto hold = lock_of(7, *connection, 0);
  hold->request.op = Op::Hold;
  EXPECT_EQ(locks_->note(*hold, LockClients::kSilenceLimitMs - 1), 0);
  locks_->tick(true, LockClients::kSilenceLimitMs + 1);
  EXPECT_TRUE(peers_.asked.empty());
  locks_->tick(true, 2 * LockClients::kSilenceLimitMs - 1);
  EXPECT_EQ(peers_.asked.size(), 1U) << "silent for too long";
}

TEST_F(LockClientsTest, FailedReleaseIsTriedAgain) {
  const auto connection = connect();
  locks_->tick(true, 0);
  grant(7, *connection, 0);
  grant(7, *connection, 0, kOther);
  locks_->tick(true, LockClients::kSilenceLimitMs);
  ASSERT_EQ(peers_.asked.size(), 2U);
  peers_.answer(ESTALE);  // the file is gone
  peers_.answer(EIO);
  const std::int64_t later = std::int64_t{1} << 60;
  locks_->tick(true, later);
  ASSERT_EQ(peers_.asked.size(), 1U);
  EXPECT_EQ(peers_.asked[0].request.id, kOther);
}

TEST_F(LockClientsTest, WaitingRequestRunsWhenFileIsFreed) {
  const auto connection = connect();
  const auto other = connect();
  grant(7, *connection, 0);
  EXPECT_EQ(locks_->take_ready().size(), 0U);
  wait(8, *other, 10);
  const TransferPtr unlock = lock_of(7, *connection, 0, kOther);
  locks_->answered(*unlock);
  EXPECT_TRUE(locks_->take_ready().empty()) << "a different file";
  unlock->request.id = kFile;
  locks_->answered(*unlock);
  const auto ready = locks_->take_ready();
  ASSERT_EQ(ready.size(), 1U);
  EXPECT_EQ(ready[0]->request.number, 8U);
  EXPECT_EQ(ready[0]->answer.error, 0);
}

TEST_F(LockClientsTest, WaitEndsByTimeConnectionOrOtherLeader) {
  const auto connection = connect();
  locks_->tick(true, 0);
  wait(8, *connection, 10);
  EXPECT_TRUE(locks_->tick(true, 9 + LockClients::kWaitMs).empty());
  auto ended = locks_->tick(true, 10 + LockClients::kWaitMs);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0]->answer.error, EAGAIN);
  EXPECT_FALSE(locks_->must_wait(*ended[0], 10 + LockClients::kWaitMs)) << "only once";
  wait(8, *connection, 20);
  EXPECT_EQ(locks_->leave(*connection, 30).size(), 1U);
  wait(8, *connection, 40);
  EXPECT_EQ(locks_->tick(false, 50).size(), 1U) << "this server no longer leads";
}

TEST_F(LockClientsTest, StoredLocksWaitForTheirClients) {
  ASSERT_EQ(store_->put_locks(kFile, {{7, 1, 0, 10, 0, kExclusiveLock}}), 0);
  locks_->tick(true, 1'000);
  locks_->tick(true, 999 + LockClients::kReconnectMs);
  EXPECT_TRUE(peers_.asked.empty());
  locks_->tick(true, 1'000 + LockClients::kReconnectMs);
  ASSERT_EQ(peers_.asked.size(), 1U);
  EXPECT_EQ(peers_.asked[0].request.number, 7U);
}

}  // namespace
}  // namespace score::pario
