#include "base/text/shared_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace score::inline base {
namespace {

TEST(SharedText, ConvertsToString) {
  const SharedText text(std::string("sleep 600"));
  const std::string& read = text;
  EXPECT_EQ(read, "sleep 600");
  EXPECT_EQ(text, std::string("sleep 600"));
  EXPECT_NE(text, SharedText("true"));
  EXPECT_TRUE(SharedText().empty());
  EXPECT_TRUE(SharedText("").empty());
  EXPECT_EQ(SharedText(), SharedText(""));
}

TEST(TextPool, EqualTextsShareMemory) {
  TextPool pool;
  const SharedText first = pool.share("sleep 600");
  const SharedText second = pool.share(std::string("sleep 600"));
  const SharedText other = pool.share("sleep 601");
  EXPECT_EQ(&first.str(), &second.str());
  EXPECT_NE(&first.str(), &other.str());
  EXPECT_EQ(pool.size(), 2U);
  EXPECT_TRUE(pool.share("").empty());
  EXPECT_EQ(pool.size(), 2U);
}

TEST(TextPool, DropsUnusedTexts) {
  TextPool pool;
  std::vector<SharedText> held;
  for (int i = 0; i < 10; ++i) held.push_back(pool.share("held " + std::to_string(i)));
  for (int i = 0; i < 100'000; ++i) (void)pool.share("passing " + std::to_string(i));
  EXPECT_LT(pool.size(), 200U);
  for (int i = 0; i < 10; ++i) {
    const SharedText again = pool.share("held " + std::to_string(i));
    EXPECT_EQ(&again.str(), &held[static_cast<std::size_t>(i)].str());
  }
}

}  // namespace
}  // namespace score::inline base
