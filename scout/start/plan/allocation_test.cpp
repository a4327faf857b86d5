#include "scout/start/plan/allocation.hpp"

#include "base/text.hpp"
#include "scout/start/plan/remedy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace score::scout {
namespace {

std::optional<Allocation> find(const std::map<std::string, std::string>& variables) {
  return find_allocation([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

const std::map<std::string, std::string> kSlurm = {{"SLURM_JOB_ID", "17"},
                                                   {"SLURM_JOB_NODELIST", "n[1-3]"},
                                                   {"SLURM_JOB_CPUS_PER_NODE", "4(x2),2"},
                                                   {"SLURM_MEM_PER_NODE", "2048"}};

TEST(Allocation, SlurmJobIsFound) {
  const auto found = find(kSlurm);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->via, Via::Slurm);
  EXPECT_EQ(found->name, "Slurm job 17");
  EXPECT_EQ(found->hosts, "n[1-3]");
  EXPECT_EQ(found->cores, (std::vector<std::uint32_t>{4, 4, 2}));
  EXPECT_EQ(found->memory, "2048M");
}

TEST(Allocation, TaskOfScoredJobIsNoSlurmJob) {
  auto variables = kSlurm;
  variables["SCORE_JOBID"] = "17";
  EXPECT_FALSE(find(variables));
}

TEST(Allocation, PbsJobIsReachedBySsh) {
  const auto found = find({{"PBS_NODEFILE", "/var/spool/pbs/aux/3"}, {"PBS_JOBID", "3.head"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->via, Via::Ssh);
  EXPECT_EQ(found->hostfile, "/var/spool/pbs/aux/3");
}

TEST(Allocation, FluxInstanceIsFound) {
  const auto found = find({{"FLUX_URI", "local:///run/flux/local"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->via, Via::Flux);
}

TEST(Allocation, NothingIsFoundOutsideAnAllocation) {
  EXPECT_FALSE(find({{"SLURM_JOB_ID", ""}, {"HOME", "/root"}}));
}

TEST(Allocation, SlurmCountsAreExpanded) {
  EXPECT_EQ(expand_counts("2"), (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(expand_counts("1,2(x2)"), (std::vector<std::uint32_t>{1, 2, 2}));
  for (const auto* bad : {"", "x", "2(x", "2(x)", "2(x9999999999)", "0", "2,,2", "2(x70000)", "-1"})
    EXPECT_TRUE(expand_counts(bad).empty()) << bad;
}

TEST(Allocation, SlotsNeedOneCountPerHost) {
  std::vector<Host> hosts = {{.target = "a", .node = "a"}, {.target = "b", .node = "b"}};
  give_slots(hosts, {4});
  EXPECT_EQ(hosts[0].slots, 0U);
  give_slots(hosts, {4, 2});
  EXPECT_EQ(hosts[1].slots, 2U);
}

TEST(LinkWords, SshGetsScriptAsOneWord) {
  const auto words =
      link_words({.via = Via::Ssh, .target = "bob@a", .ssh = {"ssh", "-F", "f"}}, "x y");
  EXPECT_EQ(words[2], "f");
  const auto end = std::ranges::find(words, "--");
  ASSERT_EQ(words.end() - end, 3);
  EXPECT_EQ(end[1], "bob@a");
  EXPECT_EQ(end[2], "exec sh -c 'x y'");
}

TEST(LinkWords, SrunStartsOneOverlappingTask) {
  const auto words = link_words({.via = Via::Slurm, .target = "n1"}, "x y");
  EXPECT_EQ(words[0], "srun");
  for (const auto* word : {"--nodelist=n1", "--ntasks=1", "--overlap"}) {
    EXPECT_TRUE(std::ranges::count(words, word)) << word;
  }
  EXPECT_EQ(words.back(), "x y");
}

TEST(LinkWords, FluxStartsOnOneRank) {
  const auto words = link_words({.via = Via::Flux, .target = "n1", .index = 3}, "x");
  EXPECT_TRUE(std::ranges::count(words, "--rank=3"));
}

TEST(Remedy, RemedyFollowsKnownErrors) {
  EXPECT_EQ(with_remedy("bob@a: Permission denied (publickey).", "bob@a"),
            "bob@a: Permission denied (publickey).; ssh must work without a password: ssh-copy-id "
            "bob@a");
  EXPECT_EQ(with_remedy("something", "a"), "something");
}

}  // namespace
}  // namespace score::scout
