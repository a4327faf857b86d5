#include "scored/head/streams/kept_outputs.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

constexpr UserId kNoisy{1001};
constexpr UserId kQuiet{1002};

KeptOutputs::Chunks output(std::size_t bytes) {
  OutputChunk chunk;
  chunk.data = std::string(bytes, 'x');
  return {std::make_shared<const OutputChunk>(std::move(chunk))};
}

TEST(KeptOutputs, BytesOfOneUserLeaveOthersAlone) {
  KeptOutputs kept;
  kept.add(JobId(1), kQuiet, output(10));
  for (std::uint64_t job = 2; job < 100; ++job) kept.add(JobId(job), kNoisy, output(limits::kMiB));
  EXPECT_EQ(kept.of(JobId(1)).size(), 1U);
  EXPECT_EQ(kept.of(JobId(99)).size(), 1U) << "the newest";
  EXPECT_TRUE(kept.of(JobId(2)).empty());
  EXPECT_EQ(kept.counts().taken_by(kNoisy), KeptOutputs::kMaxBytesOfUser / limits::kMiB - 1);
}

TEST(KeptOutputs, OldestGoesWhenAllAreTooMany) {
  KeptOutputs kept;
  for (std::uint32_t user = 0; user < 40; ++user) {
    kept.add(JobId(user + 1), UserId(2'000 + user), output(limits::kMiB));
  }
  EXPECT_TRUE(kept.of(JobId(1)).empty());
  EXPECT_EQ(kept.of(JobId(40)).size(), 1U);
  EXPECT_LE(kept.counts().taken() * limits::kMiB, KeptOutputs::kMaxBytes);
}

TEST(KeptOutputs, JobWithoutOutputIsNotKept) {
  KeptOutputs kept;
  kept.add(JobId(1), kQuiet, {});
  EXPECT_EQ(kept.counts().taken(), 0U);
}

}  // namespace
}  // namespace score::head
