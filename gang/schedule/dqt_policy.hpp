#pragma once
// DqtPolicy implements the distributed queue tree of SCore-D (Hori, Ishikawa, Konaka, Maeda,
// Tomokiyo: "A Scalable Time-Sharing Scheduling for Partitionable, Distributed Memory Parallel
// Machines", HICSS-28, 1995). It is a binary tree of nested partitions with a queue each. A job
// takes the smallest partition that holds it, and among those the one with the least load on its
// path. Turns are taken along the paths from the root to the leaves.

#include "gang/schedule/matrix_policy.hpp"

namespace score::gang {

class DqtPolicy : public MatrixPolicy {
 public:
  explicit DqtPolicy(Room& room) : MatrixPolicy(room, {true, false}) {}

  [[nodiscard]] std::optional<Spot> find_spot(const Job& job) const override;
  bool repack() override;
};

}  // namespace score::gang
