#pragma once
// One workload under one policy.

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
};

// matrix, dqt, slurm, fcfs, easy, conservative. Error: there is none of the name.
base::Result<PolicyOptions> policy_of(const std::string& name);

struct SimOptions {
  PolicyOptions policy;
  double estimate_factor = 5;       // of the run time
  double idle_jobs = 0;             // part of the jobs that are idle now and then, 0 ... 1
  double busy_s = 60, idle_s = 15;  // means of their phases (exponential)
  double fill = 0;  // of the time it is not in turn, what a job makes good by filling
  // What a real cluster adds to each job: from its placement until it enters the timetable, and to
  // its scheduled time.
  double start_cost_s = 0, run_cost_s = 0;
  std::uint64_t seed = 1;
  bool check = false;  // all invariants, after every event
};

// What became of one job.
struct Fate {
  SimJob job;
  double start_s = 0;
  double end_s = 0;
};

struct Run {
  std::vector<Fate> fates;  // in the order of their ends
  double last_submit_s = 0;
  std::uint64_t switches = 0;
  std::uint64_t layouts = 0;
  std::size_t most_waiting = 0;
  std::size_t most_rows = 0;
  double memory_high = 0;  // of a node's memory
  double wall_s = 0;       // that the simulation took; filled in by the caller
};

MachineOptions machine_options(const PolicyOptions& policy, std::uint32_t nodes);
// What a user asks for who runs this job.
MachineJob request_of(const SimJob& job, const SimOptions& options);

// Errors: an invariant is broken.
base::Result<Run> simulate(const Workload& workload, const SimOptions& options);

}  // namespace score::scsim
