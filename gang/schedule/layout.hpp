#pragma once
// Which rows of the matrix take turns, and which jobs run in each. Pure functions of the jobs.

#include "gang/matrix/matrix.hpp"
#include "gang/matrix/stride.hpp"
#include "gang/state/config.hpp"
#include "gang/state/job_table.hpp"

#include <map>
#include <set>
#include <vector>

namespace score::gang {

struct Layout {
  std::vector<WeightedRow> rows;                      // in the order of the matrix
  std::map<JobId, std::vector<std::size_t>> runs_in;  // ascending indices into rows
  std::set<JobId> background;                         // idle jobs whose cores others want
  std::set<JobId> displaced;                          // jobs whose cores queue high uses

  [[nodiscard]] bool has(RowId row) const;
  // The rows in which the job runs; empty: none.
  [[nodiscard]] std::vector<RowId> rows_of(JobId job) const;
};

// May the job fill, and let others fill in its slices? The node lets a filling job run where all
// jobs in turn may fill too. Jobs that share a network channel may not: one of them has it at a
// time. The same holds for units of generic resources.
[[nodiscard]] bool may_fill(const Job& job, const ClusterConfig& config);

// Without `idle_detection` idle jobs keep their turns.
Layout lay_out(const JobTable& jobs, const Matrix& matrix, bool idle_detection);

}  // namespace score::gang
