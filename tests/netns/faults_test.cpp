// These tests use bad links, foreign frames and deaths of processes over real sockets.
#include "bench/pm/garbage.hpp"
#include "tests/netns/conversation.hpp"
#include "tests/support/base/test_figure.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

namespace score::pm::netns {
namespace {

class OverALink : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string reason;
    ends_ = make_ends(true, reason);
    if (!ends_) GTEST_SKIP() << reason;
  }

  std::string device() const { return GetParam(); }

  // Both sides talk until `count` messages went each way.
  void expect_conversation(const AddressFile& file, std::uint32_t count) {
    try {
      ends_->run([&](int side, Shared& shared) {
        Talker talker(file.path(), side);
        talker.talk(count);
        pm_statistics s{};
        pm_get_statistics(talker, &s, sizeof s);
        shared.count[side] = {s.frames_resent,
                              s.duplicates,
                              s.dropped_corrupt + s.dropped_forged + s.dropped_malformed +
                                  s.dropped_foreign + s.dropped_stale,
                              s.dropped_foreign,
                              s.dropped_stale,
                              s.dropped_forged,
                              s.dropped_by_kernel};
      });
    } catch (const std::exception& e) {
      FAIL() << e.what();
    }
  }

  double seconds_of(const AddressFile& file, std::uint32_t count) {
    const double begin = bench::now_seconds();
    expect_conversation(file, count);
    return bench::now_seconds() - begin;
  }

  std::unique_ptr<TwoEnds> ends_;
};

