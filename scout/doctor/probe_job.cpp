// scrun runs the job, because the doctor has no more rights than other users. Its output goes to
// memory.
#include "scout/doctor/probe_job.hpp"

#include "base/os/spawn.hpp"
#include "base/text.hpp"
#include "scout/session/command.hpp"

#include <algorithm>
#include <sys/mman.h>
#include <unistd.h>

namespace score::scout {
namespace {

constexpr std::size_t kMaxOutputBytes = std::size_t{64} << 20U;

std::string read_back(const UniqueFd& fd) {
  ::lseek(fd.get(), 0, SEEK_SET);
  return read_all(fd.get(), kMaxOutputBytes).value_or("");
}

// Returns the path of the program on the nodes, which is the same on all; it need not exist here.
std::string find_probe(const Evidence& evidence) {
  if (!evidence.facts) return "";
  for (const auto& node : evidence.facts->nodes()) {
    if (!node.probe().empty()) return node.probe();
  }
  return "";
}

std::vector<std::string> command(const std::string& server, const std::string& probe,
                                 std::size_t nodes, bool with_pairs) {
  std::vector<std::string> words{"scrun",
                                 "--quiet",
                                 "--label",
                                 "-N",
                                 std::to_string(nodes),
                                 "--ppn=1",
                                 "--mpi=pmi1",
                                 "--immediate=10s",
                                 "--wall-time=3m",
                                 "--job-name=doctor",
                                 "--chdir=/",
                                 "--input=none",
                                 "--server",
                                 server};
  if (::geteuid() == 0) words.emplace_back("--allow-root");
  words.push_back(probe);
  if (!with_pairs) words.emplace_back("--no-pairs");
  return words;
}

struct Output {
  std::string text;
  std::string problem;  // empty: the job succeeded
};

Result<Output> run(const std::vector<std::string>& words) {
  const UniqueFd out(::memfd_create("out", MFD_CLOEXEC));
  const UniqueFd err(::memfd_create("err", MFD_CLOEXEC));
  SpawnSpec spec;
  spec.path = "/proc/self/exe";
  spec.argv = words;
  spec.environment = own_environment();
  spec.fds = {{out.get(), 1}, {err.get(), 2}};
  spec.die_with_parent = true;
  auto child = spawn(spec);
  if (!child) return child.error();
  const auto ended = reap(child->pidfd.get(), true);
  if (!ended) return ended.error();
  // The lines of some nodes are more useful than the reason of the failure.
  Output output{.text = read_back(out), .problem = {}};
  if ((*ended)->shell_code() == 0) return output;
  output.problem = last_line(read_back(err));
  if (output.text.empty()) {
    return fail(Errc::WrongState, "the job of the check printed nothing: {}", output.problem);
  }
  return output;
}

}  // namespace

void run_probe(const std::string& server, Evidence& evidence) {
  const auto& all = evidence.nodes.nodes();
  const auto nodes = static_cast<std::size_t>(std::count_if(all.begin(), all.end(), takes_jobs));
  const std::string probe = find_probe(evidence);
  if (nodes == 0 || probe.empty()) {
    evidence.why_no_probe =
        nodes == 0 ? "no node takes jobs" : "no node that answers has the program scored-probe";
    return;
  }
  const auto output = run(command(server, probe, nodes, evidence.with_pairs));
  if (output) {
    evidence.probe = parse_probe_report(output->text);
    evidence.why_probe_ended = output->problem;
  } else {
    evidence.why_no_probe = words_of(output.error());
  }
}

}  // namespace score::scout
