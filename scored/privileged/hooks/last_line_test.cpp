#include "scored/privileged/hooks/last_line.hpp"

#include <gtest/gtest.h>

namespace score::hooks {
namespace {

std::string last_of(std::string_view text) {
  LastLine line;
  line.add(text);
  return line.text();
}

TEST(LastLine, IsTheLastThatIsNotBlank) {
  EXPECT_EQ(last_of(""), "");
  EXPECT_EQ(last_of("\n \n\t\n"), "");
  EXPECT_EQ(last_of("one"), "one");
  EXPECT_EQ(last_of("one\ntwo\n\n  \n"), "two");
  EXPECT_EQ(last_of("one\r\ntwo"), "two");
}

TEST(LastLine, MayComeInPieces) {
  LastLine line;
  for (const char* piece : {"first\nse", "cond", "\n", " "}) line.add(piece);
  EXPECT_EQ(line.text(), "second");
}

TEST(LastLine, HasABound) {
  LastLine line;
  for (int i = 0; i < 1'000; ++i) line.add(std::string(1'000, 'x'));
  EXPECT_EQ(line.text().size(), LastLine::kMostBytes);
  line.add("\nshort");
  EXPECT_EQ(line.text(), "short");
}

}  // namespace
}  // namespace score::hooks