INSTANTIATE_TEST_SUITE_P(Devices, OverALink, testing::Values("udp", "ethernet"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST_P(OverALink, LostDuplicatedAndDamagedFramesAreRepaired) {
  std::string reason;
  if (!ends_->spoil({.lose = 15, .damage = 10, .duplicate = 10}, reason)) {
    GTEST_SKIP() << reason;
  }
  const AddressFile file(*ends_, device());
  expect_conversation(file, 2000);
  for (const int side : {0, 1}) {
    const auto& count = ends_->shared().count[side];
    EXPECT_GT(count[0], 0u) << "resent";
    EXPECT_GT(count[2], 0u) << "dropped";
    EXPECT_GT(count[1], 0u) << "duplicates";
  }
}

// The cost of the garbage is reported as a figure. Its sender also takes a processor of this
// machine, which is no cost of PM. So the cost is measured against as many frames that no socket
// receives.
TEST_P(OverALink, ForeignFramesAreCountedAndDropped) {
  constexpr std::uint32_t kMessages = 20'000;
  const AddressFile file(*ends_, device());
  bench::GarbageOptions options{.is_ethernet = device() != "udp",
                                .port = 4101,
                                .key = 0x1f2e3d4c,
                                .generation = 1,
                                .rate = 100'000};
  const double alone = seconds_of(file, kMessages);
  options.without_reader = true;
  const double elsewhere = [&] {
    const bench::Garbage garbage(*ends_, options);
    return seconds_of(file, kMessages);
  }();
  options.without_reader = false;
  const bench::Garbage garbage(*ends_, options);
  const double beside = seconds_of(file, kMessages);
  const auto percent = [&](double base) {
    return std::to_string(std::lround(100 * base / beside));
  };
  test::figure("S26", device() + ": goodput " + percent(elsewhere) + " % beside " +
                          std::to_string(std::lround(garbage.rate())) +
                          " foreign frames per second, of that beside as many to no socket; " +
                          percent(alone) + " % of a link without");
  const auto& count = ends_->shared().count[1];
  EXPECT_GT(count[2], 0u);
  EXPECT_GT(count[4], 0u) << "of an old generation";
  // The filters of the sockets drop frames of other jobs; on Ethernet they are not counted.
  if (device() == "udp") {
    EXPECT_GT(count[6], 0u) << "of another job";
  }
}

TEST_P(OverALink, KeyAloneCannotForgeTaggedFrames) {
  const AddressFile file(*ends_, device(), false, "auth tag\n");
  const bench::Garbage garbage(*ends_, {.is_ethernet = device() != "udp",
                                        .port = 4101,
                                        .key = 0x1f2e3d4c,
                                        .generation = 1,
                                        .rate = 20'000});
  expect_conversation(file, 10'000);
  EXPECT_GT(ends_->shared().count[1][5], 0u) << "forged";
}

// --- deaths ------------------------------------------------------------------------------------

class EveryDeath : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Devices, EveryDeath,
                         testing::Values("shmem", "udp", "ethernet", "ofi:tcp"),
                         [](const auto& parameter) {
                           const std::string name = parameter.param;
                           return name.substr(0, name.find(':'));
                         });

void wait_for_end(pid_t process) {
  pollfd ended{static_cast<int>(syscall(SYS_pidfd_open, process, 0)), POLLIN, 0};
  if (ended.fd < 0) return;
  poll(&ended, 1, -1);
  close(ended.fd);
}

// Measures the seconds until rank 0 knows that rank 1 has died, which has sent messages. A rank
// that only waits sends its acknowledgement of the last message after the death.
double seconds_until_told(TwoEnds& ends, const AddressFile& file, bool is_sending) {
  return ends
      .run([&](int side, Shared& shared) {
        Talker talker(file.path(), side);
        talker.talk(100);
        shared.pid[side] = getpid();
        bench::meet(shared, 1);
        if (side == 1) {
          if (!is_sending) check(pm_send_message(talker, 0, "x", 1), "pm_send_message");
          _exit(0);
        }
        if (!is_sending) wait_for_end(shared.pid[1]);
        const double start = bench::now_seconds();
        if (is_sending) check(pm_send_message(talker, 1, "x", 1), "pm_send_message");
        pm_message message;
        int error = PM_EAGAIN;
        while ((error = pm_receive(talker, &message)) == PM_EAGAIN || error == 0) {
          if (error == 0) {
            pm_release_receive_buffer(talker, &message);
            continue;
          }
          pm_wait(talker, 100'000);
          check(bench::now_seconds() - start < 30, "told within half a minute");
        }
        shared.seconds = bench::now_seconds() - start;
        check(error == PM_EPEER && message.source == 1, "told who has died");
        void* buffer = nullptr;
        check(pm_get_send_buffer(talker, 1, &buffer, 1) == PM_EPEER, "nothing goes to the dead");
        check(pm_quiet(talker) == 1, "nothing is under way to the dead");
        talker.abandon();
      })
      .seconds;
}

TEST_P(EveryDeath, SenderIsNotifiedWithinTheBound) {
  const std::string device = GetParam();
  std::string reason;
  const auto ends = make_ends(device != "shmem", reason);
  if (!ends) GTEST_SKIP() << reason;
  const AddressFile file(*ends, device, false, "peer_timeout 3\n");
  try {
    // The bound covers three seconds of silence and the last wait between two attempts, on a busy
    // machine.
    EXPECT_LT(seconds_until_told(*ends, file, true), 20);
  } catch (const std::exception& e) {
    FAIL() << e.what();
  }
}

// Over shared memory the end of the process is visible; over UDP its node rejects frames.
class AnyDeath : public EveryDeath {};

INSTANTIATE_TEST_SUITE_P(Devices, AnyDeath, testing::Values("shmem", "udp"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST_P(AnyDeath, WaitingRankIsNotified) {
  const std::string device = GetParam();
  std::string reason;
  const auto ends = make_ends(device != "shmem", reason);
  if (!ends) GTEST_SKIP() << reason;
  const AddressFile file(*ends, device, false, "peer_timeout 60\n");
  try {
    EXPECT_LT(seconds_until_told(*ends, file, false), 20);
  } catch (const std::exception& e) {
    FAIL() << e.what();
  }
}

}  // namespace
}  // namespace score::pm::netns
