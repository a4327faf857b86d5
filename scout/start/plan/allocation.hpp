// Determines from the environment which batch system this process runs under.
#pragma once

#include "scout/start/plan/hosts.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

// The method by which a program is started on a different host.
enum class Via { Ssh, Slurm, Flux };

struct Allocation {
  Via via = Via::Ssh;
  std::string name{};      // for messages: "Slurm job 17"
  std::string hosts{};     // a host list; empty: see hostfile, or ask Flux
  std::string hostfile{};  // path of a host file
  std::string memory{};    // limit per host for the job; empty: unknown
  // Cores per host for the job, in the order of the hosts; empty: unknown.
  std::vector<std::uint32_t> cores{};
};

// Returns the value of an environment variable, or nothing.
using Variables = std::function<std::optional<std::string>(const std::string&)>;

// Finds an allocation of Slurm (SLURM_JOB_ID), PBS (PBS_NODEFILE) or Flux (FLUX_URI). Tasks of a
// Scored job may have Slurm's variables too, but are not in a Slurm job.
std::optional<Allocation> find_allocation(const Variables& variables);

// Expands Slurm's "4(x3),2" to 4 4 4 2. Returns nothing if it is malformed or has more than
// limits::kMaxNodes.
std::vector<std::uint32_t> expand_counts(std::string_view text);

// Sets the slots of the hosts. It has no effect unless there is one count per host.
void give_slots(std::vector<Host>& hosts, const std::vector<std::uint32_t>& cores);

// Returns the command line that runs the shell script `script` on one host with our standard input
// and output. `index` is the host's position in the allocation; `ssh` is the program and its first
// arguments.
struct LinkPlan {
  Via via = Via::Ssh;
  std::string target;
  std::size_t index = 0;
  std::vector<std::string> ssh = {"ssh"};
};

std::vector<std::string> link_words(const LinkPlan& plan, const std::string& script);

}  // namespace score::scout
