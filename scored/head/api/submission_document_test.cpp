// Tests the document of a submission: its members, its faults and hostile texts.
#include "scored/head/api/submission_document.hpp"

#include "base/limits.hpp"
#include "base/model/model.hpp"
#include "base/request/job_keys.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace score::head {
namespace {

constexpr WallTime kRead{std::chrono::seconds(1'800'000'000)};

wire::Submit sound(std::string_view document) {
  RequestFault fault;
  auto submit = read_submission(document, kRead, fault);
  EXPECT_TRUE(submit) << fault.text;
  return submit ? *submit : wire::Submit();
}

RequestFault fault_of(std::string_view document) {
  RequestFault fault;
  EXPECT_FALSE(read_submission(document, kRead, fault)) << document;
  return fault;
}

TEST(SubmissionDocument, ReadsAMinimalJob) {
  const auto submit = sound(R"({"command":["/bin/echo","hello"],"directory":"/tmp"})");
  EXPECT_EQ(submit.spec().programs(0).argv_size(), 2);
  EXPECT_EQ(submit.spec().job_name(), "echo");
  EXPECT_EQ(submit.spec().stdin_rank(), -2);
  EXPECT_EQ(submit.resources().tasks(), 1U);
  EXPECT_EQ(submit.resources().queue(), static_cast<std::uint32_t>(Queue::Normal));
  EXPECT_EQ(submit.resources().weight(), limits::kDefaultWeight);
  EXPECT_TRUE(submit.detached());
}

TEST(SubmissionDocument, ReadsTextsAndNumbers) {
  const auto submit = sound(
      R"({"command":["a"],"directory":"/tmp","nodes":"2-4","memory":"2G","time":"1h30m",
          "wall_time":90,"scratch":1048576,"priority":-3,"after":"afterok:7,singleton",
          "begin":"1h","deadline":1900000000,"environment":["A=b","C="],"nodelist":"n[0-1]",
          "gres":"gpu:2","queue":"high","requeue":false,"net":"pm","mpi":"pmix",
          "switches":"2@10m"})");
  const auto& resources = submit.resources();
  EXPECT_EQ(resources.switches(), 2U);
  EXPECT_EQ(Duration(resources.switches_wait_ns()), Duration(600s));
  EXPECT_EQ(resources.nodes(), 2U);
  EXPECT_EQ(resources.most_nodes(), 4U);
  EXPECT_EQ(resources.memory_per_node_bytes(), std::uint64_t{2} << 30U);
  EXPECT_EQ(resources.scheduled_limit_ns(), Duration(90min).count());
  EXPECT_EQ(resources.wall_limit_ns(), Duration(90s).count());
  EXPECT_EQ(resources.priority(), -3);
  EXPECT_EQ(resources.only_nodes_size(), 2);
  EXPECT_EQ(resources.generic(0).count(), 2U);
  EXPECT_EQ(resources.requeue(), static_cast<std::uint32_t>(Requeue::No));
  EXPECT_EQ(submit.conditions().after(0).job(), 7U);
  EXPECT_TRUE(submit.conditions().singleton());
  EXPECT_EQ(submit.conditions().begin_wall_ns(), (kRead + 1h).time_since_epoch().count());
  EXPECT_EQ(submit.conditions().deadline_wall_ns(), 1'900'000'000LL * 1'000'000'000);
  EXPECT_EQ(submit.spec().env_size(), 2);
  EXPECT_EQ(submit.spec().net(), wire::LaunchSpec::PM);
}

TEST(SubmissionDocument, ScriptBecomesABatchJob) {
  const auto submit = sound(R"({"script":"#!/bin/sh\necho\n","directory":"/","output":"o-%j"})");
  EXPECT_TRUE(submit.resources().allocation());
  EXPECT_EQ(submit.spec().mpi(), wire::LaunchSpec::NONE);
  EXPECT_EQ(submit.spec().stderr_path(), "o-%j");
}

TEST(SubmissionDocument, NullIsAsIfAbsent) {
  EXPECT_EQ(sound(R"({"command":["a"],"directory":"/","nodes":null})").resources().nodes(), 0U);
}

TEST(SubmissionDocument, FaultNamesItsMember) {
  constexpr std::pair<const char*, const char*> kFaults[] = {
      {R"({"directory":"/tmp"})", "command"},
      {R"({"command":["a"]})", "directory"},
      {R"({"command":["a"],"directory":"tmp"})", "directory"},
      {R"({"command":"a","directory":"/"})", "command"},
      {R"({"command":[],"directory":"/"})", "command"},
      {R"({"command":["a"],"directory":"/","nodse":4})", "nodse"},
      {R"({"command":["a"],"directory":"/","nodes":0})", "nodes"},
      {R"({"command":["a"],"directory":"/","nodes":1.5})", "nodes"},
      {R"({"command":["a"],"directory":"/","nodes":"4-2"})", "nodes"},
      {R"({"command":["a"],"directory":"/","tasks":1e300})", "tasks"},
      {R"({"command":["a"],"directory":"/","time":-1})", "time"},
      {R"({"command":["a"],"directory":"/","time":"soon"})", "time"},
      {R"({"command":["a"],"directory":"/","memory":"lots"})", "memory"},
      {R"({"command":["a"],"directory":"/","memory":12})", "memory"},
      {R"({"command":["a"],"directory":"/","queue":"fast"})", "queue"},
      {R"({"command":["a"],"directory":"/","environment":["A"]})", "environment"},
      {R"({"command":["a"],"directory":"/","after":"ok:x"})", "after"},
      {R"({"command":["a"],"directory":"/","hold":"yes"})", "hold"},
      {R"({"command":["a"],"directory":"/","nodelist":"n[3-1]"})", "nodelist"},
      {R"([1])", ""},
      {R"({"command":["a"],)", ""},
  };
  for (const auto& [document, field] : kFaults) {
    const auto fault = fault_of(document);
    EXPECT_EQ(fault.field, field) << document;
    EXPECT_FALSE(fault.text.empty()) << document;
    EXPECT_EQ(fault.text.find('\n'), std::string::npos) << fault.text;
  }
}

wire::ChangeJob change_of(std::string_view document) {
  RequestFault fault;
  auto change = read_change(document, kRead, fault);
  EXPECT_TRUE(change) << fault.text;
  return change ? *change : wire::ChangeJob();
}

TEST(ChangeDocument, MembersBecomeKeys) {
  const auto change = change_of(
      R"({"time":"2h","name":"b","requeue":true,"tasks":4,"signal":"B:USR1@2m","memory":null})");
  EXPECT_EQ(change.resources().scheduled_limit_ns(), Duration(2h).count());
  EXPECT_EQ(change.name(), "b");
  EXPECT_EQ(change.resources().tasks(), 4U);
  EXPECT_EQ(change.resources().limit_signal_before_ns(), Duration(120s).count());
  EXPECT_TRUE(change.resources().limit_signal_script());
  EXPECT_EQ(change.resources().memory_per_node_bytes(), 0U);
  EXPECT_EQ(change.keys_size(), 6);
  EXPECT_EQ(change_of(R"({"after":"none"})").keys(0), static_cast<std::uint32_t>(JobKey::After));
}

TEST(ChangeDocument, EveryKeyOfACommandIsAMember) {
  for (const JobKeyRule& rule : job_keys()) {
    if (!rule.may_be_none) continue;
    const auto word = rule.key == JobKey::TasksPerNode ? "tasks_per_node"
                      : rule.key == JobKey::Memory     ? "memory"
                                                       : std::string(rule.name);
    std::string name(word);
    std::ranges::replace(name, '-', '_');
    EXPECT_EQ(change_of(fmt::format(R"({{"{}":null}})", name)).keys(0),
              static_cast<std::uint32_t>(rule.key));
  }
}

TEST(ChangeDocument, FaultsNameTheMember) {
  constexpr std::pair<std::string_view, std::string_view> kFaults[] = {
      {R"({})", ""},
      {R"([])", ""},
      {R"({"command":["a"]})", "command"},
      {R"({"time":"soon"})", "time"},
      {R"({"name":null})", "name"},
      {R"({"tasks":"none"})", "tasks"},
  };
  for (const auto& [document, field] : kFaults) {
    RequestFault fault;
    EXPECT_FALSE(read_change(document, kRead, fault)) << document;
    EXPECT_EQ(fault.field, field) << document;
    EXPECT_EQ(fault.text.find('\n'), std::string::npos);
  }
}

TEST(ChangeDocument, AnyBytesGiveAChangeOrOneLine) {
  const std::string sound =
      R"({"time":"2h","name":"b","nodes":"2-4","after":null,"signal":"TERM"})";
  std::mt19937 random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = sound;
    for (int n = 0; n < 3; ++n) text[random() % text.size()] = static_cast<char>(random());
    RequestFault fault;
    const auto change = read_change(text, kRead, fault);
    EXPECT_TRUE(change || !fault.text.empty());
    EXPECT_EQ(fault.text.find('\n'), std::string::npos);
  }
}

TEST(SubmissionDocument, AnyBytesGiveASubmissionOrOneLine) {
  const std::string sound =
      R"({"command":["a","b"],"directory":"/tmp","nodes":"2-4","time":90,"environment":["A=b"]})";
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = sound;
    for (int change = 0; change < 3; ++change) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    text.resize(random() % (text.size() + 1));
    RequestFault fault;
    const auto submit = read_submission(text, kRead, fault);
    EXPECT_TRUE(submit || !fault.text.empty());
    EXPECT_EQ(fault.text.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace score::head
