#include "scout/accounting/efficiency.hpp"

#include <gtest/gtest.h>

namespace score::scout {
namespace {

using namespace std::chrono_literals;

wire::JobStatus some_job() {
  wire::JobStatus job;
  job.set_cores(8);
  job.set_scheduled_ns(base::Duration(10s).count());
  job.set_scheduled_limit_ns(base::Duration(40s).count());
  job.set_memory_per_node_bytes(1'000ULL << 20U);
  return job;
}

TEST(Efficiency, ComparesUseWithTheRequest) {
  base::Usage usage;
  usage.cpu_user = 60s;
  usage.cpu_system = 4s;
  usage.memory_peak = Bytes(800ULL << 20U);
  const Efficiency efficiency = efficiency_of(some_job(), usage);
  EXPECT_DOUBLE_EQ(*efficiency.cpu, 0.8);
  EXPECT_DOUBLE_EQ(*efficiency.memory, 0.8);
  EXPECT_DOUBLE_EQ(*efficiency.time, 0.25);
  EXPECT_TRUE(efficiency.advice.empty());
}

TEST(Efficiency, AdvisesASmallerRequest) {
  base::Usage usage;
  usage.cpu_user = 15s;
  usage.memory_peak = Bytes(100ULL << 20U);
  const Efficiency efficiency = efficiency_of(some_job(), usage);
  ASSERT_EQ(efficiency.advice.size(), 2U);
  EXPECT_EQ(efficiency.advice[0], "advice: 2 of 8 cores would have been enough");
  EXPECT_EQ(efficiency.advice[1], "advice: --mem 120M would have been enough");
}

TEST(Efficiency, AdvisesMoreMemoryWhenItWasFull) {
  base::Usage usage;
  usage.cpu_user = 80s;
  usage.memory_peak = Bytes(990ULL << 20U);
  EXPECT_EQ(efficiency_of(some_job(), usage).advice,
            std::vector<std::string>{"advice: request more memory, such as --mem 1188M"});
}

TEST(Efficiency, HasNoRatioToNothing) {
  const Efficiency efficiency = efficiency_of(wire::JobStatus(), base::Usage());
  EXPECT_FALSE(efficiency.cpu);
  EXPECT_FALSE(efficiency.memory);
  EXPECT_FALSE(efficiency.time);
  EXPECT_TRUE(efficiency.advice.empty());
}

}  // namespace
}  // namespace score::scout
