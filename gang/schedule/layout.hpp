#pragma once
// A CycleLayout contains the rows of the matrix that take turns, and the jobs that run in each. The
// functions here depend only on their arguments.

#include "gang/matrix/matrix.hpp"
#include "gang/matrix/stride.hpp"
#include "gang/state/config.hpp"
#include "gang/state/job_table.hpp"

#include <map>
#include <set>
#include <vector>

namespace score::gang {

struct CycleLayout {
  std::vector<WeightedRow> rows;                      // in the order of the matrix
  std::map<JobId, std::vector<std::size_t>> runs_in;  // ascending indices into rows
  std::set<JobId> background;                         // idle jobs whose cores other jobs need
  std::set<JobId> displaced;  // jobs whose cores queue high uses, and parked ones

  [[nodiscard]] bool has(RowId row) const;
  // Returns the rows in which the job runs; empty if there are none.
  [[nodiscard]] std::vector<RowId> rows_of(JobId job) const;
};

// Returns whether the job may fill, and lets others fill in its slices. The node lets a filling job
// run if all jobs in turn may fill too. Jobs that share a network channel may not fill, because
// only one of them has it at a time. The same holds for units of generic resources.
[[nodiscard]] bool may_fill(const Job& job, const ClusterConfig& config);

// Computes the layout. Without `idle_detection` idle jobs keep their turns.
CycleLayout lay_out(const JobTable& jobs, const Matrix& matrix, bool idle_detection);

}  // namespace score::gang
