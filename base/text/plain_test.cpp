#include "base/text/plain.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

namespace score {
namespace {

TEST(Plain, CountsHaveTheirPlural) {
  EXPECT_EQ(counted(1, "node"), "1 node");
  EXPECT_EQ(counted(0, "node"), "0 nodes");
  EXPECT_EQ(counted(12, "task"), "12 tasks");
}

TEST(Plain, RangeNamesBothLimits) {
  EXPECT_EQ(range_words("0.1", "10"), "from 0.1 to 10");
}

TEST(Plain, NearestWordIsFoundForTypingErrors) {
  const std::vector<std::string> known = {"--nodes", "--nice", "--ntasks", "--time", "-t"};
  EXPECT_EQ(nearest_word("--nodse", known), "--nodes");
  EXPECT_EQ(nearest_word("--ndes", known), "--nodes");
  EXPECT_EQ(nearest_word("--tmie", known), "--time");
  EXPECT_EQ(nearest_word("--partition", known), "");
  EXPECT_EQ(nearest_word("", known), "");
  EXPECT_EQ(nearest_word("-x", known), "");
  EXPECT_EQ(nearest_word(std::string(1'000'000, 'a'), known), "");
}

TEST(Plain, PlainTextOmitsOurOwnCodes) {
  EXPECT_EQ(plain_text(fail(Errc::Malformed, "'x' is not a number")), "'x' is not a number");
  EXPECT_EQ(plain_text(Error(Errc::Timeout)), "timed out");
  EXPECT_EQ(plain_text(fail(std::make_error_code(std::errc::no_such_file_or_directory), "open x")),
            "open x: No such file or directory");
}

TEST(Plain, ValidUtf8ReplacesOnlyInvalidBytes) {
  EXPECT_EQ(valid_utf8("a\xff\x1b[1m \xc3\xa9\xc3"), "a\xEF\xBF\xBD\x1b[1m \xc3\xa9\xEF\xBF\xBD");
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace score
