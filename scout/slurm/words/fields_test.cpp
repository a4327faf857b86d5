#include "base/model/model.hpp"
#include "scout/slurm/words/account_fields.hpp"
#include "scout/slurm/words/format.hpp"
#include "scout/slurm/words/job_words.hpp"
#include "scout/slurm/words/queue_fields.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::scout::slurm {
namespace {

using base::JobState;

wire::JobStatus job_of(JobState state) {
  wire::JobStatus job;
  job.set_job(12);
  job.set_name("sleep");
  job.set_user(1000);
  job.set_user_name("alice");
  job.set_state(static_cast<std::uint32_t>(state));
  job.set_queue(2);
  job.set_tasks(4);
  job.set_cpus_per_task(1);
  job.add_nodes("node00");
  job.add_nodes("node01");
  return job;
}

std::string queue_row(const std::string& format, const wire::JobStatus& job,
                      bool by_letter = true) {
  auto columns = by_letter ? read_letters(format) : read_names(format);
  if (!columns) return columns.error().context();
  const auto chosen = choose_fields(queue_fields(), std::move(*columns), by_letter);
  return chosen ? item_line(*chosen, job) : chosen.error().context();
}

std::string account_row(const std::string& fields, const AccountLine& line, AccountStyle style) {
  const auto columns = read_account_columns(fields);
  return columns ? account_text(*columns, line, style, "|") : columns.error().context();
}

TEST(QueueFormat, LettersHaveWidthAndAlignment) {
  const auto job = job_of(JobState::Running);
  EXPECT_EQ(queue_row("%i %t", job), "12 R\n");
  EXPECT_EQ(queue_row("%.6i|%3j|%T", job), "    12|sle|RUNNING\n");
  EXPECT_EQ(queue_row("%D nodes%%", job), "2 nodes%\n");
  EXPECT_EQ(queue_row("%R %N", job), "node[00-01] node[00-01]\n");
}

TEST(QueueFormat, NamesHaveTwentyColumns) {
  const auto job = job_of(JobState::Running);
  EXPECT_EQ(queue_row("JobID,StateCompact", job, false),
            "12                  R                   \n");
  EXPECT_EQ(queue_row("jobid:.4,state:8/", job, false), "  12RUNNING /\n");
}

TEST(QueueFormat, UnknownFieldIsNamed) {
  const auto job = job_of(JobState::Running);
  EXPECT_TRUE(queue_row("%i %J", job).starts_with("unknown field %J; the fields are "));
  EXPECT_TRUE(queue_row("nope", job, false).starts_with("unknown field nope; "));
  EXPECT_EQ(queue_row("%", job), "'%' is not a format");
  EXPECT_EQ(queue_row("%99999i", job), "'%99999i' is not a format");
}

TEST(QueueFormat, RandomTextIsReadOrRefused) {
  std::mt19937 random(20261129);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += static_cast<char>("%.#:,iJobID09\xc3\xa9 "[random() % 17]);
    (void)read_letters(text);
    (void)read_names(text);
    (void)read_account_columns(text);
  }
}

