#include "scored/node/channel/job_contexts.hpp"

#include "pmlib/network/network.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace score::node {
namespace {

constexpr AttemptId kAttempt{256};

ContextSet make_contexts(std::uint32_t first, std::uint32_t count) {
  pm::JobNetwork network;
  network.key = 7;
  network.ranks.assign(first + count, {"node", "-"});
  ContextSet made;
  for (std::uint32_t rank = first; rank < first + count; ++rank) {
    int error = 0;
    const auto context = pm::create_context(network, rank, true, "", error);
    made.emplace_back(fcntl(context->fd(), F_DUPFD_CLOEXEC, 0));
  }
  return made;
}

TEST(JobContexts, CompleteWhenTheLastOneArrives) {
  JobContexts contexts;
  EXPECT_EQ(contexts.of(kAttempt), nullptr);
  EXPECT_FALSE(*contexts.add(kAttempt, 0, 3, make_contexts(0, 2)));
  EXPECT_EQ(contexts.of(kAttempt), nullptr);
  EXPECT_TRUE(*contexts.add(kAttempt, 2, 3, make_contexts(2, 1)));
  const auto all = contexts.of(kAttempt);
  ASSERT_NE(all, nullptr);
  ASSERT_EQ(all->size(), 3U);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    pm::SegmentSummary summary;
    ASSERT_EQ(pm::read_summary((*all)[rank].get(), summary), 0);
    EXPECT_EQ(summary.rank, rank);
  }
}

TEST(JobContexts, LiveAsLongAsTheyAreHeld) {
  JobContexts contexts;
  ASSERT_TRUE(contexts.add(kAttempt, 0, 1, make_contexts(0, 1)));
  const auto held = contexts.of(kAttempt);
  contexts.remove(kAttempt);
  EXPECT_EQ(contexts.of(kAttempt), nullptr);
  pm::SegmentSummary summary;
  EXPECT_EQ(pm::read_summary(held->front().get(), summary), 0);
}

TEST(JobContexts, AdoptedContextsReplaceEarlierOnes) {
  JobContexts contexts;
  ASSERT_TRUE(contexts.add(kAttempt, 0, 2, make_contexts(0, 1)));
  ASSERT_TRUE(contexts.add(kAttempt, 0, 2, make_contexts(0, 1)));
  EXPECT_TRUE(*contexts.add(kAttempt, 1, 2, make_contexts(1, 1)));
}

TEST(JobContexts, OutOfOrderOrTooManyAreRefused) {
  JobContexts contexts;
  EXPECT_FALSE(contexts.add(kAttempt, 1, 2, make_contexts(1, 1)));
  EXPECT_FALSE(contexts.add(kAttempt, 0, 1, make_contexts(0, 2)));
  EXPECT_FALSE(contexts.add(kAttempt, 0, 1, {}));
  EXPECT_EQ(contexts.of(kAttempt), nullptr);
}

TEST(JobContexts, UnsealedMemoryIsRefused) {
  JobContexts contexts;
  ContextSet file;
  file.emplace_back(open("/dev/zero", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(contexts.add(kAttempt, 0, 1, std::move(file)));
  ContextSet unsealed;
  unsealed.emplace_back(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_FALSE(contexts.add(kAttempt, 0, 1, std::move(unsealed)));
  EXPECT_EQ(contexts.of(kAttempt), nullptr);
}

}  // namespace
}  // namespace score::node
