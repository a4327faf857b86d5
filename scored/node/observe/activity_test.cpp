#include "scored/node/observe/activity.hpp"

#include "pmlib/core/segment.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

namespace score::node {
namespace {

struct Job {
  Job() {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      pm::Geometry geometry;
      geometry.size = 2;
      pm::SegmentIdentity identity;
      identity.rank = rank;
      int error = 0;
      segments.push_back(pm::MappedSegment::create(geometry, identity, error));
      contexts.emplace_back(dup(segments.back()->fd()));
    }
  }

  pm::SegmentHeader& header(std::size_t rank) { return segments[rank]->segment().header(); }

  void sleeps_in(std::size_t rank, pm::ContextState state) {
    header(rank).state = state;
    header(rank).sleeping = 1;
  }

  std::vector<std::unique_ptr<pm::MappedSegment>> segments;
  ContextSet contexts;
};

TEST(Activity, WithoutNetworkNoTaskWaitsForMessages) {
  EXPECT_EQ(read_activity(true, nullptr), (base::Activity{.idle = true}));
  EXPECT_EQ(read_activity(false, nullptr), base::Activity{});
  const ContextSet none;
  EXPECT_FALSE(read_activity(true, &none).waits);
}

TEST(Activity, SumsTheMessagesOfAllContexts) {
  Job job;
  job.header(0).counters.messages_sent = 5;
  job.header(1).counters.messages_sent = 2;
  job.header(1).counters.messages_received = 7;
  const auto activity = read_activity(true, &job.contexts);
  EXPECT_EQ(activity.sent, 7U);
  EXPECT_EQ(activity.received, 7U);
}

TEST(Activity, WaitsOnlyIfAllDo) {
  Job job;
  job.sleeps_in(0, pm::ContextState::Waits);
  job.sleeps_in(1, pm::ContextState::Rests);
  EXPECT_FALSE(read_activity(true, &job.contexts).waits) << "rank 1 may be woken by something else";
  job.sleeps_in(1, pm::ContextState::Waits);
  EXPECT_TRUE(read_activity(true, &job.contexts).waits);
  EXPECT_FALSE(read_activity(false, &job.contexts).waits) << "they use the processor";
}

TEST(Activity, ReportsWaitsOfTasksOfIdleJob) {
  Job job;
  job.sleeps_in(0, pm::ContextState::Waits);
  job.sleeps_in(1, pm::ContextState::Rests);
  job.segments[0]->segment().write_wait_note({{"MPI_Recv"}, 1, 77, 1024});
  EXPECT_EQ(read_activity(true, &job.contexts).tasks,
            (std::vector{base::TaskWait{0, "MPI_Recv", 1, 77, 1024}}))
      << "rank 1 may be woken by something else";
  job.sleeps_in(1, pm::ContextState::Waits);
  job.segments[1]->segment().write_wait_note({{"pm_wait"}, -1, -1, 0});
  const auto tasks = read_activity(true, &job.contexts).tasks;
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(tasks[0], (base::TaskWait{0, "MPI_Recv", 1, 77, 1024}));
  EXPECT_EQ(tasks[1],
            (base::TaskWait{1, "pm_wait", base::TaskWait::kAny, base::TaskWait::kAny, 0}));
  EXPECT_TRUE(read_activity(false, &job.contexts).tasks.empty()) << "they use the processor";
}

TEST(Activity, InvalidContextsStayWithinBounds) {
  std::mt19937 random(11);
  Job job;
  job.sleeps_in(0, pm::ContextState::Waits);
  job.sleeps_in(1, pm::ContextState::Waits);
  for (int round = 0; round < 2000; ++round) {
    pm::WaitNote note;
    for (char& c : note.call) c = static_cast<char>(random());
    note.source = static_cast<std::int64_t>(random()) - (1LL << 31);
    note.tag = static_cast<std::int64_t>(random()) * 3 - (1LL << 32);
    job.segments[0]->segment().write_wait_note(note);
    const auto tasks = read_activity(true, &job.contexts).tasks;
    ASSERT_EQ(tasks.size(), 2U);
    EXPECT_LT(tasks[0].call.size(), 32U);
    for (const char c : tasks[0].call) EXPECT_TRUE(std::isalnum(c) != 0 || c == '_');
    EXPECT_TRUE(tasks[0].source >= -1 && tasks[0].source < 2);
    EXPECT_TRUE(tasks[0].tag >= -1 && tasks[0].tag <= INT32_MAX);
  }
}

TEST(Activity, RandomBytesAreSurvived) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    ContextSet contexts;
    contexts.emplace_back(memfd_create("hostile", MFD_CLOEXEC));
    std::vector<std::uint8_t> bytes(random() % 8192);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    ASSERT_EQ(write(contexts[0].get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_FALSE(read_activity(true, &contexts).waits);
  }
}

}  // namespace
}  // namespace score::node
