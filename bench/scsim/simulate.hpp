#pragma once
// Simulates one workload under one policy.

#include "bench/scsim/machine.hpp"
#include "bench/scsim/workload.hpp"

#include <string>
#include <vector>

namespace score::scsim {

struct PolicyOptions {
  std::string name;
  gang::Placement placement = gang::Placement::Matrix;
  std::uint32_t slots = 0;
  Duration quantum{0};
  Duration long_limit{0};
  Duration long_shared{0};
  std::uint32_t long_slots = 1;
  std::uint32_t long_weight = 48;
  Duration long_early{0};
  Duration young_time{0};
};

// Returns matrix, dqt, slurm, fcfs, easy or conservative. Fails if the name is unknown.
base::Result<PolicyOptions> policy_of(const std::string& name);

struct SimOptions {
  PolicyOptions policy;
  double estimate_factor = 5;       // times the run time
  double idle_jobs = 0;             // fraction of the jobs that are idle at times, 0 ... 1
  double busy_s = 60, idle_s = 15;  // means of their phases (exponential)
  double fill = 0;                  // progress by filling, as a fraction of the time without a turn
  // A real cluster adds these to each job: the time from its placement until it enters the
  // timetable, and a part of its scheduled time.
  double start_cost_s = 0, run_cost_s = 0;
  MemoryOptions memory{};
  std::uint32_t switch_nodes = 0;  // nodes of a leaf switch; 0: there are no switches
  bool ignores_switches = false;   // the placer does not know the switches
  std::uint64_t seed = 1;
  bool check = false;  // check all invariants after every event
};

// Records the result of one job.
struct JobResult {
  SimJob job;
  double start_s = 0;
  double end_s = 0;
  bool fits = true;          // its memory was free when it was submitted
  bool is_near = false;      // its nodes are on one leaf switch
  bool is_in_order = false;  // its limit is one of those of jobs that run one after the other
};

struct SimulationRun {
  std::vector<JobResult> job_results;  // in the order of their ends
  double last_submit_s = 0;
  std::uint64_t switches = 0;
  std::uint64_t layouts = 0;
  std::size_t most_waiting = 0;
  std::size_t most_rows = 0;
  double memory_high = 0;     // fraction of a node's memory
  std::uint64_t pagings = 0;  // how often a node wrote memory of a job to swap or read it back
  double wall_s = 0;          // duration of the simulation; set by the caller
};

MachineOptions machine_options(const PolicyOptions& policy, std::uint32_t nodes);
// Returns the request that a user would make for this job.
MachineJob request_of(const SimJob& job, const SimOptions& options);

// Fails if an invariant is broken.
base::Result<SimulationRun> simulate(const Workload& workload, const SimOptions& options);

}  // namespace score::scsim
