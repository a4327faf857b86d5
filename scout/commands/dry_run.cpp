#include "scout/commands/dry_run.hpp"

#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/json_writer.hpp"
#include "proto/documents/job_document.hpp"
#include "scout/session/words.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr std::size_t kMostReasonBytes = 1'000;

std::string path_of(const wire::LaunchSpec& spec, const wire::Program& program) {
  for (const auto* variables : {&program.env(), &spec.env()}) {
    for (const auto& entry : *variables) {
      if (entry.starts_with("PATH=")) return entry.substr(5);
    }
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

// Returns 0, or the exit code that a shell would give.
int judge_file(const std::string& path) {
  struct stat info {};

  if (stat(path.c_str(), &info) != 0) return errno == ENOENT ? kExitNotFound : kExitCannotExecute;
  const bool runs = S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
  return runs ? kExitOk : kExitCannotExecute;
}

// Looks for the program in the job's directory and in its PATH, as the nodes will.
int judge_program(const wire::LaunchSpec& spec, const wire::Program& program) {
  if (!spec.script().empty()) return kExitOk;
  const std::string& name = program.argv(0);
  const auto& directory = program.directory().empty() ? spec.directory() : program.directory();
  const auto in_directory = [&](std::string_view path) {
    return path.starts_with('/') ? std::string(path) : fmt::format("{}/{}", directory, path);
  };
  if (name.find('/') != name.npos) return judge_file(in_directory(name));
  int code = kExitNotFound;
  const std::string path = path_of(spec, program);
  for (const auto place : split(path, ':')) {
    const int found = judge_file(fmt::format("{}/{}", in_directory(place), name));
    if (found == kExitOk) return found;
    if (found == kExitCannotExecute) code = found;
  }
  return code;
}

std::vector<std::string> names_of(const wire::Planned& planned) {
  return {planned.nodes().begin(), planned.nodes().end()};
}

std::string plan_document(const wire::Planned& planned) {
  JsonWriter json;
  proto::write_plan(json, planned);
  return json.take();
}

}  // namespace

std::string plan_line(const wire::Planned& planned, std::uint32_t cpus_per_task) {
  if (!planned.starts()) {
    return escape_terminal(fmt::format("would wait: {}", fmt::join(planned.reasons(), "; ")),
                           kMostReasonBytes) +
           "; " + expected_start_text(planned.expected_start_wall_ns());
  }
  const auto [least, most] =
      std::minmax_element(planned.tasks_on_node().begin(), planned.tasks_on_node().end());
  const bool is_even = planned.tasks_on_node().empty() || *least == *most;
  std::string each = planned.tasks_on_node().empty() ? "no" : std::to_string(*most);
  if (!is_even) each = fmt::format("{} to {}", *least, *most);
  const std::string slot =
      planned.slot() < 0 ? "outside the slots" : fmt::format("in slot {}", planned.slot());
  const auto sharing = sharing_text(planned.tasks_per_core(), cpus_per_task);
  return fmt::format("would start now {} on {}: {} task{}, {} on each node{}{}", slot,
                     compress_hostlist(names_of(planned)), planned.tasks(),
                     planned.tasks() == 1 ? "" : "s", each, sharing.empty() ? "" : "; ", sharing);
}

Result<int> dry_run(const Invocation& invocation, HeadLink& link, bool json,
                    const wire::Submit& submission) {
  wire::Plan question;
  *question.mutable_submission() = submission;
  const auto planned = link.ask<wire::Planned>(question);
  if (!planned) return planned.error();
  const auto cpus = submission.resources().cpus_per_task();
  print((json ? plan_document(*planned) : plan_line(*planned, cpus)) + "\n");
  int worst = kExitOk;
  for (const auto& program : submission.spec().programs()) {
    const int code = judge_program(submission.spec(), program);
    worst = std::max(worst, code);
    if (code == kExitOk) continue;
    print_error(invocation,
                fmt::format("{} {} on this host; the nodes may differ",
                            escape_terminal(program.argv(0), 256),
                            code == kExitNotFound ? "is not found" : "cannot be executed"));
  }
  return worst;
}

}  // namespace score::scout
