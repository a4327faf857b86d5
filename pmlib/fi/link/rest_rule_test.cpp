#include "pmlib/fi/link/rest_rule.hpp"

#include <gtest/gtest.h>

namespace score::pm::fi {
namespace {

// Describes a rank alone on its node that waits in MPI_Recv for a message that PM will bring.
WaitFacts receiving(MpiImplementation library) {
  return {.has_near_ranks = false,
          .library = library,
          .call = MpiWait::Receive,
          .may_others_call = false,
          .may_end_by_file = false,
          .has_receive = true};
}

// Describes the same rank with other ranks on its node.
WaitFacts near(MpiImplementation library) {
  WaitFacts w = receiving(library);
  w.has_near_ranks = true;
  return w;
}

constexpr auto kMpich = MpiImplementation::Mpich, kOpenMpi = MpiImplementation::OpenMpi;
constexpr auto kOther = MpiImplementation::Other;
constexpr auto kWorks = ContextState::Works, kRests = ContextState::Rests;
constexpr auto kWaits = ContextState::Waits;

TEST(RestRule, LoneRankWaitsInReceive) {
  EXPECT_EQ(state_of(receiving(kMpich)), kWaits);
  EXPECT_EQ(state_of(receiving(kOpenMpi)), kWaits);
}

TEST(RestRule, MpichWithNearRanksNeverRests) {
  for (const MpiWait call :
       {MpiWait::None, MpiWait::Receive, MpiWait::Request, MpiWait::Collective, MpiWait::Memory}) {
    WaitFacts w = near(kMpich);
    w.call = call;
    w.has_own_receive = w.has_request = w.has_peeked = w.returns_at_once = true;
    EXPECT_EQ(state_of(w), kWorks);
    EXPECT_TRUE(never_rests(w));
  }
}

TEST(RestRule, MpichWithoutSharedMemoryMayWait) {
  WaitFacts w = near(kMpich);
  w.is_near_by_pm = true;
  EXPECT_EQ(state_of(w), kWaits);
  EXPECT_FALSE(never_rests(w));
}

TEST(RestRule, OpenMpiMayWaitWithNearRanks) {
  EXPECT_EQ(state_of(near(kOpenMpi)), kWaits);
}

TEST(RestRule, RankWithoutPmWorkKeepsPolling) {
  for (const MpiImplementation library : {kMpich, kOpenMpi}) {
    for (const MpiWait call : {MpiWait::None, MpiWait::Receive, MpiWait::Request}) {
      WaitFacts w = receiving(library);
      w.call = call;
      w.has_receive = false;
      w.returns_at_once = true;
      EXPECT_EQ(state_of(w), kWorks) << "Open MPI's BTLs, a message to itself";
    }
  }
}

TEST(RestRule, ProbeWaitsForItsMessage) {
  WaitFacts w = receiving(kMpich);
  w.has_receive = false;
  w.has_peeked = true;
  EXPECT_EQ(state_of(w), kWaits);
}

// The call uses a window of its own memory, or of its node.
TEST(RestRule, WindowAccessNeverRests) {
  WaitFacts w = receiving(kMpich);
  w.call = MpiWait::Memory;
  w.has_own_receive = w.has_request = w.returns_at_once = true;
  EXPECT_EQ(state_of(w), kWorks);
}

TEST(RestRule, CollectiveWaitsForLibraryMessage) {
  WaitFacts w = receiving(kOpenMpi);
  w.call = MpiWait::Collective;
  EXPECT_EQ(state_of(w), kWorks) << "the receive may be the program's";
  w.has_request = true;
  EXPECT_EQ(state_of(w), kRests);
  w.has_own_receive = true;
  EXPECT_EQ(state_of(w), kWaits);
}

TEST(RestRule, QuickTestRestsWithoutDeadlock) {
  WaitFacts w = receiving(kMpich);
  w.call = MpiWait::None;
  EXPECT_EQ(state_of(w), kWorks) << "the program does something between its tests";
  w.returns_at_once = true;
  EXPECT_EQ(state_of(w), kRests);
  w = near(kOpenMpi);
  w.call = MpiWait::None;
  w.returns_at_once = true;
  EXPECT_EQ(state_of(w), kWorks) << "it may look at memory of its node, too";
}

TEST(RestRule, ProgramWithoutMpiRestsOnlyAlone) {
  WaitFacts w = receiving(kOther);
  w.call = MpiWait::None;
  w.has_receive = false;
  w.returns_at_once = true;
  EXPECT_EQ(state_of(w), kRests);
  w.has_near_ranks = true;
  EXPECT_EQ(state_of(w), kWorks);
  EXPECT_FALSE(never_rests(w)) << "the library may not have been looked up yet";
}

TEST(RestRule, OtherWaysToEndPreventDeadlock) {
  for (bool WaitFacts::*fact : {&WaitFacts::may_others_call, &WaitFacts::has_late_work}) {
    WaitFacts w = receiving(kOpenMpi);
    w.*fact = true;
    EXPECT_EQ(state_of(w), kRests);
  }
  WaitFacts w = receiving(kMpich);
  w.call = MpiWait::Request;
  EXPECT_EQ(state_of(w), kWaits);
  w.may_end_by_file = true;
  EXPECT_EQ(state_of(w), kRests) << "a request of MPI_File_iread()";
}

TEST(RestRule, UserSettingAllowsRest) {
  WaitFacts w = near(kMpich);
  w.is_told_to_rest = true;
  EXPECT_EQ(state_of(w), kRests) << "and it is no deadlock";
  EXPECT_FALSE(never_rests(w));
}

}  // namespace
}  // namespace score::pm::fi
