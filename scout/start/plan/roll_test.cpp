#include "scout/start/plan/roll.hpp"

#include <gtest/gtest.h>

namespace score::scout {
namespace {

using namespace std::chrono_literals;
using Decision = Roll::Decision;

const TimePoint kStart{1000s};

Roll make(std::size_t hosts, std::size_t least, std::size_t at_once = 100) {
  return Roll({.hosts = hosts, .least = least, .at_once = at_once, .limit = 60s}, kStart);
}

TEST(Roll, HostsAreConnectedInAWindow) {
  auto roll = make(5, 5, 2);
  EXPECT_EQ(roll.start_now(), (std::vector<std::size_t>{0, 1}));
  EXPECT_TRUE(roll.start_now().empty());
  roll.on_hello(1);
  EXPECT_EQ(roll.start_now(), (std::vector<std::size_t>{2}));
  roll.on_failed(0);
  roll.on_hello(1);
  EXPECT_EQ(roll.start_now(), (std::vector<std::size_t>{3}));
}

void make_ready(Roll& roll, std::initializer_list<std::size_t> hosts) {
  for (const auto host : hosts) roll.on_ready(host);
}

TEST(Roll, ClusterIsUpWhenHeadCountsEveryNode) {
  auto roll = make(2, 2);
  roll.start_now();
  make_ready(roll, {0, 1});
  EXPECT_EQ(roll.decide(1, kStart), Decision::Wait);
  EXPECT_EQ(roll.decide(2, kStart), Decision::Up);
}

TEST(Roll, BootContinuesIfEnoughHostsAreLeft) {
  auto roll = make(3, 2);
  roll.start_now();
  roll.on_failed(1);
  make_ready(roll, {0, 2});
  EXPECT_EQ(roll.decide(1, kStart), Decision::Wait);
  EXPECT_EQ(roll.decide(2, kStart), Decision::Up);
  roll.on_failed(0);
  EXPECT_EQ(roll.decide(1, kStart), Decision::TooFew);
}

TEST(Roll, EveryHostIsAwaitedBeforeFailure) {
  auto roll = make(3, 3);
  roll.start_now();
  roll.on_failed(1);
  EXPECT_EQ(roll.decide(0, kStart), Decision::Wait);
  make_ready(roll, {0});
  roll.on_failed(2);
  EXPECT_EQ(roll.decide(0, kStart), Decision::TooFew);
  EXPECT_EQ(roll.taking_part(), 1U);
}

TEST(Roll, ClusterNeverComesUpWithoutHosts) {
  auto roll = make(1, 0);
  roll.start_now();
  roll.on_failed(0);
  EXPECT_EQ(roll.decide(0, kStart), Decision::TooFew);
}

TEST(Roll, MinimumSufficesAfterTheLimit) {
  auto roll = make(4, 3);
  roll.start_now();
  make_ready(roll, {0, 1, 2});
  EXPECT_EQ(roll.decide(3, kStart + 59s), Decision::Wait);
  EXPECT_EQ(roll.decide(3, kStart + 60s), Decision::Up);
  EXPECT_EQ(roll.decide(2, kStart + 60s), Decision::TooFew);
}

TEST(Roll, FailedHostStaysFailed) {
  auto roll = make(1, 1);
  roll.start_now();
  roll.on_failed(0);
  roll.on_hello(0);
  roll.on_ready(0);
  EXPECT_TRUE(roll.has_failed(0));
  EXPECT_EQ(roll.taking_part(), 0U);
}

}  // namespace
}  // namespace score::scout
