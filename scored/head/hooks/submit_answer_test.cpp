#include "scored/head/hooks/submit_answer.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::head {
namespace {

using namespace std::chrono_literals;

TEST(SubmitAnswer, AcceptsWithoutOutput) {
  for (const char* text : {"", " \n", "{}", "{\"accept\": true}\n"}) {
    const auto answer = parse_submit_answer(text);
    ASSERT_TRUE(answer) << text;
    EXPECT_EQ(*answer, SubmitAnswer()) << text;
  }
}

TEST(SubmitAnswer, RefusesWithOneLine) {
  const auto answer = parse_submit_answer("{\"refuse\": \"no more than 100 nodes\"}");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->refusal, "no more than 100 nodes");
  const auto hostile = parse_submit_answer("{\"refuse\": \"a\\u001b[2J\\nb\"}");
  ASSERT_TRUE(hostile);
  EXPECT_EQ(hostile->refusal.find_first_of("\033\n"), std::string::npos);
}

TEST(SubmitAnswer, ReadsEachChange) {
  const auto answer = parse_submit_answer(
      R"({"accept": true, "name": "n", "account": "physics", "reservation": "r", "queue": "high",
          "weight": 7, "time_limit": "1h", "wall_limit": "0s", "memory": "2G",
          "features": ["fast", "big"]})");
  ASSERT_TRUE(answer) << answer.error().context();
  wire::Submit message;
  message.mutable_resources()->add_features("old");
  apply(*answer, message);
  EXPECT_EQ(message.spec().job_name(), "n");
  const auto& request = message.resources();
  EXPECT_EQ(request.account(), "physics");
  EXPECT_EQ(request.reservation(), "r");
  EXPECT_EQ(request.queue(), static_cast<std::uint32_t>(Queue::High));
  EXPECT_EQ(request.weight(), 7U);
  EXPECT_EQ(Duration(request.scheduled_limit_ns()), Duration(1h));
  EXPECT_EQ(request.wall_limit_ns(), 0);
  EXPECT_EQ(Bytes(request.memory_per_node_bytes()), *parse_bytes("2G"));
  ASSERT_EQ(request.features_size(), 2);
  EXPECT_EQ(request.features(1), "big");
}

TEST(SubmitAnswer, ChangesNothingElse) {
  wire::Submit message;
  message.mutable_resources()->set_nodes(3);
  message.mutable_resources()->add_features("old");
  const std::string before = message.SerializeAsString();
  apply(SubmitAnswer(), message);
  EXPECT_EQ(message.SerializeAsString(), before);
}

TEST(SubmitAnswer, RefusesRubbish) {
  for (const char* text : {"yes",
                           "[]",
                           "1",
                           "{\"refuse\": \"\"}",
                           "{\"refuse\": 1}",
                           "{\"accept\": false}",
                           "{\"refuse\": \"x\", \"queue\": \"high\"}",
                           "{\"queue\": \"fast\"}",
                           "{\"queue\": 1}",
                           "{\"weight\": 0}",
                           "{\"weight\": 1.5}",
                           "{\"weight\": 1e300}",
                           "{\"user\": \"root\"}",
                           "{\"nodes\": 1}",
                           "{\"time_limit\": 60}",
                           "{\"time_limit\": \"soon\"}",
                           "{\"time_limit\": \"-1s\"}",
                           "{\"memory\": \"much\"}",
                           "{\"features\": \"x\"}",
                           "{\"features\": [1]}",
                           "{\"name\": \"a\\u0000b\"}",
                           "{\"queue\": \"high\"} {}",
                           "{\"queue\": \"high\""}) {
    EXPECT_FALSE(parse_submit_answer(text)) << text;
  }
}

TEST(SubmitAnswer, SurvivesRandomAndTruncatedText) {
  const std::string whole =
      R"({"accept": true, "name": "n", "queue": "high", "features": ["a", "b"], "weight": 3})";
  for (std::size_t size = 1; size < whole.size(); ++size)
    EXPECT_FALSE(parse_submit_answer(whole.substr(0, size))) << size;
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string text = whole;
    for (int changes = 0; changes < 3; ++changes)
      text[random() % text.size()] = static_cast<char>(random());
    std::ignore = parse_submit_answer(text);
  }
}

TEST(SubmitAnswer, DescribesTheRequest) {
  wire::Submit message;
  auto& program = *message.mutable_spec()->add_programs();
  program.add_argv("./a.out");
  program.add_argv(std::string(5'000, 'x'));
  for (int i = 0; i < 1'000; ++i) program.add_argv("word");
  message.mutable_spec()->set_job_name("a \"name\"\xff");
  message.mutable_spec()->add_env("SECRET=1");
  message.mutable_spec()->set_script("#!/bin/sh\n");
  message.mutable_resources()->set_nodes(101);
  message.mutable_resources()->set_queue(2);
  const std::string text = describe_submission(message, {UserId(1'000), "alice", false});
  for (const char* part : {"\"user\":\"alice\"", "\"uid\":1000", "\"nodes\":101",
                           "\"queue\":\"normal\"", "\"script\":true", "\"argv\":[\"./a.out\","}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
  EXPECT_EQ(text.find("SECRET"), std::string::npos);
  EXPECT_LT(text.size(), 4'096U);
}

}  // namespace
}  // namespace score::head
