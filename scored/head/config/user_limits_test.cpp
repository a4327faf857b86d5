#include "scored/head/config/user_limits.hpp"

#include "scored/head/config/config.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

UserLimits limits_of(const std::string& lines) {
  const auto config = parse_config("[head]\nnodes = \"a\"\n[limits]\n" + lines, "x.toml");
  EXPECT_TRUE(config) << config.error().message();
  return config ? config->limits : UserLimits();
}

std::string problem(const std::string& lines) {
  const auto config = parse_config("[head]\nnodes = \"a\"\n[limits]\n" + lines, "x.toml");
  return config ? "" : config.error().context();
}

ResourceRequest ordinary() {
  ResourceRequest request;
  request.weight = limits::kDefaultWeight;
  return request;
}

std::string refusal(const UserLimits& limits, ResourceRequest request) {
  const auto held = check_limits(limits, request);
  if (held) return {};
  EXPECT_TRUE(held.error().is(Errc::Denied));
  return held.error().context();
}

TEST(UserLimits, DefaultsAllowNoAdvantageOverOthers) {
  const UserLimits limits;
  EXPECT_EQ(refusal(limits, ordinary()), "");
  ResourceRequest modest = ordinary();
  modest.weight = 1;
  modest.priority = -5;
  EXPECT_EQ(refusal(limits, modest), "");
  ResourceRequest heavy = ordinary();
  heavy.weight = 101;
  EXPECT_EQ(refusal(limits, heavy),
            "weight 101: users may ask for 100 at most (limits.max_weight of the head; operators "
            "may do more)");
  ResourceRequest hasty = ordinary();
  hasty.priority = 1;
  EXPECT_TRUE(refusal(limits, hasty).starts_with("priority 1: users may ask for 0 at most"));
  for (const auto queue : {Queue::Exclusive, Queue::High}) {
    ResourceRequest other = ordinary();
    other.queue = queue;
    EXPECT_NE(refusal(limits, other).find("users may ask for normal (limits.queues"),
              std::string::npos);
  }
}

TEST(UserLimits, AreReadFromTheFile) {
  const UserLimits limits = limits_of(
      "max_weight = 500\nmax_priority = 10\nmax_jobs = 3\nqueues = [\"normal\", \"high\"]\n"
      "exempt = [\"alice\", \"@staff\"]\n");
  EXPECT_EQ(limits.queue_names(), (std::vector<std::string>{"high", "normal"}));
  EXPECT_EQ(limits.exempt, (std::vector<std::string>{"alice", "@staff"}));
  ResourceRequest request = ordinary();
  request.weight = 500;
  request.priority = 10;
  request.queue = Queue::High;
  EXPECT_EQ(refusal(limits, request), "");
  EXPECT_TRUE(check_job_count(limits, 2));
  EXPECT_FALSE(check_job_count(limits, 3));
}

TEST(UserLimits, AreRefusedWithFileAndLine) {
  EXPECT_EQ(problem("max_weight = 0").substr(0, 9), "x.toml:4:");
  EXPECT_EQ(problem("queues = [\"fast\"]"),
            "x.toml:4: queues: use exclusive, high, normal, urgent");
  EXPECT_EQ(problem("queues = []"), "x.toml:4: queues: name at least one queue");
  EXPECT_NE(problem("max_wieght = 3"), "");
}

// Scout commands take no slices and are never stopped.
TEST(UserLimits, LimitScoutCommands) {
  ResourceRequest command = ordinary();
  command.overlay = true;
  UserLimits limits;
  ASSERT_TRUE(check_limits(limits, command));
  EXPECT_EQ(command.wall_limit, 1h);
  command.wall_limit = 5s;
  ASSERT_TRUE(check_limits(limits, command));
  EXPECT_EQ(command.wall_limit, 5s);
  command.wall_limit = 2h;
  EXPECT_NE(refusal(limits, command), "");
  limits.scout_time = 0s;
  EXPECT_TRUE(refusal(limits, command).starts_with("scout: users may ask for none of it"));
}

}  // namespace
}  // namespace score::head
