#include "base/text.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace score {
namespace {

TEST(ParseNumber, ParsesTheWholeTextOrNothing) {
  EXPECT_EQ(parse_number<std::uint32_t>("4294967295").value(), 4294967295U);
  EXPECT_EQ(parse_number<int>("-5").value(), -5);
  for (const auto* text : {"", " 1", "1 ", "+1", "1x", "0x10", "1.0", "-"}) {
    EXPECT_TRUE(parse_number<int>(text).error().is(Errc::Malformed)) << text;
  }
  EXPECT_TRUE(parse_number<std::uint32_t>("-1").error().is(Errc::Malformed));
  EXPECT_TRUE(parse_number<std::uint32_t>("4294967296").error().is(Errc::TooLarge));
}

TEST(Split, KeepsEmptyParts) {
  const std::vector<std::string_view> expected = {"a", "", "b", ""};
  EXPECT_EQ(split("a,,b,", ','), expected);
  EXPECT_EQ(split("", ',').size(), 1U);
}

TEST(Trim, RemovesBlanksAtBothEnds) {
  EXPECT_EQ(trim(" \ta b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(EscapeTerminal, EscapesControlCharacters) {
  EXPECT_EQ(escape_terminal("a\x1b[2Jb\n"), "a\\x1b[2Jb\\n");
  EXPECT_EQ(escape_terminal("\xc2\x9b"
                            "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(escape_terminal(std::string_view("\0\x7f", 2)), "\\x00\\x7f");
}

TEST(EscapeTerminal, KeepsWellFormedTextOfOtherLanguages) {
  EXPECT_EQ(escape_terminal("並列 naïve 🚀"), "並列 naïve 🚀");
}

TEST(EscapeTerminal, EscapesMarksThatReorderOrHideText) {
  EXPECT_EQ(escape_terminal("\u202egnp.exe"), "\\xe2\\x80\\xaegnp.exe");
  for (const char* mark :
       {"\u00ad", "\u061c", "\u180e", "\u200b", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a",
        "\u2060", "\u2066", "\u2069", "\u206f", "\ufeff", "\ufff9", "\U000e0001", "\U000e007f"}) {
    EXPECT_EQ(escape_terminal(mark).substr(0, 2), "\\x") << escape_terminal(mark);
    EXPECT_EQ(quote_value(mark).substr(0, 3), "\"\\x") << quote_value(mark);
  }
  for (const char* kept : {"\u200c", "\u200d", "\u00ac", "\u2010", "\u2027", "\u202f", "\u2070",
                           "\ufefe", "\ufffd", "\U000e0080"}) {
    EXPECT_EQ(escape_terminal(kept), kept);
  }
}

TEST(EscapeTerminal, EscapesMalformedUtf8) {
  EXPECT_EQ(escape_terminal("\xff"), "\\xff");
  EXPECT_EQ(escape_terminal("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(escape_terminal("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(escape_terminal("\xe4\xb8"), "\\xe4\\xb8");           // cut off
}

TEST(EscapeTerminal, CutsBetweenCharactersAndMarksIt) {
  EXPECT_EQ(escape_terminal("abcdef", 6), "abcdef");
  EXPECT_EQ(escape_terminal("abcdefg", 6), "abc...");
  EXPECT_EQ(escape_terminal("並列計算", 10), "並列...");
}

TEST(EscapeTerminal, IsPrintableAndBoundedForRandomBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::string bytes(random() % 100, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const auto out = escape_terminal(bytes, 64);
    EXPECT_LE(out.size(), 64U);
    for (const char c : out) EXPECT_TRUE(static_cast<std::uint8_t>(c) >= 0x20 && c != 0x7f);
  }
}

TEST(QuoteValue, QuotesTextThatIsNotPlain) {
  EXPECT_EQ(quote_value("a.out"), "a.out");
  EXPECT_EQ(quote_value(""), "\"\"");
  EXPECT_EQ(quote_value("a b"), "\"a b\"");
  EXPECT_EQ(quote_value("x=1"), "\"x=1\"");
  EXPECT_EQ(quote_value("say \"hi\\\"\n"), "\"say \\\"hi\\\\\\\"\\n\"");
}

TEST(LastLine, IsTrimmedAndEscaped) {
  EXPECT_EQ(last_line("first\n second \x1b[1m\r\n\n"), "second \\x1b[1m");
  EXPECT_EQ(last_line("one"), "one");
  EXPECT_EQ(last_line(" \n"), "");
}

TEST(QuoteValue, CannotForgeASecondLineOrKey) {
  EXPECT_EQ(quote_value("x\n<2>root job=1"), "\"x\\n<2>root job=1\"");
}

TEST(QuoteValue, IsBounded) {
  EXPECT_LE(quote_value(std::string(5000, 'a'), 100).size(), 100U);
}

}  // namespace
}  // namespace score
