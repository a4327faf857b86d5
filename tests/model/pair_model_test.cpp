// The search visits every state of the shipped engine, and of the engine with one repair removed.
// It must find a violation in each of the latter, or it would prove nothing.
#include "tests/model/pair_model.hpp"

#include <gtest/gtest.h>

namespace score::pm::model {
namespace {

struct WithoutG1 : SmallRules {
  static constexpr bool kG1 = false;
};

struct WithoutG4 : SmallRules {
  static constexpr bool kG4 = false;
};

struct WithoutG7 : SmallRules {
  static constexpr bool kG7 = false;
};

struct WithoutG8 : SmallRules {
  static constexpr bool kG8 = false;
};

struct WithoutG9 : SmallRules {
  static constexpr bool kG9 = false;
};

struct WithoutG10 : SmallRules {
  static constexpr bool kG10 = false;
};

constexpr Network kFifo{};
constexpr Network kWild{.reorder = true, .duplicate = true};

void expect_clean(const Findings& found) {
  EXPECT_FALSE(found.truncated);
  EXPECT_EQ(found.unsafe, "");
  EXPECT_EQ(found.stuck, 0u);
}

TEST(PairModel, RulesAreSafeAndLiveOverLossyFifo) {
  const Findings found =
      PairModel<SmallRules>({.messages = 5, .window = 3, .buffers = 2}, kFifo).explore();
  expect_clean(found);
  EXPECT_GE(found.states, 100'000u);
  RecordProperty("states", static_cast<int>(found.states));
}

TEST(PairModel, RulesAreSafeAndLiveOverWorstNetwork) {
  const Findings found =
      PairModel<SmallRules>({.messages = 3, .window = 3, .buffers = 1}, kWild).explore();
  expect_clean(found);
  RecordProperty("states", static_cast<int>(found.states));
}

TEST(PairModel, NumbersMayWrap) {
  expect_clean(
      PairModel<SmallRules>({.messages = 4, .window = 3, .buffers = 1, .start = 253}, kFifo)
          .explore());
}

TEST(PairModel, WindowOfOneWorks) {
  expect_clean(PairModel<SmallRules>({.messages = 3, .window = 1, .buffers = 1}, kWild).explore());
}

template <class R>
bool is_broken() {
  for (const Network& network : {kFifo, kWild}) {
    const Findings found =
        PairModel<R>({.messages = 3, .window = 3, .buffers = 1}, network).explore();
    if (!found.unsafe.empty() || found.stuck > 0) return true;
  }
  return false;
}

TEST(PairModel, ShippedRulesPassTheBoundsOfTheRepairs) {
  EXPECT_FALSE(is_broken<SmallRules>());
}

TEST(PairModel, BreaksWithoutG1) {
  EXPECT_TRUE(is_broken<WithoutG1>());
}

TEST(PairModel, BreaksWithoutG4) {
  EXPECT_TRUE(is_broken<WithoutG4>());
}

TEST(PairModel, BreaksWithoutG7) {
  EXPECT_TRUE(is_broken<WithoutG7>());
}

TEST(PairModel, BreaksWithoutG8) {
  EXPECT_TRUE(is_broken<WithoutG8>());
}

TEST(PairModel, BreaksWithoutG9) {
  EXPECT_TRUE(is_broken<WithoutG9>());
}

TEST(PairModel, BreaksWithoutG10) {
  EXPECT_TRUE(is_broken<WithoutG10>());
}

}  // namespace
}  // namespace score::pm::model
