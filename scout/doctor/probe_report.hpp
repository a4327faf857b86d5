// The output of scored-probe (scored/job/probe/README.md), read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

struct ProbedMpi {
  std::string path;
  std::string objection;  // to PM; empty: it can use it
};

struct ProbedNode {
  std::string name;
  std::uint64_t memlock = 0;  // the most that a job may lock, bytes; all ones: no limit
  std::string pm;             // release of libpm; empty: not installed
  std::string provider;       // folder of libpm-fi.so; empty: not installed
  std::vector<ProbedMpi> mpis;
  std::vector<std::string_view> missing_parts;  // names of base::kOptionalParts
  std::string network_error;                    // PM cannot be opened
};

struct ProbedPair {
  std::string from;
  std::string to;
  std::optional<std::int64_t> round_trip_ns;  // nothing: no answer
  double bytes_per_second = 0;                // 0: the stream did not arrive in time
};

struct ProbeReport {
  std::vector<ProbedNode> nodes;
  std::vector<ProbedPair> pairs;
};

// `output`: of all ranks, each line with "RANK: " in front, as of scrun --label. Lines that make no
// sense are passed over; texts are safe to print.
ProbeReport parse_probe_report(std::string_view output);

}  // namespace score::scout
