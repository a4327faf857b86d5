// Tests remote memory between processes of a node: pieces through the pool, pieces taken back from
// a receiver that does not look, and the fallback where the kernel refuses to copy.
#include "pmlib/shmem/shmem.hpp"

#include "tests/support/pmlib/test_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <numeric>
#include <poll.h>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::pm {
namespace {

using Over = TestJob::Over;

// Connects two ranks with a megabyte each, which the other may write and read.
class NearMemory : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 1 << 20;

  explicit NearMemory(Over over = Over::Shmem) : job_(over, 2) {
    std::iota(here_.begin(), here_.end(), std::uint8_t{3});
    std::uint64_t offset = 0;
    EXPECT_EQ(job_[0].add_region(here_.data(), kBytes, local_, offset), 0);
    EXPECT_EQ(job_[1].add_region(there_.data(), kBytes, remote_, offset), 0);
  }

  RegionName remote(std::uint64_t offset = 0) {
    return {remote_, job_[1].segment().region(remote_).nonce, offset};
  }

  TestJob job_;
  std::vector<std::uint8_t> here_ = std::vector<std::uint8_t>(kBytes);
  std::vector<std::uint8_t> there_ = std::vector<std::uint8_t>(kBytes);
  std::uint32_t local_ = 0, remote_ = 0;
};

class NearCopies : public NearMemory {
 protected:
  NearCopies() : NearMemory(Over::Copies) {}
};

TEST_F(NearMemory, PollingReceiverStoresWrite) {
  OperationId op = 0;
  ASSERT_EQ(job_[0].write(1, local_, 0, remote(), 8192, op), 0);
  EXPECT_EQ(job_[0].test(op), EINPROGRESS);
  EXPECT_NE(there_[0], here_[0]);
  job_[1].progress();
  EXPECT_TRUE(std::equal(there_.begin(), there_.begin() + 8192, here_.begin()));
  job_[0].progress();
  EXPECT_EQ(job_[0].test(op), 0);
}

