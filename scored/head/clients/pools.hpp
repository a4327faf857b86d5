#pragma once
// Describes the partitions and licenses of the cluster for commands and metrics.

#include "proto/client.pb.h"
#include "scored/head/cluster/head_context.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace score::head {

struct LicenseCount {
  std::string name;
  std::uint32_t total = 0;
  std::uint32_t used = 0;
  std::uint32_t jobs_waiting = 0;  // waiting jobs that ask for some
};

struct PartitionCount {
  std::string name;
  std::uint32_t nodes_up = 0;  // up and not drained
  std::uint32_t jobs_running = 0;
  std::uint32_t jobs_waiting = 0;
};

struct Pools {
  std::vector<LicenseCount> licenses;      // by name
  std::vector<PartitionCount> partitions;  // by name
};

[[nodiscard]] Pools count_pools(const HeadContext& head);

// Fills in the partitions and licenses.
void add_pools(const HeadContext& head, wire::Info& info);

}  // namespace score::head
