// Which batch system this process runs under, as its environment says.
#pragma once

#include "scout/start/plan/hosts.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

// How a program is started on another host.
enum class Via { Ssh, Slurm, Flux };

struct Allocation {
  Via via = Via::Ssh;
  std::string name{};      // for messages: "Slurm job 17"
  std::string hosts{};     // a host list; empty: see hostfile, or ask Flux
  std::string hostfile{};  // path of a host file
  std::string memory{};    // that the job may use on each host; empty: not said
  // That it may use, in the order of the hosts; empty: not said.
  std::vector<std::uint32_t> cores{};
};

// Gives the value of an environment variable, or nothing.
using Variables = std::function<std::optional<std::string>(const std::string&)>;

// Slurm (SLURM_JOB_ID), PBS (PBS_NODEFILE) or Flux (FLUX_URI). Tasks of a Scored job have Slurm's
// variables too, for programs that ask for them: they are not in a Slurm job.
std::optional<Allocation> find_allocation(const Variables& variables);

// Slurm's "4(x3),2" as 4 4 4 2. Nothing if it is malformed or has more than limits::kMaxNodes.
std::vector<std::uint32_t> expand_counts(std::string_view text);

// Sets the slots of the hosts; without effect unless there is one count per host.
void give_slots(std::vector<Host>& hosts, const std::vector<std::uint32_t>& cores);

// The words that run the shell script `script` on one host with our standard input and output.
// `index`: the host's place in the allocation. `ssh`: the program and its first words.
struct LinkPlan {
  Via via = Via::Ssh;
  std::string target;
  std::size_t index = 0;
  std::vector<std::string> ssh = {"ssh"};
};

std::vector<std::string> link_words(const LinkPlan& plan, const std::string& script);

}  // namespace score::scout
