#include "gang/leadership/witness.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLease = 2s;
constexpr TimePoint kStart{std::chrono::hours(1)};

LeaseRequest wants(HeadIndex head, std::uint64_t term, LogMark mark = {}) {
  LeaseRequest request;
  request.head = head;
  request.term = Epoch(term);
  request.wants = true;
  request.mark = mark;
  return request;
}

TEST(Witness, GrantsOneHeadAtATime) {
  Witness witness({}, kLease, kStart - kLease);
  EXPECT_TRUE(witness.answer(wants(0, 5), kStart).granted);
  const LeaseReply refused = witness.answer(wants(1, 6), kStart + kLease - 1ns);
  EXPECT_FALSE(refused.granted);
  EXPECT_FALSE(refused.is_free);
  EXPECT_EQ(refused.term, Epoch(5));
  EXPECT_TRUE(witness.answer(wants(1, 6), kStart + kLease).granted);
  EXPECT_FALSE(witness.answer(wants(0, 5), kStart + 2 * kLease).granted) << "of an earlier term";
}

TEST(Witness, RenewalExtendsTheLease) {
  Witness witness({}, kLease, kStart - kLease);
  EXPECT_TRUE(witness.answer(wants(0, 5), kStart).granted);
  EXPECT_TRUE(witness.answer(wants(0, 5), kStart + 1s).granted);
  EXPECT_FALSE(witness.answer(wants(1, 6), kStart + kLease).granted);
  EXPECT_TRUE(witness.answer(wants(1, 6), kStart + kLease + 1s).granted);
}

TEST(Witness, TwoHeadsNeverShareATerm) {
  Witness witness({}, kLease, kStart - kLease);
  EXPECT_TRUE(witness.answer(wants(0, 5), kStart).granted);
  EXPECT_FALSE(witness.answer(wants(1, 5), kStart + 2 * kLease).granted);
}

TEST(Witness, QuestionGrantsNoLease) {
  Witness witness({}, kLease, kStart - kLease);
  LeaseRequest question = wants(0, 5);
  question.wants = false;
  const LeaseReply reply = witness.answer(question, kStart);
  EXPECT_TRUE(reply.is_free);
  EXPECT_FALSE(reply.granted);
  EXPECT_EQ(witness.memory(), Witness::Memory());
}

TEST(Witness, RestartedWitnessServesOnlyItsHolderAtFirst) {
  Witness forgot({}, kLease, kStart);
  EXPECT_FALSE(forgot.answer(wants(0, 5), kStart + kLease - 1ns).granted);
  EXPECT_TRUE(forgot.answer(wants(0, 5), kStart + kLease).granted);
  Witness remembers({Epoch(5), 0, {}}, kLease, kStart);
  EXPECT_FALSE(remembers.answer(wants(1, 6), kStart).granted);
  EXPECT_TRUE(remembers.answer(wants(0, 5), kStart).granted);
}

TEST(Witness, KeepsNewestMarkOfGrantedHeads) {
  Witness witness({}, kLease, kStart - kLease);
  const LogMark both{Epoch(5), 2, 3};
  const LogMark alone{Epoch(5), 3, 1};
  EXPECT_EQ(witness.answer(wants(0, 5, alone), kStart).mark, alone);
  EXPECT_EQ(witness.answer(wants(0, 5, both), kStart).mark, alone) << "late";
  EXPECT_EQ(witness.answer(wants(1, 6, {Epoch(6), 1, 2}), kStart).mark, alone) << "not granted";
}

}  // namespace
}  // namespace score::gang