TEST(JobWords, TimesHaveTheFormOfEachCommand) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(queue_time(5 * kSecond), "0:05");
  EXPECT_EQ(queue_time(3'725 * kSecond), "1:02:05");
  EXPECT_EQ(queue_time(90'061 * kSecond), "1-01:01:01");
  EXPECT_EQ(record_time(5 * kSecond), "00:00:05");
  EXPECT_EQ(record_time(90'061 * kSecond), "1-01:01:01");
  EXPECT_EQ(moment(0, "N/A"), "N/A");
}

TEST(JobWords, TasksOfArraysHaveTwoNumbers) {
  auto task = job_of(JobState::Running);
  task.set_array_job(7);
  task.set_array_task(3);
  EXPECT_EQ(id_words(task), "7_3");
  auto array = job_of(JobState::Pending);
  array.set_array_job(12);
  EXPECT_FALSE(has_row(array));
  array.mutable_array()->set_waiting("8-99%8");
  EXPECT_EQ(id_words(array), "12_[8-99%8]");
  EXPECT_TRUE(has_row(array));
}

TEST(JobWords, ExitCodesHaveSignals) {
  const auto words = [](JobState state, int code, int signal) {
    return exit_words(static_cast<std::uint32_t>(state), code, signal);
  };
  EXPECT_EQ(words(JobState::Failed, 3, 0), "3:0");
  EXPECT_EQ(words(JobState::Failed, 139, 11), "0:11");
  EXPECT_EQ(words(JobState::Completed, 0, 0), "0:0");
  EXPECT_EQ(words(JobState::OutOfMemory, 137, 9), "0:125");
  EXPECT_EQ(words(JobState::Cancelled, 130, 15), "0:15");
  EXPECT_EQ(words(JobState::TimedOut, 124, 0), "0:0");
}

TEST(JobWords, StatesAndReasonsAreOneWord) {
  auto job = job_of(JobState::Pending);
  EXPECT_EQ(reason_word(job), "None");
  job.add_reasons("waits for job 3 to succeed (afterok:3)");
  EXPECT_EQ(reason_word(job), "Dependency");
  job.set_reasons(0, "held until it is released");
  EXPECT_EQ(reason_word(job), "JobHeldUser");
  job.set_reasons(0, "4 nodes are busy");
  EXPECT_EQ(reason_word(job), "Resources");
  EXPECT_EQ(reason_word(job_of(JobState::Failed)), "NonZeroExitCode");
  EXPECT_EQ(record_state(job_of(JobState::Launching)), "PENDING");
  EXPECT_EQ(record_state(job_of(JobState::NodeFailed)), "NODE_FAIL");
  EXPECT_TRUE(is_state("oom", static_cast<std::uint32_t>(JobState::OutOfMemory)));
  EXPECT_TRUE(is_state_word("PREEMPTED"));
  EXPECT_FALSE(is_state_word("nonsense"));
}

TEST(JobWords, CancelledNamesTheUser) {
  auto job = job_of(JobState::Cancelled);
  EXPECT_EQ(record_state(job), "CANCELLED by 1000");
  job.add_reasons("cancelled by root");
  EXPECT_EQ(record_state(job), "CANCELLED by 0");
}

TEST(Account, WidthsCutAndAlign) {
  const auto job = job_of(JobState::OutOfMemory);
  const AccountLine line{&job};
  EXPECT_EQ(account_row("jobid,state", line, AccountStyle::Table), "12           OUT_OF_ME+ \n");
  EXPECT_EQ(account_row("JobID%4,State%20", line, AccountStyle::Table),
            "12          OUT_OF_MEMORY \n");
  EXPECT_EQ(account_row("state%-15,jobid", line, AccountStyle::Table),
            "OUT_OF_MEMORY   12           \n");
  EXPECT_EQ(account_row("jobid,state", line, AccountStyle::Bars), "12|OUT_OF_MEMORY\n");
  EXPECT_EQ(account_row("jobid,state", line, AccountStyle::BarsAtEnd), "12|OUT_OF_MEMORY|\n");
  EXPECT_TRUE(account_row("jobid,x%2", line, AccountStyle::Bars)
                  .starts_with("Invalid field requested: \"x\""));
  EXPECT_EQ(account_row("jobid%x", line, AccountStyle::Bars),
            "'jobid%x': expected a width after '%'");
}

TEST(Account, ScriptAndStepsFollowTheirJob) {
  auto job = job_of(JobState::Completed);
  job.set_allocation(true);
  job.set_started_wall_ns(1);
  auto* step = job.add_steps();
  step->set_step(0);
  step->set_name("hostname");
  step->set_state(static_cast<std::uint32_t>(JobState::Completed));
  std::string ids;
  for (const auto& line : lines_of(job, true)) {
    ids += account_row("jobid,jobname", line, AccountStyle::Bars);
  }
  EXPECT_EQ(ids, "12|sleep\n12.batch|batch\n12.0|hostname\n");
  EXPECT_EQ(lines_of(job, false).size(), 1U);
}

}  // namespace
}  // namespace score::scout::slurm
