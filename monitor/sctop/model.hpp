#pragma once
// Model is the data that sctop shows, read from one document of the stream
// (docs/reference/stream.md). Missing fields keep their default, because a head of a different
// version must not end the view.

#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::sctop {

struct NodeView {
  std::string name;
  std::string state;  // "up" ...
  bool drained = false;
};

struct RowView {
  std::int64_t slot = 0;
  bool active = false;
  std::vector<std::vector<std::int64_t>> cells;  // [node]: jobs
};

struct JobView {
  std::int64_t job = 0;
  std::string user, name, reason;
  std::string state;  // "running", "idle", ... as scq shows it
  std::int64_t nodes = 0, tasks = 0;
  std::optional<std::int64_t> slot;
  double share = 0, scheduled_s = 0, elapsed_s = 0, filled_s = 0;
  bool is_final = false;
  std::vector<std::string> waits;  // what its ranks wait for, one line each
};

struct ProcessView {
  std::int64_t node = 0, job = 0, rank = 0;
  std::string state;
  double user = 0, system = 0, pm = 0, waited = 0, filled = 0;  // of scheduled time
};

struct Percentiles {
  double p50_s = 0, p95_s = 0, max_s = 0;
};

// ScratchView is the sum of all servers of jobs' striped volumes.
struct ScratchView {
  std::int64_t servers = 0, down = 0;
  double used = 0, reserved = 0;  // bytes
  double read = 0, written = 0;   // bytes per second
  std::int64_t queue = 0;         // waiting requests
};

struct Model {
  std::string cluster;
  bool is_virtual = false;
  double quantum_s = 0, switches_per_s = 0;
  std::optional<double> overhead;  // of the time in which a job was scheduled
  std::vector<std::pair<std::string, double>> overhead_parts;  // add up to it
  std::int64_t nodes_up = 0, nodes_known = 0, slots = 0;
  std::vector<NodeView> nodes;
  std::vector<RowView> rows;
  std::vector<JobView> jobs;
  std::vector<ProcessView> processes;
  std::optional<Percentiles> total, skew;  // of the last switches
  std::int64_t late = 0;
  ScratchView scratch;
};

// Parses one line of the stream. Errors: Malformed (no JSON, or not an object), TooLarge.
Result<Model> parse_document(std::string_view line);

}  // namespace score::sctop
