// Tests the tables, and that docs/reference/states.md shows them.
#include "gang/job/attempt_phase.hpp"
#include "gang/job/job_state.hpp"
#include "gang/node/idle_state.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

namespace score::gang {
namespace {

template <typename Steps>
std::string rows_of(const Steps& steps) {
  std::string out = "| from | event | to |\n| --- | --- | --- |\n";
  for (const auto& step : steps) {
    out += fmt::format("| {} | {} | {} |\n", to_string(step.from), to_string(step.event),
                       to_string(step.to));
  }
  return out;
}

std::string rows_with_actions(const auto& steps) {
  std::string out = "| from | event | to | action |\n| --- | --- | --- | --- |\n";
  for (const auto& step : steps) {
    out += fmt::format("| {} | {} | {} | {} |\n", to_string(step.from), to_string(step.event),
                       to_string(step.to), to_string(step.action));
  }
  return out;
}

std::string section(const std::string& name) {
  std::ifstream file(SCORE_SOURCE_DIR "/docs/reference/states.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const std::string begin = "<!-- " + name + " -->\n";
  const auto from = all.find(begin);
  if (from == std::string::npos) return "no section " + name;
  const auto start = from + begin.size();
  return all.substr(start, all.find("<!-- end -->", start) - start);
}

TEST(States, DocumentShowsTheTables) {
  EXPECT_EQ(section("job steps"), rows_of(kJobSteps));
  EXPECT_EQ(section("attempt steps"), rows_of(kAttemptSteps));
  EXPECT_EQ(section("idle steps"), rows_with_actions(kIdleSteps));
}

template <typename Steps>
void expect_sane(const Steps& steps) {
  std::set<std::pair<int, int>> pairs;
  std::set<int> reached;
  for (const auto& step : steps) {
    EXPECT_TRUE(pairs.emplace(int(step.from), int(step.event)).second) << "a pair is listed twice";
    reached.insert(int(step.to));
  }
  const int start = int(steps.front().from);
  for (const auto& step : steps) {
    EXPECT_TRUE(int(step.from) == start || reached.contains(int(step.from)))
        << to_string(step.from) << " is not reachable";
  }
}

TEST(States, PairsAreUniqueAndStatesReachable) {
  expect_sane(kJobSteps);
  expect_sane(kAttemptSteps);
  expect_sane(kIdleSteps);
}

}  // namespace
}  // namespace score::gang
