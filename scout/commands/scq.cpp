// scq: your jobs, active and recently ended, like ps(1); --why: why a job waits.
#include "scout/commands/commands.hpp"
#include "scout/session/job_views.hpp"
#include "scout/session/session.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr const char* kOwnFields =
    "job,name,state,slot,nodes,tasks,share,scheduled,elapsed,exit,reason";
constexpr const char* kAllFields =
    "job,user,name,state,slot,nodes,tasks,share,scheduled,elapsed,exit,reason";

struct QueueOptions {
  CommonOptions common;
  bool all_users = false;
  bool active_only = false;
  bool steps = false;
  bool expand = false;
  std::string why;
  double watch = 0;  // seconds between tables; 0: one
  std::vector<std::string> jobs;
};

Result<int> show_why(HeadLink& head, const QueueOptions& options) {
  const auto list = ask_words(head, {options.why});
  if (!list) return list.error();
  if (list->jobs().empty()) return fail(Errc::NotFound, "no job {}", options.why);
  const auto& job = list->jobs(0);
  if (options.common.json) {
    JsonWriter json;
    json.begin_object().field("schema", "scored.why/1").field("job", job.job());
    json.field("state", state_word(job.state())).list("reasons", job.reasons());
    write_moment(json, "expected_start_unix_s", job.expected_start_wall_ns());
    json.end_object();
    print(json.text() + "\n");
    return kExitOk;
  }
  if (job.reasons().empty())
    print(fmt::format("job {} is {}\n", job.job(), state_word(job.state())));
  for (const auto& reason : job.reasons()) print(escape_terminal(reason) + "\n");
  if (job.state() == static_cast<std::uint32_t>(base::JobState::Pending)) {
    print(expected_start_text(job.expected_start_wall_ns()) + "\n");
  }
  return kExitOk;
}

Result<wire::JobList> ask_list(HeadLink& head, const QueueOptions& options) {
  if (!options.jobs.empty()) return ask_words(head, options.jobs);
  wire::ListJobs request;
  request.set_all_users(options.all_users);
  request.set_finished(!options.active_only);
  request.set_expand(options.expand);
  auto list = list_jobs(head, std::move(request));
  if (!list || options.steps) return list;
  wire::JobList jobs;
  for (auto& job : *list->mutable_jobs()) {
    if (job.step_of() == 0) *jobs.add_jobs() = std::move(job);
  }
  return jobs;
}

std::string queue_json(const wire::JobList& list, JsonWriter::Layout layout) {
  JsonWriter json(layout);
  json.begin_object().field("schema", "scored.jobs/1").key("jobs").begin_array();
  for (const auto& job : list.jobs()) write_job(json, job);
  json.end_array().field("truncated", list.truncated()).end_object();
  return json.take() + "\n";
}

// Repeats the table on a cleared terminal; JSON is one line each time.
Result<int> watch_queue(HeadLink& head, const QueueOptions& options,
                        const std::vector<const Column<wire::JobStatus>*>& columns) {
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  const auto period = Duration(static_cast<Duration::rep>(options.watch * 1e9));
  for (TimePoint next = monotonic_now();; next += period) {
    const auto list = ask_list(head, options);
    if (!list) return list.error();
    if (options.common.json) {
      print(queue_json(*list, JsonWriter::Layout::Line));
    } else {
      if (is_terminal) print("\x1b[H\x1b[2J");
      print(make_table(columns, list->jobs()).to_text(!options.common.no_header, output_width()));
    }
    if (std::fflush(stdout) != 0) return kExitOk;  // the reader has closed the pipe
    const auto frame = head.wait_frame(next + period);
    if (!frame && !frame.error().is(Errc::Timeout)) return frame.error();
  }
}

Result<int> show_queue(HeadLink& head, const QueueOptions& options) {
  const std::string fields = !options.common.fields.empty() ? options.common.fields
                             : options.all_users            ? kAllFields
                                                            : kOwnFields;
  const auto columns = choose_columns(job_columns(), fields);
  if (!columns) return columns.error();
  if (options.watch > 0) return watch_queue(head, options, *columns);
  const auto list = ask_list(head, options);
  if (!list) return list.error();
  if (options.common.json) {
    print(queue_json(*list, JsonWriter::Layout::Page));
    return kExitOk;
  }
  print(make_table(*columns, list->jobs()).to_text(!options.common.no_header, output_width()));
  return kExitOk;
}

}  // namespace

int scq_main(const Invocation& invocation) {
  QueueOptions options;
  CLI::App app;
  describe(app, invocation, "Shows your jobs: active ones and those that ended last");
  add_server_option(app, options.common);
  add_table_options(app, options.common);
  app.add_flag("-a,--all", options.all_users, "Show jobs of all users");
  app.add_flag("--active", options.active_only, "Omit jobs that have ended");
  app.add_flag("--steps", options.steps, "Also list the steps of batch jobs, such as 7.0");
  app.add_flag("--expand", options.expand, "Also show the tasks of arrays, a line each");
  app.add_option("--why", options.why, "Print every reason why JOB waits, or how it ended")
      ->type_name("JOB");
  app.add_option("--watch", options.watch, "Repeat every N seconds (default: 2)")
      ->type_name("N")
      ->expected(0, 1)
      ->default_str("2")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("jobs", options.jobs, "Only these jobs")->type_name("JOB");
  if (const auto code = parse(app, invocation)) return *code;
  const auto show = [&](HeadLink& head) -> Result<int> {
    return options.why.empty() ? show_queue(head, options) : show_why(head, options);
  };
  return with_head(invocation, options.common, show, kReadsOnly);
}

}  // namespace score::scout
