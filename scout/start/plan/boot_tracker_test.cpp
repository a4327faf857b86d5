#include "scout/start/plan/boot_tracker.hpp"

#include <gtest/gtest.h>

namespace score::scout {
namespace {

using namespace std::chrono_literals;
using Decision = BootTracker::Decision;

const TimePoint kStart{1000s};

BootTracker make(std::size_t hosts, std::size_t least, std::size_t at_once = 100) {
  return BootTracker({.hosts = hosts, .least = least, .at_once = at_once, .limit = 60s}, kStart);
}

TEST(BootTracker, HostsAreConnectedInAWindow) {
  auto boot_tracker = make(5, 5, 2);
  EXPECT_EQ(boot_tracker.start_now(), (std::vector<std::size_t>{0, 1}));
  EXPECT_TRUE(boot_tracker.start_now().empty());
  boot_tracker.on_hello(1);
  EXPECT_EQ(boot_tracker.start_now(), (std::vector<std::size_t>{2}));
  boot_tracker.on_failed(0);
  boot_tracker.on_hello(1);
  EXPECT_EQ(boot_tracker.start_now(), (std::vector<std::size_t>{3}));
}

void make_ready(BootTracker& boot_tracker, std::initializer_list<std::size_t> hosts) {
  for (const auto host : hosts) boot_tracker.on_ready(host);
}

TEST(BootTracker, ClusterIsUpWhenHeadCountsEveryNode) {
  auto boot_tracker = make(2, 2);
  boot_tracker.start_now();
  make_ready(boot_tracker, {0, 1});
  EXPECT_EQ(boot_tracker.decide(1, kStart), Decision::Wait);
  EXPECT_EQ(boot_tracker.decide(2, kStart), Decision::Up);
}

TEST(BootTracker, BootContinuesIfEnoughHostsAreLeft) {
  auto boot_tracker = make(3, 2);
  boot_tracker.start_now();
  boot_tracker.on_failed(1);
  make_ready(boot_tracker, {0, 2});
  EXPECT_EQ(boot_tracker.decide(1, kStart), Decision::Wait);
  EXPECT_EQ(boot_tracker.decide(2, kStart), Decision::Up);
  boot_tracker.on_failed(0);
  EXPECT_EQ(boot_tracker.decide(1, kStart), Decision::TooFew);
}

TEST(BootTracker, EveryHostIsAwaitedBeforeFailure) {
  auto boot_tracker = make(3, 3);
  boot_tracker.start_now();
  boot_tracker.on_failed(1);
  EXPECT_EQ(boot_tracker.decide(0, kStart), Decision::Wait);
  make_ready(boot_tracker, {0});
  boot_tracker.on_failed(2);
  EXPECT_EQ(boot_tracker.decide(0, kStart), Decision::TooFew);
  EXPECT_EQ(boot_tracker.taking_part(), 1U);
}

TEST(BootTracker, ClusterNeverComesUpWithoutHosts) {
  auto boot_tracker = make(1, 0);
  boot_tracker.start_now();
  boot_tracker.on_failed(0);
  EXPECT_EQ(boot_tracker.decide(0, kStart), Decision::TooFew);
}

TEST(BootTracker, MinimumSufficesAfterTheLimit) {
  auto boot_tracker = make(4, 3);
  boot_tracker.start_now();
  make_ready(boot_tracker, {0, 1, 2});
  EXPECT_EQ(boot_tracker.decide(3, kStart + 59s), Decision::Wait);
  EXPECT_EQ(boot_tracker.decide(3, kStart + 60s), Decision::Up);
  EXPECT_EQ(boot_tracker.decide(2, kStart + 60s), Decision::TooFew);
}

TEST(BootTracker, FailedHostStaysFailed) {
  auto boot_tracker = make(1, 1);
  boot_tracker.start_now();
  boot_tracker.on_failed(0);
  boot_tracker.on_hello(0);
  boot_tracker.on_ready(0);
  EXPECT_TRUE(boot_tracker.has_failed(0));
  EXPECT_EQ(boot_tracker.taking_part(), 0U);
}

}  // namespace
}  // namespace score::scout
