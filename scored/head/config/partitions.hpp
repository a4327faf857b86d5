#pragma once
// This header declares partitions: the tables [partitions.NAME] of scored.toml(5). It is pure.

#include "base/config/config.hpp"
#include "base/model/model.hpp"
#include "base/result.hpp"
#include "gang/state/partitions.hpp"
#include "scored/head/config/accounts.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::head {

struct PartitionRule {
  std::string name;
  std::vector<std::string> nodes;     // of the cluster; at least one
  bool is_default = false;            // of jobs that name no partition
  std::vector<std::string> users;     // that it accepts: names, numbers, or groups as "@group"
  std::vector<std::string> accounts;  // jobs of these accounts may too; both empty: everyone
  std::int32_t order = 0;  // waiting jobs of a partition with a larger one are placed earlier
  Duration max_time{0};    // of a job's time limit, which is this if the job has none; 0: no limit
  bool fill = true;        // its jobs may fill, if the cluster lets jobs fill
  std::uint32_t max_jobs = 0;  // of a user, queued or running; 0: no limit
  RunningLimits limits;        // of each user in this partition; no limit of scheduled hours

  friend bool operator==(const PartitionRule&, const PartitionRule&) = default;
};

struct PartitionRules {
  std::vector<PartitionRule> all;  // sorted by name

  [[nodiscard]] const PartitionRule* find(std::string_view name) const;
  // Returns the groups of all partitions, without the '@'.
  [[nodiscard]] std::vector<std::string> groups() const;
  [[nodiscard]] std::vector<gang::Partition> for_cluster() const;
  // Returns the names of the partitions that have the node.
  [[nodiscard]] std::vector<std::string> of_node(std::string_view node) const;

  friend bool operator==(const PartitionRules&, const PartitionRules&) = default;
};

// Reads the tables; problems become errors of their sections. `nodes` are those of the cluster.
[[nodiscard]] PartitionRules read_partitions(ConfigSection& root,
                                             const std::vector<std::string>& nodes,
                                             const AccountRules& accounts);

// Sets what the partition determines: its name, where the request names none and there is a
// default; the time limit of a job without one; and whether the job fills. The account of the
// request must be known. Errors, one line for the user: NotFound; Denied, naming the limit.
[[nodiscard]] Status enter_partition(const PartitionRules& rules, const Submitter& who,
                                     ResourceRequest& request);
// Checks the limit of queued and running jobs; `jobs` is how many the user already has there.
// Errors: Denied.
[[nodiscard]] Status check_partition_jobs(const PartitionRules& rules, const Submitter& who,
                                          const std::string& partition, std::size_t jobs);

}  // namespace score::head
