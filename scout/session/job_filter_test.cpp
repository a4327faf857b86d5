#include "scout/session/job_filter.hpp"

#include "base/model/model.hpp"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace score::scout {
namespace {

Result<JobFilter> filter_of(std::vector<std::string> words) {
  JobFilter filter;
  CLI::App app;
  filter.add_options(app, "");
  std::reverse(words.begin(), words.end());
  app.parse(words);
  if (auto read = filter.read(); !read) return read.error();
  return filter;
}

wire::JobStatus job(base::JobState state) {
  wire::JobStatus job;
  job.set_user(1001);
  job.set_user_name("alice");
  job.set_account("physics");
  job.set_name("a,b");
  job.set_state(static_cast<std::uint32_t>(state));
  job.add_nodes("node03");
  return job;
}

TEST(JobFilter, WithoutOptionsEverythingMatches) {
  const auto filter = filter_of({});
  ASSERT_TRUE(filter);
  EXPECT_FALSE(filter->chooses());
  EXPECT_TRUE(filter->matches(job(base::JobState::Running)));
}

TEST(JobFilter, EachOptionSelectsJobs) {
  const auto running = job(base::JobState::Running);
  const auto matches = [&](const std::vector<std::string>& words) {
    const auto filter = filter_of(words);
    return filter && filter->chooses() && filter->matches(running);
  };
  EXPECT_TRUE(matches({"-u", "bob,alice"}));
  EXPECT_TRUE(matches({"--user=1001"}));
  EXPECT_FALSE(matches({"--user", "bob"}));
  EXPECT_TRUE(matches({"-A", "physics"}));
  EXPECT_FALSE(matches({"-A", "art"}));
  EXPECT_TRUE(matches({"--name", "a,b"})) << "a name may contain a comma";
  EXPECT_FALSE(matches({"--name", "a"}));
  EXPECT_TRUE(matches({"--state", "pending,running"}));
  EXPECT_TRUE(matches({"--state", "RUNNING"}));
  EXPECT_TRUE(matches({"--state", "R"}));
  EXPECT_FALSE(matches({"--state", "idle"}));
  EXPECT_TRUE(matches({"-w", "node[01-03]"}));
  EXPECT_FALSE(matches({"--nodelist", "node04"}));
  EXPECT_FALSE(matches({"-u", "alice", "--state", "pending"})) << "all of them must match";
}

TEST(JobFilter, OutOfMemoryAcceptsSlurmSpellings) {
  for (const char* word : {"out-of-memory", "OUT_OF_MEMORY", "OOM"}) {
    const auto filter = filter_of({"--state", word});
    ASSERT_TRUE(filter) << word;
    EXPECT_TRUE(filter->matches(job(base::JobState::OutOfMemory))) << word;
  }
}

TEST(JobFilter, JobsAreReadAloneOrInLists) {
  const auto filter = filter_of({"7", "-j", "8,12_[1,3]", "--jobs=9", "7.0"});
  ASSERT_TRUE(filter);
  EXPECT_EQ(filter->jobs(), (std::vector<std::string>{"7", "7.0", "8", "12_[1,3]", "9"}));
  EXPECT_FALSE(filter->chooses());
}

TEST(JobFilter, ErrorNamesTheInvalidWord) {
  const auto fault = [](const std::vector<std::string>& words) {
    const auto filter = filter_of(words);
    return filter ? "taken" : filter.error().context();
  };
  EXPECT_NE(fault({"--state", "runing"}).find("--state: unknown state 'runing'; the states are"),
            std::string::npos);
  EXPECT_EQ(fault({"-w", "n[3-1]"}), "--nodelist: the range 3-1 goes down; write 1-3");
  EXPECT_NE(fault({"x"}).find("'x' is not a job id"), std::string::npos);
}

TEST(JobFilter, AccountingRowsMatchLikeJobs) {
  wire::AccountingRow row;
  row.set_user_name("alice");
  row.set_state(static_cast<std::uint32_t>(base::JobState::Failed));
  row.set_nodes("node[00-03]");
  EXPECT_TRUE(filter_of({"--state", "failed", "-w", "node02"})->matches(row));
  EXPECT_FALSE(filter_of({"-w", "node04"})->matches(row));
  EXPECT_FALSE(filter_of({"--state", "completed"})->matches(row));
  row.set_state(static_cast<std::uint32_t>(base::JobState::OutOfMemory));
  for (const char* word : {"out-of-memory", "OUT_OF_MEMORY", "OOM"}) {
    const auto filter = filter_of({"--state", word});
    ASSERT_TRUE(filter) << word;
    EXPECT_TRUE(filter->matches(row)) << word;
  }
}

}  // namespace
}  // namespace score::scout
