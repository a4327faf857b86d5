// Parses the output of scored-probe (scored/job/probe/README.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

struct ProbedMpi {
  std::string path;
  std::string objection;  // why PM cannot use it; empty: it can
};

struct ProbedNode {
  std::string name;
  std::uint64_t memlock = 0;  // the most bytes that a job may lock; all ones: no limit
  std::uint64_t shm = 0;      // bytes of /dev/shm; 0: not known
  std::string pm;             // version of libpm; empty: not installed
  std::string provider;       // folder of libpm-fi.so; empty: not installed
  std::vector<ProbedMpi> mpis;
  std::vector<std::string_view> missing_parts;  // names of base::kOptionalParts
  std::vector<std::string> readable_programs;   // paths; programs that should not be readable
  std::string network_error;                    // why PM cannot be opened
};

struct ProbedPair {
  std::string from;
  std::string to;
  std::optional<std::int64_t> round_trip_ns;  // nullopt: no answer
  std::optional<double> bytes_per_second;     // nullopt: the stream did not arrive in time
};

struct ProbeReport {
  std::vector<ProbedNode> nodes;
  std::vector<ProbedPair> pairs;
};

// Parses the output of all ranks, each line with "RANK: " before it, as printed by scrun --label.
// Malformed lines are skipped; texts are safe to print.
ProbeReport parse_probe_report(std::string_view output);

}  // namespace score::scout
