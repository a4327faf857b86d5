#pragma once
// Computes the results of a run: the figures of docs/lab/scheduling.md, as text, JSON and drawings.

#include "bench/scsim/simulate.hpp"

#include <array>
#include <string>
#include <vector>

namespace score::scsim {

struct Figures {
  std::size_t jobs = 0;
  double wait_mean_s = 0, wait_p95_s = 0;  // from submission to start
  double response_mean_s = 0, response_p95_s = 0;
  double bounded_slowdown_mean = 0, bounded_slowdown_p95 = 0;  // bound 10 s (Feitelson 1997)
};

struct ClassFigures {
  std::string name;
  Figures figures;
};

struct PolicyResult {
  std::string workload, policy;
  double load = 0;
  std::uint32_t nodes = 0;
  Figures all;
  double utilisation = 0;  // work done until the last submission, as a fraction of all nodes' time
  // Part of the jobs that began within two slices, of those whose memory was free: without those
  // that run one after the other, and with them.
  double prompt = 0, prompt_of_all = 0;
  // Part of the jobs on one leaf switch, of those that take 2 nodes to all of one.
  double near = 0;
  double fairness = 0;  // Jain's index of users' mean bounded slowdowns
  std::uint64_t switches = 0, layouts = 0;
  std::size_t most_waiting = 0, most_rows = 0;
  double memory_high = 0;
  std::uint64_t pagings = 0;
  double wall_s = 0;
  std::vector<ClassFigures> by_size;  // fraction of the machine
  std::vector<ClassFigures> by_run;   // run time; the last is over an hour
};

PolicyResult result_of(const Workload& workload, const SimOptions& options, double load,
                       const SimulationRun& run);

std::string as_table(const std::vector<PolicyResult>& results);
// Formats {"results": [...]}.
std::string as_json(const std::vector<PolicyResult>& results);
// Formats {"jobs": [...]}: the request, start and end of each job of a run, by number.
std::string as_records(const Workload& workload, const SimOptions& options,
                       const SimulationRun& run);
// Makes HTML: a bar per job over time, its height is its nodes, its colour its slowdown.
std::string as_timeline(const PolicyResult& result, const SimulationRun& run);

}  // namespace score::scsim
