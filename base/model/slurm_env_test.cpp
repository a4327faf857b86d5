#include "base/model/slurm_env.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace score::base {
namespace {

using Counts = std::vector<std::uint32_t>;

TEST(SlurmEnvironment, EqualCountsAreCombined) {
  EXPECT_EQ(slurm_counts(Counts{2, 2, 1}), "2(x2),1");
  EXPECT_EQ(slurm_counts(Counts{1}), "1");
  EXPECT_EQ(slurm_counts(Counts{}), "");
}

TEST(SlurmEnvironment, JobIsDescribed) {
  SlurmJob job;
  job.job = 7;
  job.name = "two words";
  job.nodes = "node[00-01]";
  job.tasks_on_node = {2, 2};
  job.cpus_per_task = 2;
  job.memory_per_node = Bytes(512U << 20U);
  job.partition = "normal";
  job.user = UserId(1000);
  const auto variables = slurm_job_variables(job);
  for (const char* wanted :
       {"SLURM_JOB_ID=7", "SLURM_JOB_NAME=two words", "SLURM_NNODES=2", "SLURM_JOB_NUM_NODES=2",
        "SLURM_JOB_NODELIST=node[00-01]", "SLURM_NTASKS=4", "SLURM_TASKS_PER_NODE=2(x2)",
        "SLURM_JOB_CPUS_PER_NODE=4(x2)", "SLURM_MEM_PER_NODE=512", "SLURM_JOB_PARTITION=normal",
        "SLURM_JOB_UID=1000"}) {
    EXPECT_NE(std::ranges::find(variables, wanted), variables.end()) << wanted;
  }
  const auto is_unknown = [](const std::string& variable) {
    return variable.starts_with("SLURM_CLUSTER_NAME") || variable.starts_with("SLURM_RESTART");
  };
  EXPECT_TRUE(std::ranges::none_of(variables, is_unknown));
}

}  // namespace
}  // namespace score::base
