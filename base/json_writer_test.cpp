#include "base/json_writer.hpp"

#include <gtest/gtest.h>

#include <limits>
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

TEST(JsonWriter, EscapesWhateverTextHolds) {
  JsonWriter json;
  json.value("a\"b\\c\n\x01\x1b[m\xff\xc3\xa4\xed\xa0\x80");
  EXPECT_EQ(
      json.text(),
      "\"a\\\"b\\\\c\\n\\u0001\\u001b[m\xEF\xBF\xBD\xc3\xa4\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonWriter, HasNoWordForInfinity) {
  JsonWriter json;
  json.value(1.0 / 0.0);
  EXPECT_EQ(json.text(), "null");
}

TEST(JsonWriter, KeepsALineALine) {
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

}  // namespace
}  // namespace score