TEST_F(NearMemory, StoredWriteEndsWithNextWrite) {
  OperationId first = 0, second = 0;
  ASSERT_EQ(job_[0].write(1, local_, 0, remote(), 8192, first), 0);
  job_[1].progress();
  EXPECT_EQ(job_[0].test(first), EINPROGRESS);
  ASSERT_EQ(job_[0].write(1, local_, 8192, remote(8192), 8192, second), 0);
  EXPECT_EQ(job_[0].test(first), 0);
  EXPECT_EQ(job_[0].test(second), EINPROGRESS);
  EXPECT_EQ(job_.finish(0, second), 0);
  EXPECT_TRUE(std::equal(there_.begin(), there_.begin() + 16'384, here_.begin()));
}

TEST_F(NearMemory, WritesFillAllEntriesThenUseKernel) {
  std::vector<OperationId> ops(kNearTransfers);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ASSERT_EQ(job_[0].write(1, local_, 8192 * i, remote(8192 * i), 8192, ops[i]), 0);
  }
  // One more write goes through the kernel.
  OperationId more = 0;
  ASSERT_EQ(job_[0].write(1, local_, 8192 * ops.size(), remote(8192 * ops.size()), 10, more), 0);
  EXPECT_EQ(job_[0].test(more), 0);
  for (const OperationId op : ops) EXPECT_EQ(job_.finish(0, op), 0);
  EXPECT_TRUE(std::equal(there_.begin(), there_.begin() + 8192 * kNearTransfers, here_.begin()));
  EXPECT_TRUE(job_[0].is_quiet());
}

TEST_F(NearMemory, WriteEndsWithoutReceiverProgress) {
  OperationId op = 0;
  ASSERT_EQ(job_[0].write(1, local_, 5, remote(7), 900'000, op), 0);
  int result = EINPROGRESS;
  for (int i = 0; i < 100'000 && (result = job_[0].test(op)) == EINPROGRESS; ++i) {
    job_[0].progress();
  }
  EXPECT_EQ(result, 0);
  EXPECT_TRUE(std::equal(there_.begin() + 7, there_.begin() + 900'007, here_.begin() + 5));
  // The entries that the receiver finds later are void.
  std::fill(there_.begin(), there_.end(), std::uint8_t{0});
  job_[1].progress();
  EXPECT_EQ(std::count(there_.begin(), there_.end(), 0), static_cast<std::ptrdiff_t>(kBytes));
  EXPECT_TRUE(job_[0].is_quiet());
  EXPECT_TRUE(job_[1].is_quiet());
}

TEST_F(NearMemory, AfterSomeMegabytesTheKernelIsTried) {
  OperationId op = 0;
  for (std::uint64_t bytes = 0; bytes < CopyChoice::kTurnBytes; bytes += kBytes) {
    ASSERT_EQ(job_[0].write(1, local_, 0, remote(), kBytes, op), 0);
    EXPECT_EQ(job_[0].test(op), EINPROGRESS);
    EXPECT_EQ(job_.finish(0, op), 0);
  }
  std::fill(there_.begin(), there_.end(), std::uint8_t{0});
  ASSERT_EQ(job_[0].write(1, local_, 0, remote(), kBytes, op), 0);
  EXPECT_EQ(job_[0].test(op), 0);
  EXPECT_EQ(there_, here_);
}

TEST_F(NearMemory, WriteToSleepingReceiverEndsAtOnce) {
  job_[1].segment().header().sleeping = 1;
  OperationId op = 0;
  ASSERT_EQ(job_[0].write(1, local_, 0, remote(), 8192, op), 0);
  EXPECT_EQ(job_[0].test(op), 0);
  EXPECT_TRUE(std::equal(there_.begin(), there_.begin() + 8192, here_.begin()));
}

TEST_F(NearMemory, DroppedRegionIsNotWritten) {
  OperationId op = 0;
  ASSERT_EQ(job_[0].write(1, local_, 0, remote(), 8192, op), 0);
  ASSERT_EQ(job_[1].drop_region(remote_), 0);
  job_[1].progress();
  job_[0].progress();
  EXPECT_EQ(job_[0].test(op), EACCES);
  EXPECT_EQ(there_[0], 0);
}

TEST_F(NearMemory, WritesPassMessagesWithoutLosingThem) {
  job_.send(0, 1, "first");
  OperationId op = 0;
  ASSERT_EQ(job_[0].write(1, local_, 0, remote(), 60'000, op), 0);
  job_.send(0, 1, "second");
  EXPECT_EQ(job_.finish(0, op), 0);
  EXPECT_TRUE(std::equal(there_.begin(), there_.begin() + 60'000, here_.begin()));
  EXPECT_EQ(job_.receive(1), "first");
  EXPECT_EQ(job_.receive(1), "second");
}

TEST_F(NearMemory, ManySmallWritesArriveWhole) {
  std::vector<OperationId> ops(64);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    int error = ENOBUFS;
    job_.run_until([&] {
      error = job_[0].write(1, local_, i * 1000, remote(i * 1000), 1000, ops[i]);
      return error != ENOBUFS;
    });
    ASSERT_EQ(error, 0);
  }
  for (const OperationId op : ops) EXPECT_EQ(job_.finish(0, op), 0);
  EXPECT_TRUE(std::equal(there_.begin(), there_.begin() + 64'000, here_.begin()));
}

TEST_F(NearCopies, WithoutKernelNothingMovesByItself) {
  OperationId write = 0, read = 0;
  ASSERT_EQ(job_[0].write(1, local_, 0, remote(), kBytes / 2, write), 0);
  ASSERT_EQ(job_[0].read(1, local_, kBytes / 2, remote(), 4096, read), 0);
  for (int i = 0; i < 10'000; ++i) job_[0].progress();
  EXPECT_EQ(job_[0].test(write), EINPROGRESS);
  EXPECT_EQ(job_[0].test(read), EINPROGRESS);
  EXPECT_EQ(std::count(there_.begin(), there_.end(), 0), static_cast<std::ptrdiff_t>(kBytes));
  EXPECT_EQ(job_[0].drop_region(local_), EBUSY);
  EXPECT_EQ(job_.finish(0, write), 0);
  EXPECT_EQ(job_.finish(0, read), 0);
  EXPECT_TRUE(std::equal(there_.begin(), there_.begin() + kBytes / 2, here_.begin()));
}

TEST_F(NearCopies, ReadsBeyondTransferLimitAreServed) {
  std::vector<std::uint8_t> back(kBytes);
  std::uint32_t target = 0;
  std::uint64_t offset = 0;
  ASSERT_EQ(job_[0].add_region(back.data(), kBytes, target, offset), 0);
  std::iota(there_.begin(), there_.end(), std::uint8_t{9});
  std::vector<OperationId> ops(100);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ASSERT_EQ(job_[0].read(1, target, i * 10'000, remote(i * 10'000), 10'000, ops[i]), 0);
  }
  for (const OperationId op : ops) EXPECT_EQ(job_.finish(0, op), 0);
  EXPECT_TRUE(std::equal(back.begin(), back.begin() + 1'000'000, there_.begin()));
}

// Forbids the system calls as a container's filter does.
bool forbid_crossing() {
  constexpr auto kNumber = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(code), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(NearMemoryForbidden, TransfersOfAnyLengthWorkUnderSeccomp) {
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    if (!forbid_crossing()) _exit(77);
    TestJob job(Over::Shmem, 2);
    std::vector<std::uint8_t> here(1 << 20, 5), there(1 << 20), back(1 << 20);
    std::uint32_t local = 0, remote = 0, target = 0;
    std::uint64_t offset = 0;
    job[0].add_region(here.data(), here.size(), local, offset);
    job[1].add_region(there.data(), there.size(), remote, offset);
    job[0].add_region(back.data(), back.size(), target, offset);
    const RegionName name{remote, job[1].segment().region(remote).nonce, 0};
    OperationId op = 0;
    bool good = job[0].write(1, local, 0, name, 1 << 20, op) == 0 && job.finish(0, op) == 0;
    good = good && job[0].read(1, target, 0, name, 1 << 20, op) == 0 && job.finish(0, op) == 0;
    _exit(good && there == here && back == here ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "seccomp is not available";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(NearCopies, DeadPeerEndsItsTransfers) {
  OperationId op = 0;
  ASSERT_EQ(job_[0].write(1, local_, 0, remote(), 8192, op), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) pause();
  TestJob other(Over::Copies, 2);
  other[1].segment().header().owner_pid = static_cast<std::uint32_t>(child);
  std::uint32_t local = 0;
  std::uint64_t offset = 0;
  ASSERT_EQ(other[0].add_region(here_.data(), kBytes, local, offset), 0);
  std::uint32_t there = 0;
  ASSERT_EQ(other[1].add_region(there_.data(), kBytes, there, offset), 0);
  const RegionName name{there, other[1].segment().region(there).nonce, 0};
  ASSERT_EQ(other[0].write(1, local, 0, name, kBytes, op), 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  int result = EINPROGRESS;
  for (int i = 0; i < 1000 && (result = other[0].test(op)) == EINPROGRESS; ++i) {
    other[0].wait(10'000);
  }
  EXPECT_EQ(result, EHOSTDOWN);
  EXPECT_TRUE(other[0].is_quiet());
  EXPECT_EQ(other[0].drop_region(local), 0);
}

TEST_F(NearCopies, MutualWritesAndReadsDoNotDeadlock) {
  constexpr std::uint32_t kWrites = 64, kPiece = 128 << 10;  // all transfers that exist
  std::array<std::vector<OperationId>, 2> ops;
  const std::array<std::uint32_t, 2> regions{local_, remote_};
  const auto name = [&](std::size_t rank) {
    return RegionName{regions[rank], job_[rank].segment().region(regions[rank]).nonce, 0};
  };
  for (std::uint32_t i = 0; i <= kWrites; ++i) {
    for (std::uint32_t rank : {0u, 1u}) {
      OperationId op = 0;
      Endpoint& end = job_[rank];
      const int error = i < kWrites
                            ? end.write(1 - rank, regions[rank], 0, name(1 - rank), kPiece, op)
                            : end.read(1 - rank, regions[rank], 0, name(1 - rank), kPiece, op);
      ASSERT_EQ(error, 0);
      ops[rank].push_back(op);
    }
  }
  for (std::uint32_t rank : {0u, 1u}) {
    for (const OperationId op : ops[rank]) EXPECT_EQ(job_.finish(rank, op), 0);
  }
}

TEST_F(NearCopies, ClosedPeerFailsOldAndNewOperations) {
  OperationId large = 0, op = 0;
  ASSERT_EQ(job_[0].announce(1, local_, 0, 4096, large), 0);
  const RegionName name = remote();
  job_.close_rank(1);
  int result = EINPROGRESS;
  for (int i = 0; i < 1000 && (result = job_[0].test(large)) == EINPROGRESS; ++i) {
    job_[0].wait(10'000);
  }
  EXPECT_EQ(result, EHOSTDOWN);
  EXPECT_EQ(job_[0].write(1, local_, 0, name, 4096, op), EHOSTDOWN);
  EXPECT_EQ(job_[0].read(1, local_, 0, name, 4096, op), EHOSTDOWN);
  EXPECT_TRUE(job_[0].is_quiet());
}

TEST_F(NearMemory, ClosedProcessIsNotWritten) {
  const RegionName name = remote();
  OperationId op = 0;
  job_.send(0, 1, "they know each other");
  job_.close_rank(1);
  EXPECT_EQ(job_[0].write(1, local_, 0, name, 4096, op), EHOSTDOWN);
  EXPECT_EQ(std::count(there_.begin(), there_.end(), 0), static_cast<std::ptrdiff_t>(kBytes));
}

// Makes three ranks here; rank 1 has the process id of a child that can be killed.
class NearEnds : public testing::Test {
 protected:
  NearEnds() : job_(Over::Shmem, 3), child_(fork()) {
    if (child_ == 0) {
      for (;;) pause();
    }
    job_[1].segment().header().owner_pid = static_cast<std::uint32_t>(child_);
  }

  ~NearEnds() override { end_child(); }

  void end_child() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }

  // Sends messages from rank 0 to rank 1 that are never released, as many as there are buffers.
  void fill_pool() {
    std::byte* buffer = nullptr;
    int error = 0;
    while ((error = job_[0].get_send_buffer(1, 1000, &buffer)) == 0) {
      ASSERT_EQ(job_[0].send(), 0);
    }
    ASSERT_EQ(error, ENOBUFS);
    ASSERT_EQ(job_[0].get_send_buffer(2, 1000, &buffer), ENOBUFS);
  }

  void expect_room_for_others() {
    std::byte* buffer = nullptr;
    int error = ENOBUFS;
    for (int i = 0; i < 1000 && error == ENOBUFS; ++i) {
      job_[0].wait(10'000);
      error = job_[0].get_send_buffer(2, 1000, &buffer);
    }
    EXPECT_EQ(error, 0);
  }

  bool can_sleep() {
    for (int i = 0; i < 1000; ++i) {
      ReceivedMessage message;
      job_[0].receive(message);
      if (job_[0].wait(5000) == ETIMEDOUT) return true;
    }
    return false;
  }

  TestJob job_;
  pid_t child_;
};

TEST_F(NearEnds, BuffersOfDeadPeerAreFreed) {
  fill_pool();
  end_child();
  expect_room_for_others();
}

TEST_F(NearEnds, BuffersOfClosedPeerAreFreed) {
  fill_pool();
  job_.close_rank(1);
  expect_room_for_others();
}

TEST_F(NearEnds, SleeperNoticesDeathOfAnyPeer) {
  std::int64_t timeout_us = 0;
  job_.send(0, 2, "first");
  ASSERT_EQ(job_[0].before_select(timeout_us), 0);
  job_[0].after_select();
  job_.send(0, 1, "then");
  ASSERT_EQ(job_[0].before_select(timeout_us), 0);
  end_child();
  pollfd ready{job_[0].poll_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 10'000), 1);
  job_[0].after_select();
}

TEST_F(NearEnds, RankCanSleepAfterPeerDeath) {
  job_.send(0, 1, "hello");
  ASSERT_TRUE(can_sleep());
  end_child();
  EXPECT_TRUE(can_sleep());
}

TEST_F(NearEnds, RankCanSleepAfterPeerHasLeft) {
  job_.send(0, 1, "hello");
  ASSERT_TRUE(can_sleep());
  job_.close_rank(1);
  end_child();
  EXPECT_TRUE(can_sleep());
}

TEST_F(NearEnds, MessagesOfDeadPeerAreReceived) {
  job_.send(0, 1, "hello");
  const std::string longer(1000, 'x');
  job_.send(1, 0, "short");
  job_.send(1, 0, longer);
  job_.send(1, 0, "last");
  end_child();
  for (int i = 0; i < 1000 && job_[0].segment().peer(1).dead == 0; ++i) job_[0].wait(1000);
  ASSERT_EQ(job_[0].segment().peer(1).dead, 1);
  EXPECT_EQ(job_.receive(0), "short");
  EXPECT_EQ(job_.receive(0), longer);
  EXPECT_EQ(job_.receive(0), "last");
  ReceivedMessage message;
  EXPECT_EQ(job_[0].receive(message), EHOSTDOWN);
}

}  // namespace
}  // namespace score::pm
