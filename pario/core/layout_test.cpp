#include "pario/core/layout.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace score::pario {
namespace {

struct Spot {
  std::uint32_t server;
  std::uint64_t offset;

  friend auto operator<=>(const Spot&, const Spot&) = default;
};

// Computes the place of each byte by distributing the bytes one after the other.
std::vector<Spot> dealt(const Striping& striping, std::uint64_t size) {
  std::vector<Spot> spots;
  std::vector<std::uint64_t> next(striping.servers);
  for (std::uint64_t at = 0; at < size; ++at) {
    const auto server =
        static_cast<std::uint32_t>((striping.first + at / striping.stripe) % striping.servers);
    spots.push_back({server, next[server]++});
  }
  return spots;
}

constexpr std::uint64_t kStripe = kMinStripe;

TEST(Layout, SplitMatchesByteDistribution) {
  std::mt19937 random(1);
  for (std::uint32_t servers = 1; servers <= 5; ++servers) {
    const Striping striping{servers, servers / 2, kStripe};
    const auto spots = dealt(striping, 12 * kStripe);
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t offset = random() % (11 * kStripe);
      const Extent extent{offset, 1 + random() % (spots.size() - offset)};
      std::vector<Piece> pieces;
      split(striping, extent, 7, pieces);
      std::uint64_t at = extent.offset;
      for (const Piece& piece : pieces) {
        EXPECT_EQ(piece.buffer, 7 + at - extent.offset);
        for (std::uint64_t k = 0; k < piece.length; ++k, ++at) {
          ASSERT_EQ(spots[at], (Spot{piece.server, piece.offset + k}));
        }
      }
      EXPECT_EQ(at, extent.offset + extent.length);
    }
  }
}

TEST(Layout, LocalSizesAddUpToFileSize) {
  for (std::uint32_t servers = 1; servers <= 5; ++servers) {
    const Striping striping{servers, servers - 1, kStripe};
    for (std::uint64_t size : {0UL, 1UL, kStripe - 1, kStripe, kStripe + 1, 3 * kStripe,
                               7 * kStripe + 5, 11 * kStripe}) {
      std::map<std::uint32_t, std::uint64_t> counted;
      for (const Spot& spot : dealt(striping, size)) ++counted[spot.server];
      std::uint64_t end = 0;
      for (std::uint32_t server = 0; server < servers; ++server) {
        EXPECT_EQ(local_size(striping, server, size), counted[server]);
        end = std::max(end, file_end(striping, server, counted[server]));
      }
      EXPECT_EQ(end, size);
    }
  }
}

TEST(Layout, WorksAtLargestOffset) {
  const Striping striping{3, 1, kMaxStripe};
  std::vector<Piece> pieces;
  split(striping, {kMaxOffset - 10, 10}, 0, pieces);
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_LE(pieces[0].offset, kMaxOffset);
  std::uint64_t end = 0;
  for (std::uint32_t server = 0; server < 3; ++server) {
    end = std::max(end, file_end(striping, server, local_size(striping, server, kMaxOffset)));
    EXPECT_LE(file_end(striping, server, ~std::uint64_t{0}), kMaxOffset);
  }
  EXPECT_EQ(end, kMaxOffset);
  EXPECT_FALSE(is_valid(Extent{kMaxOffset, 1}));
  EXPECT_FALSE(is_valid(Extent{1, ~std::uint64_t{0}}));
  EXPECT_FALSE(is_valid(Extent{0, 0}));
}

TEST(Layout, RefusesStripesNotPowerOfTwo) {
  EXPECT_TRUE(is_valid(Striping{2, 1, kMinStripe}));
  EXPECT_FALSE(is_valid(Striping{2, 2, kMinStripe}));
  EXPECT_FALSE(is_valid(Striping{0, 0, kMinStripe}));
  EXPECT_FALSE(is_valid(Striping{1, 0, kMinStripe + 1}));
  EXPECT_FALSE(is_valid(Striping{1, 0, kMaxStripe * 2}));
}

TEST(Layout, SpreadsEntriesOfADirectory) {
  std::vector<int> counts(8);
  for (int i = 0; i < 8'000; ++i) ++counts[entry_server(kRootId, "file" + std::to_string(i), 8)];
  for (const int count : counts) EXPECT_NEAR(count, 1'000, 200);
}

// The test counts each byte of a strided view separately.
TEST(View, ShowsBlocksAtAStride) {
  std::mt19937 random(2);
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t block = 1 + random() % 20;
    const View view{random() % 50, block, block + random() % 30};
    const Extent shown{random() % 100, 1 + random() % 100};
    std::vector<Extent> extents;
    ASSERT_TRUE(map(view, shown, 1'000, extents));
    std::uint64_t at = shown.offset;
    for (const Extent& extent : extents) {
      for (std::uint64_t k = 0; k < extent.length; ++k, ++at) {
        ASSERT_EQ(extent.offset + k, view.start + at / block * view.stride + at % block);
      }
    }
    EXPECT_EQ(at, shown.offset + shown.length);
  }
}

TEST(View, SegmentsShareAFileWithoutOverlap) {
  std::vector<int> seen(6 * kStripe);
  for (std::uint32_t segment = 0; segment < 3; ++segment) {
    std::vector<Extent> extents;
    ASSERT_TRUE(map(segmented_view(kStripe, segment, 3), {0, 2 * kStripe}, 10, extents));
    for (const Extent& extent : extents) {
      for (std::uint64_t k = 0; k < extent.length; ++k) ++seen.at(extent.offset + k);
    }
  }
  for (const int count : seen) ASSERT_EQ(count, 1);
}

TEST(View, RefusesExtentsBeyondLargestOffset) {
  std::vector<Extent> extents;
  EXPECT_FALSE(map({kMaxOffset, 0, 0}, {1, 1}, 10, extents));
  EXPECT_FALSE(map({0, 1, kMaxOffset}, {0, 3}, 10, extents));
  EXPECT_FALSE(map({kMaxOffset, 10, 10}, {0, 1}, 10, extents));
  EXPECT_FALSE(map({0, 10, 5}, {0, 1}, 10, extents));
  EXPECT_FALSE(map({0, 1, 2}, {0, 11}, 10, extents));
  EXPECT_TRUE(extents.empty());
}

}  // namespace
}  // namespace score::pario
