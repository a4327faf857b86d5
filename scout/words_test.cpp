#include "scout/words.hpp"

#include <gtest/gtest.h>

namespace score::scout {
namespace {

std::string moment(std::int64_t wall_ns) {
  JsonWriter json(JsonWriter::Layout::Line);
  write_moment(json.begin_object(), "t", wall_ns);
  return json.end_object().take();
}

TEST(Words, MomentsKeepTheirMillisecondsAndAreNeverRoundedUp) {
  EXPECT_EQ(moment(1'795'294'384'802'999'999), R"({"t":1795294384.802})");
  EXPECT_EQ(moment(1'795'294'384'999'999'999), R"({"t":1795294384.999})");
  EXPECT_EQ(moment(1'795'294'384'000'000'000), R"({"t":1795294384.000})");
  EXPECT_EQ(moment(0), R"({"t":0})");
}

}  // namespace
}  // namespace score::scout
