// These tests run more ranks than processors. A ring of many processes makes progress because ranks
// that wait sleep.
#include "tests/support/pmlib/test_job.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace score::pm {
namespace {

using Over = TestJob::Over;

bool send_number(Endpoint& e, std::uint32_t to, std::uint32_t value) {
  std::byte* buffer = nullptr;
  int error = 0;
  while ((error = e.get_send_buffer(to, sizeof value, &buffer)) == ENOBUFS) e.wait(1000);
  if (error != 0) return false;
  std::memcpy(buffer, &value, sizeof value);
  while ((error = e.send()) == ENOBUFS) e.wait(1000);
  return error == 0;
}

bool receive_number(Endpoint& e, std::uint32_t& value, std::uint32_t& source) {
  ReceivedMessage m;
  for (int error = 0; (error = e.receive(m)) != 0;) {
    if (error != EAGAIN || e.wait(30'000'000) == ETIMEDOUT) return false;
  }
  std::memcpy(&value, m.bytes.data(), sizeof value);
  source = m.source;
  e.release(m);
  return true;
}

// In each round every rank sends to each other rank, then waits until it has this round's number
// from each. A fast rank may be ahead, but no rank's numbers may be missing or out of order.
bool all_to_all(Endpoint& e, std::uint32_t rounds) {
  std::vector<std::uint32_t> next(e.size());
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::uint32_t k = 1; k < e.size(); ++k) {
      if (!send_number(e, (e.rank() + k) % e.size(), round)) return false;
    }
    const auto lags = [&](std::uint32_t rank) { return rank != e.rank() && next[rank] <= round; };
    for (std::uint32_t rank = 0; rank < e.size(); ++rank) {
      while (lags(rank)) {
        std::uint32_t value = 0, source = 0;
        if (!receive_number(e, value, source) || value != next[source]++) return false;
      }
    }
  }
  while (!e.is_quiet()) e.wait(1000);
  return true;
}

// Passes a token around the ring `laps` times.
bool pass_token(Endpoint& e, std::uint32_t laps) {
  const std::uint32_t next = (e.rank() + 1) % e.size();
  for (std::uint32_t lap = 0; lap < laps; ++lap) {
    std::uint32_t value = 0, source = 0;
    if (e.rank() == 0 && !send_number(e, next, lap)) return false;
    if (!receive_number(e, value, source) || value != lap) return false;
    if (e.rank() != 0 && !send_number(e, next, value)) return false;
  }
  while (!e.is_quiet()) e.wait(1000);
  return e.counters().sleeps > 0;
}

template <class Body>
void run_ranks(Over over, std::uint32_t size, Body body) {
  TestJob job(over, size);
  std::vector<pid_t> children;
  for (std::uint32_t i = 0; i < size; ++i) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      alarm(120);  // a hang ends as a failure
      job[i].segment().header().owner_pid = static_cast<std::uint32_t>(getpid());
      const bool good = body(job[i]);
      job.close_rank(i);  // the other ranks see a rank that leaves silently as dead
      _exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
}

class Crowd : public testing::TestWithParam<Over> {};

INSTANTIATE_TEST_SUITE_P(Devices, Crowd, testing::Values(Over::Shmem, Over::Udp),
                         [](const auto& parameter) {
                           return parameter.param == Over::Shmem ? "Shmem" : "Udp";
                         });

TEST_P(Crowd, ManyProcessesPassTokenAndSleep) {
  run_ranks(GetParam(), 64, [](Endpoint& e) { return pass_token(e, 20); });
}

TEST_P(Crowd, ManyProcessesExchangeAllToAll) {
  run_ranks(GetParam(), 64, [](Endpoint& e) { return all_to_all(e, 3); });
}

bool sleeps_within(Endpoint& e, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (e.segment().header().sleeping.load() == 0) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// A switch stops and continues all ranks of a gang in this way: a rank that sleeps need not poll
// for input.
TEST_P(Crowd, WaitContinuesAfterProcessStop) {
  TestJob job(GetParam(), 2);
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    alarm(120);
    job[0].segment().header().owner_pid = static_cast<std::uint32_t>(getpid());
    std::uint32_t value = 0, source = 0;
    const bool good = receive_number(job[0], value, source) && value == 7;
    _exit(good && job[0].counters().sleeps == 1 ? 0 : 1);
  }
  EXPECT_TRUE(sleeps_within(job[0], std::chrono::seconds(60)));
  for (int i = 0; i < 10; ++i) {
    int status = 0;
    kill(pid, SIGSTOP);
    ASSERT_EQ(waitpid(pid, &status, WUNTRACED), pid);
    ASSERT_TRUE(WIFSTOPPED(status));
    kill(pid, SIGCONT);
    ASSERT_EQ(waitpid(pid, &status, WCONTINUED), pid);
  }
  EXPECT_TRUE(send_number(job[1], 0, 7));
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

// A server that waits in its own loop does this: before each sleep the kernel stores the rest of
// its writes. That must end the writes, because no event does.
TEST(Waiting, WritesEndWhenWriterOnlyPreparesToSleep) {
  TestJob job(Over::Shmem, 2);
  std::vector<char> from(1 << 20, 'x');
  std::vector<char> to(1 << 20, 'y');
  std::uint32_t local = 0, remote = 0;
  std::uint64_t local_offset = 0, remote_offset = 0;
  ASSERT_EQ(job[0].add_region(from.data(), from.size(), local, local_offset), 0);
  ASSERT_EQ(job[1].add_region(to.data(), to.size(), remote, remote_offset), 0);
  const std::uint32_t nonce = job[1].segment().region(remote).nonce;
  for (const std::uint32_t length : {4096U, 8192U, 100'000U}) {
    std::vector<OperationId> open(8);
    for (std::size_t i = 0; i < open.size(); ++i) {
      const RegionName name{remote, nonce, remote_offset + i * length};
      ASSERT_EQ(job[0].write(1, local, local_offset + i * length, name, length, open[i]), 0);
    }
    for (int turn = 0; turn < 50 && !open.empty(); ++turn) {
      std::int64_t timeout_us = 0;
      if (job[0].before_select(timeout_us) == 0) job[0].after_select();
      std::erase_if(open, [&](OperationId op) { return job[0].test(op) == 0; });
    }
    EXPECT_TRUE(open.empty()) << length;
  }
  EXPECT_EQ(std::string(to.data(), 800'000), std::string(800'000, 'x'));
}

}  // namespace
}  // namespace score::pm
