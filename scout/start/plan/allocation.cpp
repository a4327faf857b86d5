#include "scout/start/plan/allocation.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace score::scout {

namespace {

// These options are described in ssh_config(5). With BatchMode ssh does not prompt, because the
// command owns the terminal. The connection counts as broken after 30 s of silence, which is also
// the host agent's lease.
constexpr const char* kSshOptions[] = {"-T",
                                       "-x",
                                       "-oBatchMode=yes",
                                       "-oConnectTimeout=10",
                                       "-oServerAliveInterval=5",
                                       "-oServerAliveCountMax=6",
                                       "-oLogLevel=ERROR"};

// These options are described in srun(1). With --overlap other steps may use the same processors;
// the host agent and its daemons use those of the whole allocation on the node. With --mem=0 they
// use its memory too.
constexpr const char* kSrunOptions[] = {"--nodes=1",  "--ntasks=1", "--ntasks-per-node=1",
                                        "--overlap",  "--mem=0",    "--cpu-bind=none",
                                        "--mpi=none", "--quiet"};

}  // namespace

std::optional<Allocation> find_allocation(const Variables& variables) {
  const auto get = [&](const char* name) { return variables(name).value_or(""); };
  const bool is_scored_task = variables("SCORE_JOBID").has_value();
  if (!is_scored_task && !get("SLURM_JOB_ID").empty() && !get("SLURM_JOB_NODELIST").empty()) {
    Allocation slurm{.via = Via::Slurm, .name = "Slurm job " + get("SLURM_JOB_ID")};
    slurm.hosts = get("SLURM_JOB_NODELIST");
    slurm.cores = expand_counts(get("SLURM_JOB_CPUS_PER_NODE"));
    const auto megabytes = parse_number<std::uint64_t>(get("SLURM_MEM_PER_NODE"));
    if (megabytes && *megabytes > 0) slurm.memory = std::to_string(*megabytes) + "M";
    return slurm;
  }
  if (!get("PBS_NODEFILE").empty()) {
    Allocation pbs{.via = Via::Ssh, .name = "PBS job " + get("PBS_JOBID")};
    pbs.hostfile = get("PBS_NODEFILE");
    return pbs;
  }
  if (!get("FLUX_URI").empty()) {
    return Allocation{.via = Via::Flux, .name = "Flux instance"};
  }
  return std::nullopt;
}

std::vector<std::uint32_t> expand_counts(std::string_view text) {
  std::vector<std::uint32_t> counts;
  for (const auto part : split(text, ',')) {
    const auto open = std::min(part.size(), part.find("(x"));
    const auto count = parse_number<std::uint32_t>(part.substr(0, open));
    std::uint32_t times = 1;
    if (open < part.size()) {
      const auto inner = part.substr(open + 2);
      const auto read = parse_number<std::uint32_t>(inner.substr(0, inner.find(')')));
      if (!inner.ends_with(')') || !read) return {};
      times = *read;
    }
    const bool fits = times <= limits::kMaxNodes - counts.size();
    if (!count || *count == 0 || *count > limits::kMaxCoresPerNode || !fits) return {};
    counts.insert(counts.end(), times, *count);
  }
  return counts;
}

void give_slots(std::vector<Host>& hosts, const std::vector<std::uint32_t>& cores) {
  if (cores.size() != hosts.size()) return;
  for (std::size_t i = 0; i < hosts.size(); ++i) hosts[i].slots = cores[i];
}

// ssh passes one text to the user's shell. The script has no single quote, so any shell takes it
// unchanged.
std::vector<std::string> link_words(const LinkPlan& plan, const std::string& script) {
  std::vector<std::string> words;
  if (plan.via == Via::Slurm) {
    words = {"srun", "--nodelist=" + plan.target};
    words.insert(words.end(), std::begin(kSrunOptions), std::end(kSrunOptions));
    words.insert(words.end(), {"sh", "-c", script});
  } else if (plan.via == Via::Flux) {
    words = {"flux", "exec", "--rank=" + std::to_string(plan.index), "sh", "-c", script};
  } else {
    words = plan.ssh;
    words.insert(words.end(), std::begin(kSshOptions), std::end(kSshOptions));
    words.insert(words.end(), {"--", plan.target, "exec sh -c '" + script + "'"});
  }
  return words;
}

}  // namespace score::scout
