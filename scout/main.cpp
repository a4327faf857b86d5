// One binary has many names: `scrun ...` and `score scrun ...` do the same.
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "scout/accounting/accounting.hpp"
#include "scout/checkpoint/checkpoint.hpp"
#include "scout/commands/commands.hpp"
#include "scout/doctor/doctor.hpp"
#include "scout/slurm/commands.hpp"
#include "scout/stacks/stacks.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <fcntl.h>
#include <unistd.h>

namespace score::scout {

namespace {

struct Command {
  const char* name;     // the word after `score`, and the name of the symlink if there is one
  const char* summary;  // one line for `score --help`
  bool has_symlink;
  int (*main)(const Invocation&);
};

constexpr std::array kCommands = {
    Command{"scrun", "run a parallel program", true, scrun_main},
    Command{"scbatch", "submit a batch script", true, scbatch_main},
    Command{"scalloc", "hold nodes for a shell whose scrun runs there", true, scalloc_main},
    Command{"scout", "run a command on every node", true, scout_main},
    Command{"scq", "show jobs", true, scq_main},
    Command{"sccancel", "cancel jobs or send them a signal", true, sccancel_main},
    Command{"scnodes", "show nodes", true, scnodes_main},
    Command{"scattach", "attach to a running job", true, scattach_main},
    Command{"scacct", "show the accounting of ended jobs", true, scacct_main},
    Command{"scshare", "show shares, use and limits of accounts and users", true, scshare_main},
    Command{"scadm", "administer the cluster", true, scadm_main},
    Command{"job", "show one job in detail", false, job_main},
    Command{"efficiency", "compare what ended jobs requested and used", false, efficiency_main},
    Command{"change", "change what jobs requested: limits, sizes, conditions", false, change_main},
    Command{"requeue", "end running jobs and put them back into the queue", false, requeue_main},
    Command{"hold", "hold waiting jobs: they do not start", false, hold_main},
    Command{"release", "release held jobs", false, release_main},
    Command{"suspend", "suspend running jobs", false, suspend_main},
    Command{"resume", "resume suspended jobs", false, resume_main},
    Command{"stacks", "show where the ranks of a running job are", false, stacks_main},
    Command{"checkpoint", "save a running job", false, checkpoint_main},
    Command{"restart", "start a saved job again", false, restart_main},
    Command{"weight", "change the weight of jobs", false, weight_main},
    Command{"priority", "change the priority of waiting jobs", false, priority_main},
    Command{"info", "show the cluster and its timetable", false, info_main},
    Command{"partitions", "show partitions: their nodes, limits and jobs", false, partitions_main},
    Command{"licenses", "show licenses: how many there are and are used", false, licenses_main},
    Command{"doctor", "check the cluster and print how to repair it", false, doctor_main},
    Command{"token", "make, list or revoke personal tokens of the HTTP API", false, token_main},
    Command{"top", "show the cluster live, as JSON", false, top_main},
    Command{"hosts", "print the names in host lists", false, hosts_main},
    Command{"slurm-commands", "make links with the names of Slurm's commands", false,
            slurm_commands_main},
    Command{"virtual", "boot a cluster of virtual nodes on this machine", false, virtual_main},
    Command{"start", "start a cluster of your own on several hosts", false, start_main},
    Command{"stop", "stop a cluster that score start started", false, stop_main},
};

// These are called through the links of `score slurm-commands`, and are not in the help.
constexpr std::array<Command, kSlurmCommands.size()> kOfSlurm = {{
    {"sbatch", "", false, sbatch_main},
    {"srun", "", false, srun_main},
    {"salloc", "", false, salloc_main},
    {"squeue", "", false, squeue_main},
    {"scancel", "", false, scancel_main},
    {"sacct", "", false, sacct_main},
    {"sinfo", "", false, sinfo_main},
    {"scontrol", "", false, scontrol_main},
    {"sacctmgr", "", false, sacctmgr_main},
    {"sstat", "", false, sstat_main},
}};

// If our caller closed descriptor 0, 1 or 2, a descriptor opened later would take its number, and
// the job's output would go to the head's socket. Returns false if /dev/null cannot be opened.
bool have_standard_descriptors() {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR);
  if (fd > STDERR_FILENO) close(fd);
  return fd > STDERR_FILENO;
}

const Command* find_command(std::string_view name) {
  for (const auto& command : kCommands) {
    if (name == command.name) return &command;
  }
  for (const auto& command : kOfSlurm) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

std::string help() {
  std::string text = "Usage: score COMMAND [ARGUMENT...]\n\nCommands:\n";
  for (const auto& command : kCommands) {
    text += fmt::format("  {:<14} {}{}\n", command.name, command.summary,
                        command.has_symlink ? fmt::format(" (also: {})", command.name) : "");
  }
  return text +
         "\nOptions:\n  -h,--help  Print this help and exit\n  --version  Print the version\n"
         "\n`score COMMAND --help` explains a command.\n";
}

int score_main(const Invocation& self) {
  auto args = self.args;
  if (args.empty()) return print_error(self, "no command given (try score --help)");
  const std::string word = args.front();
  if (word == "-h" || word == "--help" || word == "help") return print(help()), kExitOk;
  if (word == "--version") return print(std::string("scored ") + SCORE_VERSION + "\n"), kExitOk;
  const Command* command = find_command(word);
  if (command == nullptr) {
    std::vector<std::string> known;
    for (const auto& each : kCommands) known.emplace_back(each.name);
    const auto near = nearest_word(word, known);
    return print_error(
        self, fmt::format("unknown command '{}'{} (try score --help)", escape_terminal(word, 80),
                          near.empty() ? "" : "; did you mean " + near + "?"));
  }
  args.erase(args.begin());
  const bool is_slurms = std::ranges::find(kSlurmCommands, word) != kSlurmCommands.end();
  return command->main({.name = is_slurms ? word : "score " + word, .args = std::move(args)});
}

int named_main(const Invocation& invocation) {
  const Command* command = find_command(invocation.name);
  if (command != nullptr && invocation.name != "score") return command->main(invocation);
  return score_main({.name = "score", .args = invocation.args});
}

}  // namespace

}  // namespace score::scout

int main(int argc, char** argv) {
  using namespace score::scout;
  if (!have_standard_descriptors()) return score::kExitError;
  const std::string_view path = argc > 0 ? argv[0] : "score";
  const std::string name(path.substr(path.rfind('/') + 1));
  return run_main({.name = name, .args = {argv + std::min(argc, 1), argv + argc}}, named_main);
}
