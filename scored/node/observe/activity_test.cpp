#include "scored/node/observe/activity.hpp"

#include "pmlib/core/segment.hpp"

#include <gtest/gtest.h>

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

  std::vector<std::unique_ptr<pm::MappedSegment>> segments;
  ContextSet contexts;
};

TEST(Activity, WithoutANetworkNobodyWaitsForMessages) {
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
  job.header(0).idle = 2;
  job.header(1).idle = 1;
  EXPECT_FALSE(read_activity(true, &job.contexts).waits) << "rank 1 may be woken by something else";
  job.header(1).idle = 2;
  EXPECT_TRUE(read_activity(true, &job.contexts).waits);
  EXPECT_FALSE(read_activity(false, &job.contexts).waits) << "they use the processor";
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
