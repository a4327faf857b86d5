// score job JOB prints one readable page about one job. score info prints the state of the cluster.
#include "base/text/plain.hpp"
#include "proto/convert/words.hpp"
#include "proto/documents/cluster_documents.hpp"
#include "proto/documents/profile_document.hpp"
#include "scout/commands/commands.hpp"
#include "scout/commands/pools.hpp"
#include "scout/accounting/profile_view.hpp"
#include "scout/doctor/parts.hpp"
#include "scout/doctor/probe_job.hpp"
#include "scout/session/job_views.hpp"
#include "scout/session/session.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include <optional>

namespace score::scout {

namespace {

struct JobOptions {
  CommonOptions common;
  std::string job;
  bool events = false;
  bool profile = false;
  bool csv = false;
};

struct RecordedEvent {
  std::int64_t wall_ns;
  std::string text;
};

// Returns the events as the head recorded them; a job of an earlier version has at least its times.
std::vector<RecordedEvent> events_of(const wire::JobStatus& job) {
  std::vector<RecordedEvent> events;
  for (const auto& event : job.events()) events.push_back({event.wall_ns(), event.text()});
  if (!events.empty()) return events;
  events.push_back({job.submitted_wall_ns(), fmt::format("accepted as job {}", job.job())});
  if (job.started_wall_ns() > 0) {
    events.push_back(
        {job.started_wall_ns(),
         fmt::format("{} started on {}", counted(job.tasks(), "task"), node_list(job))});
  }
  if (job.ended_wall_ns() > 0) {
    const auto why = all_reasons(job);
    events.push_back(
        {job.ended_wall_ns(), fmt::format("{}, exit code {}{}", state_word(job.state()),
                                          job.exit_code(), why.empty() ? "" : ": " + why)});
  }
  return events;
}

Result<int> show_profile(HeadLink& head, const JobOptions& options, std::uint64_t job) {
  wire::GetProfile ask;
  ask.set_job(job);
  const auto profile = head.ask<wire::Profile>(ask);
  if (!profile) return profile.error();
  if (options.common.json) {
    JsonWriter json;
    proto::write_profile(json, job, *profile);
    print(json.text() + "\n");
  } else {
    constexpr std::size_t kUsualColumns = 80;
    const std::size_t columns = output_width();
    print(options.csv ? proto::profile_csv(*profile)
                      : profile_page(*profile, columns > 0 ? columns : kUsualColumns));
  }
  return kExitOk;
}

Result<int> show_job(HeadLink& head, const JobOptions& options) {
  const auto found = ask_word(head, options.job);
  if (!found) return found.error();
  const wire::JobStatus& job = *found;
  if (options.profile || options.csv) return show_profile(head, options, job.job());
  const auto events = events_of(job);
  if (options.common.json) {
    JsonWriter json;
    json.begin_object().field("schema", "scored.job/1").key("job");
    write_job(json, job);
    json.key("events").begin_array();
    for (const auto& event : events) {
      write_moment(json.begin_object(), "unix_s", event.wall_ns);
      json.field("text", event.text).end_object();
    }
    print(json.end_array().end_object().text() + "\n");
    return kExitOk;
  }
  if (!options.events) print(job_page(job));
  for (const auto& event : options.events ? events : std::vector<RecordedEvent>()) {
    const auto ms = event.wall_ns / 1'000'000 % 1'000;
    print(fmt::format("{}.{:03}  {}\n", local_time(event.wall_ns), ms,
                      escape_terminal(event.text, 1'000)));
  }
  return kExitOk;
}

std::string info_page(const wire::Info& info) {
  std::string page = fmt::format("cluster {}, scored {}{}\n", escape_terminal(info.cluster(), 200),
                                 escape_terminal(info.version(), 80),
                                 info.virtual_cluster() ? " (virtual nodes)" : "");
  page += fmt::format("nodes   {} up of {}\n", info.nodes_up(), info.nodes_known());
  page += fmt::format(
      "slice   {}, slots {}, cycle {}, epoch {}\n", format_duration(Duration(info.quantum_ns())),
      setting_text(info, Setting::Slots), format_duration(Duration(info.cycle_ns())), info.epoch());
  page += fmt::format("jobs    {} active\n", info.jobs_active());
  page += fmt::format("fill    {}\n", fill_words(info));
  for (const auto& slice : info.slices()) {
    page += fmt::format("slot {:>2}  {:>8} ", slice.slot(),
                        format_duration(Duration(slice.length_ns())));
    for (const auto job : slice.jobs()) page += fmt::format(" {}", job);
    page += "\n";
  }
  page += fmt::format("limits  per user: weight {}, priority {}, {}, queues: {}\n",
                      info.max_weight(), info.max_priority(), counted(info.max_jobs(), "job"),
                      escape_terminal(fmt::format("{}", fmt::join(info.queues(), " ")), 80));
  page += pools_lines(info);
  if (!info.dashboard_url().empty()) {
    page += fmt::format("web     {}\n", escape_terminal(info.dashboard_url(), 200));
  }
  page +=
      fmt::format("head    pid {}, socket {}\n", info.pid(), escape_terminal(info.socket(), 200));
  for (const auto& head : info.heads()) {
    page += fmt::format("        {}: {}\n", escape_terminal(head.name(), 200),
                        escape_terminal(proto::state_words(head), 80));
  }
  return page;
}

Result<Evidence> find_parts(HeadLink& head, const CommonOptions& options) {
  const auto server = find_server(options.server);
  if (!server) return server.error();
  auto evidence = ask_daemons(head);
  if (!evidence) return evidence;
  evidence->with_pairs = false;
  run_probe(*server, *evidence);
  return evidence;
}

std::string parts_lines(const std::optional<Evidence>& evidence) {
  return evidence ? parts_page(*evidence)
                  : "parts   score info --optional lists the optional parts of the nodes\n";
}

}  // namespace

int job_main(const Invocation& invocation) {
  JobOptions options;
  CLI::App app;
  describe(app, invocation, "Shows everything about one job");
  add_server_option(app, options.common);
  add_json_option(app, options.common);
  app.add_flag("--events", options.events, "Print only the job's events");
  app.add_flag("--profile", options.profile, "Show what the job used over time");
  app.add_flag("--csv", options.csv, "With --profile: print comma-separated values");
  app.add_option("job", options.job, "Job id")->type_name("JOB")->required();
  if (const auto code = parse(app, invocation)) return *code;
  return with_head(
      invocation, options.common, [&](HeadLink& head) { return show_job(head, options); },
      kReadsOnly);
}

int info_main(const Invocation& invocation) {
  CommonOptions options;
  bool with_parts = false;
  CLI::App app;
  describe(app, invocation, "Shows the cluster: its slice, slots, nodes and timetable");
  add_server_option(app, options);
  add_json_option(app, options);
  app.add_flag("--optional", with_parts,
               "List the optional parts of each node, which a small job looks for");
  if (const auto code = parse(app, invocation)) return *code;
  const auto show = [&](HeadLink& head) -> Result<int> {
    const auto info = head.ask<wire::Info>(wire::GetInfo());
    if (!info) return info.error();
    std::optional<Evidence> evidence;
    if (with_parts) {
      auto found = find_parts(head, options);
      if (!found) return found.error();
      evidence = *std::move(found);
    }
    JsonWriter json;
    json.begin_object();
    proto::write_info(json, *info);
    if (evidence) write_parts(json, *evidence);
    json.end_object();
    print(options.json ? json.text() + "\n" : info_page(*info) + parts_lines(evidence));
    return kExitOk;
  };
  return with_head(invocation, options, show, kReadsOnly);
}

}  // namespace score::scout
