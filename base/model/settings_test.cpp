#include "base/model/settings.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace score::inline base {
namespace {

TEST(Settings, NamesAndKeysAreUnique) {
  std::set<std::string_view> names, keys;
  for (const SettingRule& rule : settings()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_TRUE(keys.insert(rule.key).second) << rule.key;
    EXPECT_EQ(find_setting(rule.name), &rule);
    EXPECT_EQ(&rule_of(rule.setting), &rule);
  }
  EXPECT_EQ(find_setting("quantums"), nullptr);
}

TEST(Settings, ReadsBackEveryValueThatItFormats) {
  std::mt19937_64 random(1);
  for (const SettingRule& rule : settings()) {
    std::uniform_int_distribution<SettingValue> values(rule.least, rule.most);
    for (int i = 0; i < 1000; ++i) {
      const SettingValue value = i == 0 ? rule.least : i == 1 ? rule.most : values(random);
      const auto read = parse_setting(rule, format_setting(rule, value));
      ASSERT_TRUE(read) << rule.name;
      EXPECT_EQ(*read, value);
    }
  }
}

TEST(Settings, RefusesOtherTextsWithTheRange) {
  const auto refusal = [](std::string_view name, std::string_view text) {
    const auto read = parse_setting(*find_setting(name), text);
    return read ? "accepted" : read.error().context();
  };
  EXPECT_EQ(refusal("quantum", "1us"), "quantum '1us': use a time from 1ms to 10s");
  EXPECT_EQ(refusal("quantum", "50"), "quantum '50': use a time from 1ms to 10s");
  EXPECT_EQ(refusal("slots", "0"), "slots '0': use a number from 1 to 64");
  EXPECT_EQ(refusal("slots", "99999999999999999999"),
            "slots '99999999999999999999': use a number from 1 to 64");
  EXPECT_EQ(refusal("fill", "yes\n"), "fill 'yes\\n': use on or off");
  for (const SettingRule& rule : settings()) {
    EXPECT_FALSE(check_setting(rule, rule.least - 1));
    EXPECT_FALSE(check_setting(rule, rule.most + 1));
    EXPECT_FALSE(parse_setting(rule, ""));
  }
}

}  // namespace
}  // namespace score::inline base
