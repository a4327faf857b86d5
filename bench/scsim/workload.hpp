#pragma once
// Provides the workload of a simulation: jobs with submit times, run times and sizes.

#include "base/result.hpp"
#include "base/units.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::scsim {

struct SimJob {
  std::uint64_t number = 0;  // from 1, ascending
  double submit_s = 0;       // ascending
  double run_s = 0;          // > 0, alone on its nodes
  std::uint32_t nodes = 1;
  std::uint32_t user = 0;
  double memory = 0;  // fraction of a node's memory, 0 ... 1, on each of its nodes
};

struct Workload {
  std::string name;
  std::uint32_t nodes = 0;  // size of its machine
  std::vector<SimJob> jobs;
  std::size_t malformed = 0;  // lines that were skipped because they cannot be read
  std::size_t empty = 0;      // jobs that were skipped because they never ran, or on no node
  std::vector<std::string> complaints;  // about the first malformed lines
};

// Parses Standard Workload Format 2.2 (Chapin et al., JSSPP 1999). A malformed line is skipped,
// counted, and reported with its number. Sizes are the processors allocated (field 5), else
// requested (8). The machine has MaxProcs or MaxNodes of the header, else as many nodes as the
// largest job.
Workload parse_swf(std::string_view text, std::string name);

// Reads a file, compressed with gzip or not. Fails if it cannot be read, or contains no job.
base::Result<Workload> read_swf(const std::string& path);

// Generates jobs by the model of Lublin and Feitelson ("The workload on parallel supercomputers:
// modeling the characteristics of rigid jobs", JPDC 63(11), 2003), with the parameters for all jobs
// together.
Workload lublin(std::uint32_t nodes, std::size_t jobs, std::uint64_t seed);

// Returns the requested processor time, per processor and second between the first and last
// submission.
double offered_load(const Workload& workload);

// Puts the same jobs on a machine of a different size: their sizes grow in proportion.
Workload on_nodes(Workload workload, std::uint32_t nodes);

// Divides the inter-arrival times so that the offered load becomes `load`.
Workload at_load(Workload workload, double load);

// Returns the jobs that were submitted in `hours`, beginning `from_h` after the log's begin.
Workload window_of(Workload workload, double from_h, double hours);
// Returns the begin of the window with the most requested processor time; a multiple of `hours`.
double busiest_h(const Workload& workload, double hours);

// Divides submit and run times by `factor`, which must be > 0.
Workload compressed(Workload workload, double factor);

// Chooses the memory per node of each job at random: log-uniform from 1/64 to 1/2 of a node's
// memory.
void draw_memory(Workload& workload, std::uint64_t seed);

// Assigns users at random to the jobs without one: out of `users`, the k-th has a probability
// proportional to 1/k.
void draw_users(Workload& workload, std::uint32_t users, std::uint64_t seed);

}  // namespace score::scsim
