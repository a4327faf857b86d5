#pragma once
// ClusterView is the head's knowledge of the cluster besides measurements, as plain values for a
// document.

#include "base/ids.hpp"
#include "base/model/settings.hpp"
#include "base/time.hpp"
#include "base/units.hpp"
#include "monitor/model/event_log.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace score::monitor {

struct NodeRow {
  std::string name;
  std::string state;  // "up", "suspect", "down", "unknown"
  bool drained = false;
  std::string reason;
  std::uint32_t cores = 0;
  Bytes memory, memory_reserved;
  Bytes scratch, scratch_reserved;  // for jobs' striped volumes
  std::vector<JobId> jobs;
  std::uint64_t switches = 0, late_switches = 0;
  Duration clock_error{0};
  std::optional<Duration> last_heard;  // ago
  std::string method;
  Duration daemon_cpu{0};
  Bytes daemon_memory;
};

struct JobRow {
  JobId job;
  UserId user;
  std::string user_name, name, command;  // escaped
  std::string state;                     // "pending" ...
  bool final = false;
  std::string activity;  // "busy", "idle" or "deadlocked" while it runs, else empty
  bool idle = false;     // it waits on all its nodes, and other jobs have its slices
  std::uint32_t nodes = 0, tasks = 0, most_on_node = 0;
  std::string node_list;
  std::vector<std::uint32_t> node_indices;
  std::optional<SlotIndex> slot;
  double share = 0;
  Duration scheduled{0}, elapsed{0}, scheduled_limit{0}, wall_limit{0};
  Duration filled{0};  // processor time at idle priority
  std::uint32_t weight = 0;
  std::string queue;
  int exit_code = 0;
  std::vector<std::string> reasons;
  std::vector<std::string> waits;  // while idle or deadlocked: one line per rank that is known
};

struct MatrixRow {
  SlotIndex slot;
  bool active = false;
  std::vector<std::vector<JobId>> cells;  // [node]
};

struct ClusterView {
  std::string head;  // random, of this run of the head
  std::string name, version;
  bool is_virtual = false;
  bool is_private = false;  // names of other users are only for operators
  TimePoint now{};
  WallTime wall{};
  Duration quantum{0}, cycle{0};
  Settings settings;
  std::uint64_t epoch = 0;
  std::uint32_t nodes_up = 0, nodes_down = 0, nodes_drained = 0, jobs_active = 0;
  std::optional<Duration> sample_period;
  Duration sample_delay{0};  // measurements are complete up to now minus this
  std::size_t viewers = 0;
  std::vector<NodeRow> nodes;
  std::vector<MatrixRow> rows;
  std::vector<SlotIndex> order;
  std::optional<TimePoint> cycle_start;
  std::vector<JobRow> jobs;  // ascending
  const std::deque<Event>* events = nullptr;
};

}  // namespace score::monitor
