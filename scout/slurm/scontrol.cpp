// scontrol shows jobs, nodes and host lists, and controls and changes jobs.
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "scout/commands/commands.hpp"
#include "scout/session/words.hpp"
#include "scout/slurm/commands.hpp"
#include "scout/slurm/job_list.hpp"
#include "scout/slurm/show_words.hpp"
#include "scout/slurm/slurm_command.hpp"
#include "scout/slurm/words/job_words.hpp"
#include "scout/slurm/words/update_words.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <set>

namespace score::scout {

namespace slurm {
namespace {

constexpr std::array kForms = {
    OptionForm{"all", 'a'},
    OptionForm{"clusters", 'M', Takes::Value},
    OptionForm{"details", 'd'},
    OptionForm{"federation"},
    OptionForm{"future", 'F'},
    OptionForm{"hide"},
    OptionForm{"local"},
    OptionForm{"oneliner", 'o'},
    OptionForm{"quiet", 'Q'},
    OptionForm{"sibling"},
    OptionForm{"uid", 'u', Takes::Value},
    OptionForm{"verbose", 'v'},
};

using Words = std::vector<std::string>;

// Slurm accepts the beginning of a word.
bool begins(std::string_view whole, std::string_view word, std::size_t least) {
  return word.size() >= least && whole.starts_with(word);
}

// Returns what follows "show job": "12", or "JobId=12".
Words values_of(const Words& words, std::size_t from) {
  Words values;
  for (std::size_t i = from; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    for (auto& value :
         split_jobs(equals == words[i].npos ? words[i] : words[i].substr(equals + 1))) {
      values.push_back(std::move(value));
    }
  }
  return values;
}

Result<int> show_jobs(HeadLink& head, const Invocation& invocation, const Words& wanted,
                      ShowStyle style) {
  int code = kExitOk;
  Jobs jobs;
  if (wanted.empty()) {
    auto queued = queued_jobs(head, true);
    if (!queued) return queued.error();
    jobs = std::move(*queued);
    if (jobs.empty()) print("No jobs in the system\n");
  } else {
    auto named = named_jobs(head, wanted);
    if (!named) return named.error();
    jobs = std::move(named->jobs);
    if (!named->missing.empty()) code = print_failure(invocation, "Invalid job id specified");
  }
  std::string text;
  for (const auto& job : jobs) text += show_job(job, style);
  print(text);
  return code;
}

Result<int> show_nodes(HeadLink& head, const Invocation& invocation, const Words& wanted,
                       ShowStyle style) {
  std::set<std::string, std::less<>> names;
  for (const auto& list : wanted) {
    const auto expanded = expand_hostlist(list);
    if (!expanded) return expanded.error();
    names.insert(expanded->begin(), expanded->end());
  }
  const auto rows = ask_cluster(head);
  if (!rows) return rows.error();
  const bool shows_all = names.empty();
  std::string text;
  for (const auto& node : rows->nodes) {
    if (!shows_all && names.erase(node.status.name()) == 0) continue;
    text += show_node(node, rows->info, style);
  }
  print(text);
  int code = kExitOk;
  for (const auto& name : names) {
    code = print_failure(invocation, fmt::format("Node {} not found", escape_terminal(name, 80)));
  }
  return code;
}

Result<int> show_partitions(HeadLink& head, const Invocation& invocation, const Words& wanted,
                            ShowStyle style) {
  const auto rows = ask_cluster(head);
  if (!rows) return rows.error();
  std::string text;
  for (const auto& name : partitions_of(rows->info)) {
    if (!wanted.empty() && std::ranges::find(wanted, name) == wanted.end()) continue;
    text += show_partition(name, *rows, style);
  }
  print(text);
  if (!text.empty() || wanted.empty()) return kExitOk;
  return print_failure(invocation,
                       fmt::format("Partition {} not found", escape_terminal(wanted[0], 80)));
}

// Needs no head. Without a list, that of the job around this process is used.
int show_hosts(const Invocation& invocation, std::string_view what, const Words& words) {
  std::string list;
  for (std::size_t i = 2; i < words.size(); ++i) list += (list.empty() ? "" : ",") + words[i];
  for (const char* name : {"SLURM_JOB_NODELIST", "SLURM_NODELIST", "SCORE_NODELIST"}) {
    const char* value = std::getenv(name);
    if (list.empty() && value != nullptr) list = value;
  }
  if (list.empty()) return print_failure(invocation, "host list is empty");
  auto names = expand_hostlist(list);
  if (!names) return print_failure(invocation, names.error());
  if (what == "hostlistsorted") std::ranges::sort(*names);
  if (what != "hostnames") return print(compress_in_order(*names) + "\n"), kExitOk;
  std::string text;
  for (const auto& name : *names) text += name + "\n";
  print(text);
  return kExitOk;
}

int show(const Invocation& invocation, const CommandLine& line) {
  const Words& words = line.words;
  const ShowStyle style{line.has("oneliner")};
  const std::string what = words.size() > 1 ? words[1].substr(0, words[1].find('=')) : "";
  for (const std::string_view hosts : {"hostnames", "hostlist", "hostlistsorted"}) {
    if (what == hosts) return show_hosts(invocation, hosts, words);
  }
  // "JobId=12" names the kind and the object in one word.
  const bool has_value = words.size() > 1 && words[1].find('=') != std::string::npos;
  const Words wanted = values_of(words, has_value ? 1 : 2);
  return ask_head(invocation, [&](HeadLink& head) -> Result<int> {
    if (begins("jobs", what, 3) || what == "JobId" || what == "jobid") {
      return show_jobs(head, invocation, wanted, style);
    }
    if (begins("nodes", what, 3) || what == "NodeName") {
      return show_nodes(head, invocation, wanted, style);
    }
    if (begins("partitions", what, 3) || what == "PartitionName") {
      return show_partitions(head, invocation, wanted, style);
    }
    if (begins("config", what, 3)) {
      const auto info = head.ask<wire::Info>(wire::GetInfo());
      if (!info) return info.error();
      print(show_config(*info));
      return kExitOk;
    }
    return print_failure(
        invocation,
        fmt::format("show {}: not supported; show job, node, partition, config, hostnames, "
                    "hostlist or hostlistsorted",
                    escape_terminal(what, 80)));
  });
}

std::optional<wire::ControlJob::What> control_of(std::string_view word) {
  if (word == "hold" || word == "uhold" || word == "holdh") return wire::ControlJob::HOLD;
  if (word == "release") return wire::ControlJob::RELEASE;
  if (word == "suspend") return wire::ControlJob::SUSPEND;
  if (word == "resume") return wire::ControlJob::RESUME;
  return std::nullopt;
}

// Changes the jobs that the words name, even after one failed. An array without tasks is one job.
int control(const Invocation& invocation, const Words& words, wire::ControlJob::What what) {
  const Words wanted = values_of(words, 1);
  if (wanted.empty()) return print_failure(invocation, words[0] + ": no job given");
  return ask_head(invocation, [&](HeadLink& head) -> Result<int> {
    int code = kExitOk;
    for (const auto& word : wanted) {
      const auto id = find_job(head, word);
      if (!id && id.error().is(Errc::Closed)) return id.error();
      Result<wire::Done> done = wire::Done();
      if (id) {
        wire::ControlJob request;
        request.set_job(*id);
        request.set_what(what);
        done = head.ask<wire::Done>(request);
      } else {
        done = id.error();
      }
      if (!done) {
        code =
            print_failure(invocation, fmt::format("{} {}: {}", words[0], escape_terminal(word, 80),
                                                  escape_terminal(words_of(done.error()), 400)));
      }
    }
    return code;
  });
}

int update(const Invocation& invocation, const Words& words) {
  const auto read = read_update(std::span(words).subspan(1));
  if (!read) return print_failure(invocation, read.error().with_context("update"));
  Words args = read->jobs;
  args.insert(args.end(), read->changes.begin(), read->changes.end());
  return change_main(invocation.with(std::move(args))) == kExitOk ? kExitOk : kExitFailed;
}

int requeue(const Invocation& invocation, const Words& words) {
  const Words jobs = values_of(words, 1);
  if (jobs.empty()) return print_failure(invocation, "requeue: no job given");
  return requeue_main(invocation.with(jobs)) == kExitOk ? kExitOk : kExitFailed;
}

}  // namespace
}  // namespace slurm

int scontrol_main(const Invocation& invocation) {
  using namespace slurm;
  const auto [line, code] =
      read_line(invocation, kForms,
                {"[OPTION...] COMMAND [ARGUMENT...]", "shows and controls jobs and nodes"});
  if (code) return *code;
  if (line.words.empty())
    return print_failure(invocation, "no command given (try scontrol --help)");
  const std::string& command = line.words[0];
  if (command == "show") return show(invocation, line);
  if (const auto what = control_of(command)) return control(invocation, line.words, *what);
  if (command == "ping") {
    return ask_head(invocation, [](HeadLink& /*head*/) -> Result<int> {
      print("Slurmctld(primary) is UP\n");
      return kExitOk;
    });
  }
  if (command == "update") return update(invocation, line.words);
  if (command == "requeue") return requeue(invocation, line.words);
  return print_failure(invocation,
                       fmt::format("{}: not supported; the commands are show, hold, release, "
                                   "suspend, resume, requeue, update and ping",
                                   escape_terminal(command, 80)));
}

}  // namespace score::scout
