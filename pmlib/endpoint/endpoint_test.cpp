// These tests check properties that hold over every device, and those of shared memory and waiting.
#include "pmlib/endpoint/endpoint.hpp"

#include "tests/support/pmlib/test_job.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <numeric>
#include <sys/wait.h>
#include <unistd.h>

namespace score::pm {
namespace {

using Over = TestJob::Over;

class EveryDevice : public testing::TestWithParam<Over> {};

INSTANTIATE_TEST_SUITE_P(Devices, EveryDevice,
                         testing::Values(Over::Shmem, Over::Udp, Over::Copies),
                         [](const auto& parameter) {
                           return parameter.param == Over::Shmem ? "Shmem"
                                  : parameter.param == Over::Udp ? "Udp"
                                                                 : "Copies";
                         });

TEST_P(EveryDevice, MessagesArriveInOrderFromEachRank) {
  TestJob job(GetParam(), 3);
  for (int i = 0; i < 300; ++i) {
    job.send(0, 2, "zero " + std::to_string(i));
    job.send(1, 2, "one " + std::string(static_cast<std::size_t>(i), 'x') + std::to_string(i));
    for (int k = 0; k < 2; ++k) {
      std::uint32_t source = 9;
      const std::string text = job.receive(2, &source);
      const std::string end = std::to_string(i);
      EXPECT_EQ(text.substr(text.size() - end.size()), end);
      EXPECT_EQ(text[0], source == 0 ? 'z' : 'o');
    }
  }
  job.run_until([&] { return job[0].is_quiet() && job[1].is_quiet() && job[2].is_quiet(); });
}

TEST_P(EveryDevice, RankMaySendToItself) {
  TestJob job(GetParam(), 2);
  job.send(1, 1, "me");
  EXPECT_EQ(job.receive(1), "me");
}

TEST_P(EveryDevice, EmptyAndLongestMessagesWork) {
  TestJob job(GetParam(), 2);
  const std::string longest(job[0].message_bytes(1), 'l');
  job.send(0, 1, "");
  job.send(0, 1, longest);
  EXPECT_EQ(job.receive(1), "");
  EXPECT_EQ(job.receive(1), longest);
  std::byte* buffer = nullptr;
  EXPECT_EQ(job[0].get_send_buffer(1, job[0].message_bytes(1) + 1, &buffer), EMSGSIZE);
  EXPECT_EQ(job[0].get_send_buffer(2, 1, &buffer), EINVAL);
}

TEST_P(EveryDevice, SlowReceiverDelaysSenderWithoutLoss) {
  TestJob job(GetParam(), 2);
  std::byte* buffer = nullptr;
  int sent = 0;
  // The test sends as many messages as fit anywhere; then the sender has to wait.
  for (; sent < 20'000; ++sent) {
    if (job[0].get_send_buffer(1, 4, &buffer) != 0) break;
    std::memcpy(buffer, &sent, 4);
    if (job[0].send() != 0) {
      job[0].cancel_send();
      break;
    }
    job[0].progress();
  }
  EXPECT_LT(sent, 20'000);
  for (int i = 0; i < sent; ++i) {
    const std::string text = job.receive(1);
    int number = -1;
    std::memcpy(&number, text.data(), 4);
    ASSERT_EQ(number, i);
  }
}

TEST_P(EveryDevice, RemoteWriteAndReadMoveBytes) {
  TestJob job(GetParam(), 2);
  std::vector<std::uint8_t> here(1'000'000), there(1'000'000), back(1'000'000);
  std::iota(here.begin(), here.end(), std::uint8_t{1});
  std::uint32_t local = 0, remote = 0, target = 0;
  std::uint64_t offset = 0;
  ASSERT_EQ(job[0].add_region(here.data(), here.size(), local, offset), 0);
  ASSERT_EQ(job[1].add_region(there.data(), there.size(), remote, offset), 0);
  ASSERT_EQ(job[0].add_region(back.data(), back.size(), target, offset), 0);
  const std::uint32_t nonce = job[1].segment().region(remote).nonce;
  OperationId op = 0;
  ASSERT_EQ(job[0].write(1, local, 10, {remote, nonce, 20}, 900'000, op), 0);
  EXPECT_EQ(job.finish(0, op), 0);
  EXPECT_EQ(std::memcmp(here.data() + 10, there.data() + 20, 900'000), 0);
  EXPECT_EQ(there[19], 0);
  EXPECT_EQ(there[900'020], 0);
  ASSERT_EQ(job[0].read(1, target, 5, {remote, nonce, 20}, 900'000, op), 0);
  EXPECT_EQ(job.finish(0, op), 0);
  EXPECT_EQ(std::memcmp(here.data() + 10, back.data() + 5, 900'000), 0);
  EXPECT_EQ(job[0].test(op), EINVAL);
}

TEST_P(EveryDevice, MemoryThatIsNotRegisteredIsRefused) {
  TestJob job(GetParam(), 2);
  std::vector<std::uint8_t> here(5000), there(5000);
  std::uint32_t local = 0, remote = 0;
  std::uint64_t offset = 0;
  ASSERT_EQ(job[0].add_region(here.data(), here.size(), local, offset), 0);
  ASSERT_EQ(job[1].add_region(there.data(), there.size(), remote, offset), 0);
  const std::uint32_t nonce = job[1].segment().region(remote).nonce;
  here.assign(5000, 7);
  OperationId op = 0;
  for (const RegionName bad : {RegionName{remote, nonce + 1, 0}, RegionName{remote + 1, nonce, 0},
                               RegionName{remote, nonce, 1}, RegionName{9999, nonce, 0}}) {
    ASSERT_EQ(job[0].write(1, local, 0, bad, 5000, op), 0);
    EXPECT_EQ(job.finish(0, op), EACCES);
    ASSERT_EQ(job[0].read(1, local, 0, bad, 5000, op), 0);
    EXPECT_EQ(job.finish(0, op), EACCES);
  }
  ASSERT_EQ(job[1].drop_region(remote), 0);
  ASSERT_EQ(job[0].write(1, local, 0, {remote, nonce, 0}, 100, op), 0);
  EXPECT_EQ(job.finish(0, op), EACCES);
  job.send(0, 1, "the order goes on");
  EXPECT_EQ(job.receive(1), "the order goes on");
}

TEST_P(EveryDevice, LargeMessagesKeepOrderAndEndWhenFetched) {
  TestJob job(GetParam(), 2);
  std::vector<std::uint8_t> here(300'000, 42), there(300'000);
  std::uint32_t local = 0, target = 0;
  std::uint64_t offset = 0;
  ASSERT_EQ(job[0].add_region(here.data(), here.size(), local, offset), 0);
  ASSERT_EQ(job[1].add_region(there.data(), there.size(), target, offset), 0);
  OperationId sending = 0, fetching = 0;
  job.send(0, 1, "before");
  ASSERT_EQ(job[0].announce(1, local, 0, here.size(), sending), 0);
  job.send(0, 1, "after");
  EXPECT_EQ(job.receive(1), "before");
  ReceivedMessage message;
  job.run_until([&] { return job[1].receive(message) == 0; });
  ASSERT_EQ(message.kind, FrameKind::Large);
  LargeHeader large;
  std::memcpy(&large, message.bytes.data(), sizeof large);
  EXPECT_EQ(large.length, here.size());
  EXPECT_EQ(job[0].test(sending), EINPROGRESS);
  ASSERT_EQ(job[1].fetch(0, large, target, 0, fetching), 0);
  job[1].release(message);
  EXPECT_EQ(job.finish(1, fetching), 0);
  EXPECT_EQ(there, here);
  EXPECT_EQ(job.finish(0, sending), 0);
  EXPECT_EQ(job.receive(1), "after");
}

TEST_P(EveryDevice, HeldMessagesMayBeReleasedInAnyOrder) {
  TestJob job(GetParam(), 2);
  std::vector<ReceivedMessage> held(10);
  for (int i = 0; i < 10; ++i) job.send(0, 1, std::string(100, static_cast<char>('a' + i)));
  for (auto& m : held) job.run_until([&] { return job[1].receive(m) == 0; });
  for (const int i : {3, 0, 9, 1, 2, 8, 7, 4, 6, 5}) {
    const auto& m = held[static_cast<std::size_t>(i)];
    EXPECT_EQ(static_cast<char>(m.bytes[99]), 'a' + i);
    job[1].release(m);
    job[1].release(m);  // a second release is harmless
  }
  job.run_until([&] { return job[0].is_quiet() && job[1].is_quiet(); });
}

TEST_P(EveryDevice, SavedContextContinuesWhereItStopped) {
  TestJob job(GetParam(), 2);
  for (int i = 0; i < 5; ++i) job.send(0, 1, std::to_string(i));
  // Both stop at the same moment, with messages in flight and received.
  EXPECT_EQ(job.receive(1), "0");
  std::vector<std::vector<std::byte>> images;
  for (int rank : {0, 1}) {
    auto& e = job[static_cast<std::size_t>(rank)];
    auto* memory = static_cast<std::byte*>(::operator new (e.image_bytes(), std::align_val_t{64}));
    ASSERT_EQ(e.save({memory, e.image_bytes()}), 0);
    ASSERT_EQ(e.restore({memory, e.image_bytes()}), 0);
    ::operator delete (memory, std::align_val_t{64});
  }
  for (int i = 1; i < 5; ++i) EXPECT_EQ(job.receive(1), std::to_string(i));
  job.send(1, 0, "back");
  EXPECT_EQ(job.receive(0), "back");
}

TEST_P(EveryDevice, DamagedImageIsRefused) {
  TestJob job(GetParam(), 2);
  auto& e = job[0];
  auto* memory = static_cast<std::byte*>(::operator new (e.image_bytes(), std::align_val_t{64}));
  ASSERT_EQ(e.save({memory, e.image_bytes()}), 0);
  memory[0] ^= std::byte{1};
  EXPECT_EQ(e.restore({memory, e.image_bytes()}), EINVAL);
  EXPECT_EQ(e.restore({memory, 100}), EINVAL);
  ::operator delete (memory, std::align_val_t{64});
  std::byte* buffer = nullptr;
  ASSERT_EQ(e.get_send_buffer(1, 1, &buffer), 0);
  std::vector<std::byte> room(e.image_bytes());
  EXPECT_EQ(e.save(room), EBUSY);
}

TEST_P(EveryDevice, WaitEndsAfterTimeout) {
  TestJob job(GetParam(), 2, {.spin_us = 0});
  EXPECT_EQ(job[0].wait(2000), ETIMEDOUT);
  EXPECT_GE(job[0].counters().sleeps, 1u);
}

// The wait must end even if its time is over before the rank has gone to sleep, or it would sleep
// forever.
TEST_P(EveryDevice, WaitEndsForAnyShortTimeout) {
  TestJob job(GetParam(), 2, {.spin_us = 0});
  for (int i = 0; i < 2000; ++i) {
    const int error = job[0].wait(i % 4);
    EXPECT_TRUE(error == ETIMEDOUT || error == 0) << error;
  }
}

// Runs `child` as rank 1 in a second process and `parent` as rank 0 here.
template <class Child, class Parent>
void in_two_processes(Over over, Child child, Parent parent) {
  TestJob job(over, 2, {.spin_us = 0});
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    job[1].segment().header().owner_pid = static_cast<std::uint32_t>(getpid());
    child(job[1]);
    _exit(0);
  }
  job[0].segment().header().owner_pid = static_cast<std::uint32_t>(getpid());
  parent(job[0], pid);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

void send_to(Endpoint& e, std::uint32_t peer, std::uint32_t value) {
  std::byte* buffer = nullptr;
  while (e.get_send_buffer(peer, sizeof value, &buffer) == ENOBUFS) e.wait(1000);
  std::memcpy(buffer, &value, sizeof value);
  while (e.send() == ENOBUFS) e.wait(1000);
}

TEST_P(EveryDevice, SleepingRanksWakeEachOther) {
  constexpr std::uint32_t kRounds = 500;
  in_two_processes(
      GetParam(),
      [](Endpoint& e) {
        for (ReceivedMessage m;;) {
          if (e.receive(m) != 0) {
            e.wait(-1);
            continue;
          }
          std::uint32_t value = 0;
          std::memcpy(&value, m.bytes.data(), sizeof value);
          e.release(m);
          send_to(e, 0, value + 1);
        }
      },
      [](Endpoint& e, pid_t) {
        for (std::uint32_t i = 0; i < kRounds; ++i) {
          send_to(e, 1, i);
          ReceivedMessage m;
          int spins = 0;
          while (e.receive(m) != 0 && ++spins < 1000) ASSERT_NE(e.wait(5'000'000), ETIMEDOUT);
          std::uint32_t value = 0;
          std::memcpy(&value, m.bytes.data(), sizeof value);
          ASSERT_EQ(value, i + 1);
          e.release(m);
        }
        EXPECT_GT(e.counters().sleeps, 0u);
      });
}

TEST(Shmem, DeadPeerIsReportedOnceAndNothingHangs) {
  in_two_processes(
      Over::Shmem, [](Endpoint& e) { send_to(e, 0, 1), pause(); },
      [](Endpoint& e, pid_t pid) {
        ReceivedMessage m;
        while (e.receive(m) != 0) e.wait(1000);
        e.release(m);
        std::byte* buffer = nullptr;
        ASSERT_EQ(e.get_send_buffer(1, 1, &buffer), 0);
        ASSERT_EQ(e.send(), 0);
        kill(pid, SIGKILL);
        int result = EAGAIN;
        for (int i = 0; i < 1000 && (result = e.receive(m)) == EAGAIN; ++i) e.wait(10'000);
        EXPECT_EQ(result, EHOSTDOWN);
        EXPECT_EQ(m.source, 1u);
        EXPECT_EQ(e.receive(m), EAGAIN);
        EXPECT_EQ(e.get_send_buffer(1, 1, &buffer), EHOSTDOWN);
      });
}

TEST(Udp, DeadPeerIsReportedWithinBound) {
  // The timeouts take 50 ms in total instead of ten seconds.
  EndpointOptions options{.spin_us = 0};
  options.channel.limits.rto_max = 4000;
  options.channel.limits.rto_initial = 1000;
  options.channel.tries_before_dead = 12;
  TestJob job(Over::Udp, 2, options);
  std::vector<std::uint8_t> memory(100'000);
  std::uint32_t region = 0;
  std::uint64_t offset = 0;
  ASSERT_EQ(job[0].add_region(memory.data(), memory.size(), region, offset), 0);
  OperationId op = 0;
  ASSERT_EQ(job[0].write(1, region, 0, {0, 1, 0}, 100'000, op), 0);
  job.close_rank(1);
  ReceivedMessage m;
  int result = EAGAIN;
  for (int i = 0; i < 1000 && (result = job[0].receive(m)) == EAGAIN; ++i) job[0].wait(10'000);
  EXPECT_EQ(result, EHOSTDOWN);
  EXPECT_EQ(job[0].test(op), EHOSTDOWN);
  std::byte* buffer = nullptr;
  EXPECT_EQ(job[0].get_send_buffer(1, 1, &buffer), EHOSTDOWN);
  EXPECT_TRUE(job[0].is_quiet());
}

TEST(Shmem, ContextsOfOtherUsersCannotBeAttached) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a file of another user";
  char path[] = "/tmp/pm-owner-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_EQ(ftruncate(file, 1 << 20), 0);
  ASSERT_EQ(fchown(file, 12345, 12345), 0);
  int error = 0;
  EXPECT_FALSE(MappedSegment::attach(file, error));
  EXPECT_EQ(error, EACCES);
  unlink(path);
}

TEST(Regions, ReleasedRegionStaysPinnedButIsNotReachable) {
  TestJob job(Over::Shmem, 1);
  std::vector<std::byte> memory(100'000);
  std::uint32_t first = 0, again = 0;
  std::uint64_t offset = 0;
  ASSERT_EQ(job[0].add_region(memory.data(), memory.size(), first, offset), 0);
  const std::uint32_t nonce = job[0].segment().region(first).nonce;
  ASSERT_EQ(job[0].drop_region(first), 0);
  EXPECT_FALSE(region_covers(job[0].segment(), first, nonce, 0, 1));
  ASSERT_EQ(job[0].add_region(memory.data() + 5, 100, again, offset), 0);
  EXPECT_EQ(again, first);
  EXPECT_EQ(offset, 5u);
  EXPECT_EQ(job[0].counters().registration_hits, 1u);
  EXPECT_NE(job[0].segment().region(again).nonce, nonce);
  EXPECT_EQ(job[0].drop_region(again), 0);
  EXPECT_EQ(job[0].drop_region(again), EINVAL);
}

TEST(Regions, HitRateCanBeForced) {
  TestJob job(Over::Shmem, 1);
  std::vector<std::byte> memory(8192);
  std::uint32_t region = 0;
  std::uint64_t offset = 0;
  for (const unsigned percent : {0u, 50u, 100u}) {
    job[0].regions().set_lazy_percent(percent);
    const auto before = job[0].counters().registration_hits;
    for (int i = 0; i < 101; ++i) {
      ASSERT_EQ(job[0].add_region(memory.data(), memory.size(), region, offset), 0);
      ASSERT_EQ(job[0].drop_region(region), 0);
    }
    EXPECT_NEAR(static_cast<double>(job[0].counters().registration_hits - before), percent, 1.1);
  }
}

TEST(Regions, OldestReleasedRegionIsEvicted) {
  TestJob job(Over::Shmem, 1);
  const std::uint32_t entries = job[0].segment().geometry().regions;
  std::vector<std::byte> memory((entries + 2) * 64);
  std::vector<std::uint32_t> regions(entries);
  std::uint64_t offset = 0;
  for (std::uint32_t i = 0; i < entries; ++i) {
    ASSERT_EQ(job[0].add_region(&memory[i * 64], 64, regions[i], offset), 0);
  }
  std::uint32_t extra = 0;
  EXPECT_EQ(job[0].add_region(&memory[entries * 64], 64, extra, offset), ENOSPC);
  ASSERT_EQ(job[0].drop_region(regions[7]), 0);
  ASSERT_EQ(job[0].drop_region(regions[3]), 0);
  ASSERT_EQ(job[0].add_region(&memory[7 * 64], 64, regions[7], offset), 0);
  ASSERT_EQ(job[0].add_region(&memory[entries * 64], 64, extra, offset), 0);
  EXPECT_EQ(extra, regions[3]);
}

// Writes how long and how often a gang was stopped into contexts, like the switchers of its nodes.
void report_stopped(TestJob& job, std::uint32_t ranks, Microseconds time) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    SegmentHeader& header = job[rank].segment().header();
    header.stopped_us += time;
    ++header.resumes;
  }
}

TEST(Stopped, StoppedGangCausesNoResends) {
  constexpr Microseconds kStopped = 300'000;
  for (const bool was_stopped : {true, false}) {
    TestJob job(Over::Udp, 2);
    job.send(0, 1, "on its way");
    usleep(kStopped);
    if (was_stopped) report_stopped(job, 2, kStopped);
    job[0].progress();
    EXPECT_EQ(job[0].counters().time_outs, was_stopped ? 0u : 1u);
    EXPECT_EQ(job[0].counters().frames_resent, was_stopped ? 0u : 1u);
    EXPECT_EQ(job.receive(1), "on its way");
  }
}

TEST(Stopped, JobTimeStandsStill) {
  TestJob job(Over::Udp, 1);
  constexpr Microseconds kLong = 1'000'000'000;  // longer than any delay of the machine
  StoppableClock clock(job[0].segment());
  const Microseconds before = clock.now();
  report_stopped(job, 1, kLong);
  EXPECT_LT(static_cast<std::int32_t>(clock.now() - before), 0);
}

TEST(Idle, WaitingQuietContextIsReadAsIdle) {
  TestJob job(Over::Udp, 2, {.spin_us = 0});
  std::int64_t timeout = 0;
  ASSERT_EQ(job[0].before_select(timeout), 0);
  EXPECT_EQ(timeout, -1);
  EXPECT_EQ(job[0].segment().header().state.load(), ContextState::Rests);
  job[0].after_select();
  EXPECT_EQ(job[0].segment().header().state.load(), ContextState::Works);
  job.send(0, 1, "x");
  job.run_until([&] { return job[1].progress(); });
  EXPECT_EQ(job[1].before_select(timeout), EBUSY);
}

}  // namespace
}  // namespace score::pm
