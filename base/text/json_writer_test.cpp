#include "base/text/json_writer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace score {
namespace {

TEST(JsonWriter, NestsAndSeparates) {
  JsonWriter json;
  json.begin_object().field("a", 1).list("b", std::vector<int>{1, 2});
  json.key("c").begin_object().field("d", "x").field("e", true).end_object().end_object();
  EXPECT_EQ(json.text(),
            "{\n  \"a\": 1,\n  \"b\": [\n    1,\n    2\n  ],\n  \"c\": {\n    \"d\": \"x\",\n    "
            "\"e\": true\n  }\n}");
}

TEST(JsonWriter, EscapesControlAndMalformedBytes) {
  JsonWriter json;
  json.value("a\"b\\c\n\x01\x1b[m\xff\xc3\xa4\xed\xa0\x80");
  EXPECT_EQ(
      json.text(),
      "\"a\\\"b\\\\c\\n\\u0001\\u001b[m\xEF\xBF\xBD\xc3\xa4\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonWriter, WritesNullForInfinity) {
  JsonWriter json;
  json.value(1.0 / 0.0);
  EXPECT_EQ(json.text(), "null");
}

TEST(JsonWriter, LineLayoutHasNoLineBreaks) {
  JsonWriter json(JsonWriter::Layout::Line);
  json.begin_object().list("a", std::vector<int>{1, 2}).field("b", "x\ny");
  json.key("c").begin_object().field("d", 0.1).end_object().end_object();
  EXPECT_EQ(json.text(), R"({"a":[1,2],"b":"x\ny","c":{"d":0.1}})");
}

TEST(JsonWriter, WritesTimesToTheMicrosecond) {
  JsonWriter json(JsonWriter::Layout::Line);
  json.begin_array().fixed(12'345'678.000001, 6).fixed(0.5, 3).fixed(1.0 / 0.0, 3).end_array();
  EXPECT_EQ(json.text(), "[12345678.000001,0.500,null]");
}

TEST(JsonWriter, WritesNumbersShort) {
  JsonWriter json(JsonWriter::Layout::Line);
  json.begin_array().value(0.25).value(1e9).value(1.0 / 3).value(
      std::uint64_t{18'446'744'073'709'551'615U});
  json.value(std::numeric_limits<double>::quiet_NaN()).value(-5).end_array();
  EXPECT_EQ(json.text(), "[0.25,1000000000,0.3333333333,18446744073709551615,null,-5]");
}

std::string written(double number) {
  JsonWriter json(JsonWriter::Layout::Line);
  json.value(number);
  return json.text();
}

TEST(JsonWriter, WritesTenDigitsOfEveryNumber) {
  EXPECT_EQ(written(0), "0");
  EXPECT_EQ(written(-0.5), "-0.5");
  EXPECT_EQ(written(9'999'999'999.0), "9999999999");
  EXPECT_EQ(written(1e-9), "0.000000001");
  EXPECT_EQ(written(0.000'012'5), "0.0000125");
  EXPECT_EQ(written(123'456.789'1), "123456.7891");
  std::mt19937_64 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const double scale = std::pow(10.0, static_cast<int>(random() % 30) - 15);
    double number = static_cast<double>(random() % 2'000'000'000) * scale - 1e3 * scale;
    if (i % 3 == 0) number = std::round(number * 1e4) / 1e4;
    const double read = std::stod(written(number));
    EXPECT_EQ(read, std::stod(fmt::format("{:.10g}", number))) << fmt::format("{:.17g}", number);
  }
}

TEST(JsonWriter, WritesSixDecimalsOfEveryTime) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const auto ns = static_cast<std::int64_t>(random() % 4'000'000'000'000'000) - 1'000;
    const double time = static_cast<double>(ns) / 1e9;
    JsonWriter json(JsonWriter::Layout::Line);
    const std::string text = json.fixed(time, 6).text();
    ASSERT_EQ(text.find('.'), text.size() - 7) << text;
    EXPECT_NEAR(std::stod(text), time, 0.6e-6) << text;
  }
}

}  // namespace
}  // namespace score
