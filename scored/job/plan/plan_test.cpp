#include "scored/job/plan/plan.hpp"

#include "base/errc.hpp"
#include "scored/job/plan/checks.hpp"
#include "scored/job/plan/mpi_choice.hpp"
#include "scored/job/plan/task_env.hpp"
#include "tests/support/job/test_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace score::shepherd {
namespace {

using test::plan_of;

bool holds(const std::vector<std::string>& list, const std::string& item) {
  return std::ranges::find(list, item) != list.end();
}

TEST(Plan, FileNamePatternsExpandJobValues) {
  auto plan = plan_of({2, 3}, 1);
  plan.spec.set_job(7);
  plan.spec.set_job_name("a/b");
  plan.spec.set_step("3");
  plan.prepare.set_node_name("n1");
  EXPECT_EQ(file_name_of(plan, 1, "%x-%j-%J-%s-%t-%n-%N").value(), "a_b-7-7.3-3-3-1-n1");
  EXPECT_FALSE(file_name_of(plan, 1, "%q"));
}

TEST(Plan, RanksAreAssignedByBlock) {
  const auto plan = plan_of({2, 3, 1}, 1);
  EXPECT_EQ(plan.size, 6U);
  EXPECT_EQ(plan.rank_of(0), 2U);
  EXPECT_EQ(plan.local_tasks(), 3U);
  EXPECT_EQ(plan.rank_of(2), 4U);
}

TEST(Plan, RanksContinueAcrossPrograms) {
  const auto plan = plan_of({2, 3, 1}, 1, {1, 2, 3});
  EXPECT_EQ(plan.apps, (std::vector<std::uint32_t>{1, 2, 2}));
  EXPECT_EQ(plan.first_ranks(), (std::vector<std::uint32_t>{0, 1, 3, 6}));
  EXPECT_EQ(plan_of({4}, 0).apps, std::vector<std::uint32_t>(4, 0));
}

TEST(Plan, RefusesProgramsWithWrongTaskCount) {
  auto plan = plan_of({2}, 0, {1, 1});
  plan.spec.mutable_programs(1)->set_tasks(2);
  plan.prepare.set_spec(plan.spec.SerializeAsString());
  const auto parsed = parse_plan(plan.prepare.SerializeAsString());
  ASSERT_FALSE(parsed);
  EXPECT_TRUE(parsed.error().is(base::Errc::Malformed));
}

// MPI libraries name shared memory after the key space.
TEST(Plan, KeySpacesDifferBetweenClustersAndAttempts) {
  auto one = plan_of({1}, 0);
  one.prepare.set_attempt(5);
  one.spec.set_key_space("virtual.1234");
  EXPECT_EQ(one.key_space(), "scored.virtual.1234.5");
}

TEST(Plan, LastValueOfAVariableCounts) {
  wire::LaunchSpec spec;
  wire::Program program;
  for (const auto* variable : {"PATH=/a", "PATHS=/x", "PATH=/b", "PATH"}) spec.add_env(variable);
  EXPECT_EQ(find_variable(spec, program, "PATH"), "/b");
  EXPECT_EQ(find_variable(spec, program, "PAT"), std::nullopt);
  program.add_env("PATH=/own");
  EXPECT_EQ(find_variable(spec, program, "PATH"), "/own");
}

TEST(TaskEnvironment, SlurmVariablesOnlyOnRequest) {
  auto plan = plan_of({2, 2, 1}, 1);
  EXPECT_FALSE(holds(own_variables(plan, 0), "SLURM_PROCID=2"));
  plan.spec.set_slurm_env(true);
  plan.spec.set_nodelist("n[0-2]");
  const auto own = own_variables(plan, 1);
  for (const auto* variable :
       {"SLURM_JOB_ID=12", "SLURM_PROCID=3", "SLURM_LOCALID=1", "SLURM_NODEID=1", "SLURM_NTASKS=5",
        "SLURM_NNODES=3", "SLURM_JOB_NODELIST=n[0-2]", "SLURM_TASKS_PER_NODE=2(x2),1",
        "SLURM_GTIDS=2,3", "SLURM_STEP_NODELIST=n[0-2]", "SCORE_NODELIST=n[0-2]"}) {
    EXPECT_TRUE(holds(own, variable)) << variable;
  }
}

// The head describes the job; the plan of a script knows only one node and one task of it.
TEST(TaskEnvironment, SlurmVariablesOfJobAreKept) {
  auto plan = plan_of({1}, 0);
  plan.spec.set_slurm_env(true);
  plan.spec.set_script("#!/bin/sh\n");
  for (const auto* variable : {"SLURM_NNODES=4", "SLURM_NTASKS=8", "SLURM_JOB_NODELIST=n[0-3]"}) {
    plan.spec.add_job_env(variable);
  }
  const auto script = own_variables(plan, 0);
  EXPECT_TRUE(holds(script, "SLURM_NNODES=4"));
  EXPECT_FALSE(holds(script, "SLURM_NNODES=1"));
  EXPECT_TRUE(holds(script, "SLURM_PROCID=0"));
  plan.spec.clear_script();
  plan.spec.set_step("2");
  plan.spec.set_nodelist("n3");
  const auto step = own_variables(plan, 0);
  for (const auto* variable : {"SLURM_NNODES=1", "SLURM_NTASKS=1", "SLURM_JOB_NODELIST=n[0-3]",
                               "SLURM_STEP_NODELIST=n3", "SLURM_STEP_ID=2"}) {
    EXPECT_TRUE(holds(step, variable)) << variable;
  }
}

TEST(TaskEnvironment, ScriptHasNoRankAndStepHasNumber) {
  auto plan = plan_of({1}, 0);
  plan.spec.set_step("4");
  EXPECT_TRUE(holds(own_variables(plan, 0), "SCORE_STEP_ID=4"));
  EXPECT_TRUE(holds(own_variables(plan, 0), "SCORE_RANK=0"));
  plan.spec.clear_step();
  plan.spec.set_script("#!/bin/sh\n");
  plan.spec.add_job_env("SCORE_NNODES=4");
  EXPECT_TRUE(holds(own_variables(plan, 0), "SCORE_JOB_ID=12"));
  EXPECT_TRUE(holds(own_variables(plan, 0), "SCORE_NNODES=4"));
  EXPECT_FALSE(holds(own_variables(plan, 0), "SCORE_NNODES=1"));
  EXPECT_FALSE(holds(own_variables(plan, 0), "SCORE_RANK=0"));
}

// Unit numbers are relative if tasks can open no other devices.
TEST(TaskEnvironment, ListsUnitsOfGenericResources) {
  auto plan = plan_of({1}, 0);
  auto* gpus = plan.prepare.add_generic();
  gpus->set_name("gpu");
  gpus->add_indices(1);
  gpus->add_indices(3);
  auto* nics = plan.prepare.add_generic();
  nics->set_name("nic");
  nics->add_indices(2);
  EXPECT_TRUE(holds(own_variables(plan, 0), "SCORE_GRES=gpu:1,3;nic:2"));
  EXPECT_TRUE(holds(own_variables(plan, 0), "CUDA_VISIBLE_DEVICES=1,3"));
  plan.prepare.add_restricted("gpu");
  EXPECT_TRUE(holds(own_variables(plan, 0), "SCORE_GRES=gpu:1,3;nic:2"));
  EXPECT_TRUE(holds(own_variables(plan, 0), "CUDA_VISIBLE_DEVICES=0,1"));
  EXPECT_TRUE(holds(own_variables(plan, 0), "ROCR_VISIBLE_DEVICES=0,1"));
}

TEST(TaskEnvironment, EachProgramHasItsOwnVariables) {
  auto plan = plan_of({3}, 0, {1, 2});
  plan.spec.mutable_programs(1)->set_directory("/data");
  plan.spec.set_cpus_per_task(4);
  plan.spec.mutable_programs(1)->add_env("OMP_NUM_THREADS=1");
  EXPECT_TRUE(holds(own_variables(plan, 0), "SCORE_APPNUM=0"));
  EXPECT_TRUE(holds(own_variables(plan, 0), "PWD=/home"));
  EXPECT_TRUE(holds(own_variables(plan, 0), "OMP_NUM_THREADS=4"));
  EXPECT_TRUE(holds(own_variables(plan, 2), "SCORE_APPNUM=1"));
  EXPECT_TRUE(holds(own_variables(plan, 2), "PWD=/data"));
  EXPECT_FALSE(holds(own_variables(plan, 2), "OMP_NUM_THREADS=4"));
}

TEST(MpiChoice, OffersBothToScriptsAndInterpreters) {
  const auto chosen = [](std::vector<const char*> programs) {
    auto plan = plan_of({static_cast<std::uint32_t>(programs.size())}, 0,
                        std::vector<std::uint32_t>(programs.size(), 1));
    for (int i = 0; i < plan.spec.programs_size(); ++i) {
      plan.spec.mutable_programs(i)->set_argv(0, programs[static_cast<std::size_t>(i)]);
    }
    choose_mpi(plan);
    return plan.spec.mpi();
  };
  EXPECT_EQ(chosen({"true"}), wire::LaunchSpec::PMI1);
  EXPECT_EQ(chosen({"/bin/sh"}), wire::LaunchSpec::BOTH);
  EXPECT_EQ(chosen({"/usr/bin/ldd"}), wire::LaunchSpec::BOTH) << "a script";
  EXPECT_EQ(chosen({"true", "sh"}), wire::LaunchSpec::BOTH);
}

TEST(TaskEnvironment, MpichGetsPmiVersion) {
  auto plan = plan_of({1}, 0);
  EXPECT_FALSE(holds(own_variables(plan, 0), "MPIR_CVAR_PMI_VERSION=1"));
  plan.spec.set_mpi(wire::LaunchSpec::BOTH);
  EXPECT_TRUE(holds(own_variables(plan, 0), "MPIR_CVAR_PMI_VERSION=1"));
  plan.spec.add_env("MPIR_CVAR_PMI_VERSION=x");
  EXPECT_FALSE(holds(own_variables(plan, 0), "MPIR_CVAR_PMI_VERSION=1"));
}

// Returns a plan of six tasks on two nodes, of which the last three are room for spawned tasks.
Plan plan_with_room(std::uint32_t node) {
  auto plan = plan_of({4, 2}, node);
  plan.spec.set_spawn(3);
  plan.prepare.set_spec(plan.spec.SerializeAsString());
  return *parse_plan(plan.prepare.SerializeAsString());
}

wire::SpawnedWorld world_of(const std::vector<std::uint32_t>& places) {
  wire::SpawnedWorld world;
  world.set_number(2);
  for (const auto place : places) world.add_places(place);
  auto* program = world.add_programs();
  program->add_argv("child");
  program->set_tasks(static_cast<std::uint32_t>(places.size()));
  return world;
}

TEST(Plan, SpawnRoomFollowsTasksOfJob) {
  const auto first = plan_with_room(0);
  EXPECT_EQ(first.size, 3U);
  EXPECT_EQ(first.total, 6U);
  EXPECT_EQ(first.members, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(first.nodes_of_ranks(), (std::vector<std::uint32_t>{0, 0, 0}));
  EXPECT_TRUE(plan_with_room(1).members.empty());
}

TEST(Plan, WorldCountsItsOwnRanks) {
  const auto job = plan_with_room(1);
  const auto plan = plan_of_world(job, world_of({3, 4, 5}));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->size, 3U);
  EXPECT_EQ(plan->members, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(plan->rank_of(0), 4U);
  EXPECT_EQ(plan->world_rank_of(0), 1U);
  EXPECT_EQ(plan->nodes_of_ranks(), (std::vector<std::uint32_t>{0, 1, 1}));
  EXPECT_EQ(plan->members_on_node(), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(plan->program_of(0).argv(0), "child");
  EXPECT_NE(plan->key_space(), job.key_space());
  const auto again = parse_plan(prepare_bytes(*plan));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->members, plan->members);
  EXPECT_EQ(again->key_space(), plan->key_space());
}

TEST(Plan, RefusesWorldsOutsideRoom) {
  const auto job = plan_with_room(1);
  for (const auto& places :
       std::vector<std::vector<std::uint32_t>>{{}, {2}, {6}, {4, 3}, {4, 4}, {4294967295U}}) {
    EXPECT_FALSE(plan_of_world(job, world_of(places)));
  }
  auto world = world_of({4, 5});
  world.mutable_programs(0)->set_tasks(3);
  EXPECT_FALSE(plan_of_world(job, world));
  world = world_of({4});
  world.set_number(0);
  EXPECT_FALSE(plan_of_world(job, world));
  EXPECT_FALSE(plan_of_world(plan_of({4, 2}, 1), world_of({4}))) << "it has no room";
  auto all = plan_of({2}, 0);
  all.spec.set_spawn(2);
  all.prepare.set_spec(all.spec.SerializeAsString());
  EXPECT_FALSE(parse_plan(all.prepare.SerializeAsString()));
}

TEST(Plan, NodeWithOnlyVolumePartIsValid) {
  Plan full = plan_of({1, 1}, 1);
  wire::ShepherdPrepare& prepare = full.prepare;
  prepare.set_tasks_on_node(1, 0);
  prepare.set_scratch_bytes(1 << 20);
  prepare.set_memory_bytes(1 << 20);
  prepare.set_limit_by_rlimit(true);
  full.spec.set_stdout_path("/nowhere/out-%j");
  prepare.set_spec(full.spec.SerializeAsString());
  const auto plan = parse_plan(prepare.SerializeAsString());
  ASSERT_TRUE(plan.has_value()) << plan.error().message();
  EXPECT_FALSE(check_plan(*plan).has_value());
}

TEST(TaskEnvironment, SpawnedTasksGetWorldAndJobNumber) {
  auto job = plan_with_room(1);
  job.spec.set_mpi(wire::LaunchSpec::BOTH);
  job.prepare.add_pmix_env("PMIX_NAMESPACE=" + job.key_space());
  const auto plan = plan_of_world(job, world_of({4, 5}));
  ASSERT_TRUE(plan);
  const auto own = own_variables(*plan, 1);
  for (const auto* item : {"SCORE_RANK=5", "SCORE_SIZE=2", "PMI_RANK=1", "PMI_SIZE=2",
                           "PMI_SPAWNED=1", "PMIX_RANK=1"}) {
    EXPECT_TRUE(holds(own, item)) << item;
  }
  EXPECT_TRUE(holds(own, "PMIX_NAMESPACE=" + plan->key_space()));
  EXPECT_FALSE(holds(own, "PMIX_NAMESPACE=" + job.key_space()));
}

TEST(TaskEnvironment, VariablesOfOuterLaunchersAreDropped) {
  auto plan = plan_of({1}, 0);
  const auto own = own_variables(plan, 0);
  EXPECT_TRUE(is_replaced("PMI_PORT=x", own));
  EXPECT_TRUE(is_replaced("PMIX_RANK=1", own));
  EXPECT_TRUE(is_replaced("SCORE_RANK=9", own));
  EXPECT_FALSE(is_replaced("SCORE_RANKING=9", own));
  EXPECT_FALSE(is_replaced("SLURM_PROCID=9", own));
  EXPECT_FALSE(is_replaced("HOME=/root", own));
}

TEST(TaskEnvironment, ThreadsFollowCpusPerTask) {
  auto plan = plan_of({1}, 0);
  plan.spec.set_cpus_per_task(4);
  EXPECT_TRUE(holds(own_variables(plan, 0), "OMP_NUM_THREADS=4"));
  plan.spec.add_env("OMP_NUM_THREADS=2");
  EXPECT_FALSE(holds(own_variables(plan, 0), "OMP_NUM_THREADS=4"));
}

TEST(TaskEnvironment, OpenMpiYieldsOnSharedCores) {
  auto plan = plan_of({3}, 0);
  EXPECT_FALSE(holds(own_variables(plan, 0), "OMPI_MCA_mpi_yield_when_idle=1"));
  for (const std::uint32_t core : {0U, 1U, 2U}) plan.prepare.add_cores(core);
  EXPECT_FALSE(holds(own_variables(plan, 0), "OMPI_MCA_mpi_yield_when_idle=1"));
  plan.prepare.mutable_cores()->RemoveLast();
  EXPECT_TRUE(holds(own_variables(plan, 0), "OMPI_MCA_mpi_yield_when_idle=1"));
  plan.spec.add_env("OMPI_MCA_mpi_yield_when_idle=0");
  EXPECT_FALSE(holds(own_variables(plan, 0), "OMPI_MCA_mpi_yield_when_idle=1"));
}

}  // namespace
}  // namespace score::shepherd
