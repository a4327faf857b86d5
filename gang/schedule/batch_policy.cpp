// This file is tested by batch_policy_test.cpp.
#include "gang/schedule/batch_policy.hpp"

namespace score::gang {

void BatchPolicy::begin_pass(TimePoint now) {
  backfill_.begin(now, room_.free_nodes(std::nullopt));
}

std::optional<Spot> BatchPolicy::find_spot(const Job& job) const {
  if (job.overlay()) return room_.spot_in(job, std::nullopt);
  if (!backfill_.may_start(job)) return std::nullopt;
  if (room_.matrix().row_count() == 0) return room_.spot_in(job, std::nullopt);
  const std::uint64_t cores = cores_of_tasks(job.shape, job.shape.tasks);
  if (room_.matrix().free_cores(0) < cores) return std::nullopt;
  return room_.spot_in(job, 0);
}

bool BatchPolicy::stays(const Job& job) {
  return job.overlay() || backfill_.stays(job);
}

void BatchPolicy::placed(const Job& job) {
  if (!job.overlay()) backfill_.placed(job);
}

void BatchPolicy::unplaced(const Job& job) {
  backfill_.unplaced(job);
}

bool BatchPolicy::repack() {
  while (room_.take_freed()) {
  }
  const std::size_t rows = room_.matrix().row_count();
  room_.drop_empty_rows();
  return rows != room_.matrix().row_count();
}

}  // namespace score::gang
