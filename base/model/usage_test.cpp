#include "base/model/usage.hpp"

#include <gtest/gtest.h>

namespace score::base {
namespace {

using namespace std::chrono_literals;

Usage some_usage() {
  Usage usage;
  usage.cpu_user = 1'500'000'001ns;
  usage.memory_peak = Bytes(400);
  usage.memory_peak_sum = Bytes(400);
  usage.read = Bytes(Usage::kMost);
  usage.pm_messages = Usage::kMost - 1;
  usage.nodes_unknown = 1;
  return usage;
}

TEST(Usage, NodesAreAddedWithinTheLimit) {
  Usage sum = some_usage();
  Usage other = some_usage();
  other.memory_peak = Bytes(300);
  other.memory_peak_sum = Bytes(300);
  sum += other;
  EXPECT_EQ(sum.cpu_user, 3'000'000'002ns);
  EXPECT_EQ(sum.memory_peak, Bytes(400));
  EXPECT_EQ(sum.memory_peak_sum, Bytes(700));
  EXPECT_EQ(sum.read, Bytes(Usage::kMost));
  EXPECT_EQ(sum.pm_messages, Usage::kMost);
  EXPECT_EQ(sum.nodes_unknown, 2U);
}

TEST(Usage, StepsShareTheMemoryOfTheirJob) {
  Usage sum = some_usage();
  sum.add_step(some_usage());
  EXPECT_EQ(sum.cpu_user, 3'000'000'002ns);
  EXPECT_EQ(sum.memory_peak_sum, Bytes(400));
}

TEST(Usage, JsonHasEveryValue) {
  JsonWriter json(JsonWriter::Layout::Line);
  write_usage(json.begin_object(), some_usage());
  const std::string text = json.end_object().text();
  EXPECT_NE(text.find("\"cpu_user_s\":1.500000001"), std::string::npos) << text;
  std::size_t count = 0;
  const Usage usage;
  each_value(usage, [&](std::string_view key, const auto&) {
    EXPECT_NE(text.find(key), std::string::npos) << key;
    ++count;
  });
  EXPECT_EQ(count, 15U);
}

}  // namespace
}  // namespace score::base
