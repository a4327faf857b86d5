// scq prints your jobs, active and recently ended, as ps(1) prints processes; --why prints why a
// job waits, or has its share.
#include "scout/commands/commands.hpp"
#include "scout/session/job_filter.hpp"
#include "scout/session/job_views.hpp"
#include "scout/session/session.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr std::string_view kFields = "state,slot,nodes,tasks,share,scheduled,elapsed,exit,reason";

struct QueueOptions {
  CommonOptions common;
  bool all_users = false;
  bool active_only = false;
  bool steps = false;
  bool expand = false;
  std::string why;
  std::string since = "10m";
  double watch = 0;  // seconds between tables; 0: print once
  JobFilter filter;
};

struct JobListing {
  wire::JobList list;
  std::vector<Error> missing;  // an error for each named job that is missing
};

Result<int> show_why(HeadLink& head, const QueueOptions& options) {
  const auto found = ask_word(head, options.why);
  if (!found) return found.error();
  const wire::JobStatus& job = *found;
  if (options.common.json) {
    JsonWriter json;
    json.begin_object().field("schema", "scored.why/1").field("job", job.job());
    json.field("state", state_word(job.state())).list("reasons", job.reasons());
    json.field("share_reason", job.share_reason());
    write_moment(json, "expected_start_unix_s", job.expected_start_wall_ns());
    json.end_object();
    print(json.text() + "\n");
    return kExitOk;
  }
  if (job.reasons().empty() && job.share_reason().empty())
    print(fmt::format("job {} is {}\n", job.job(), state_word(job.state())));
  for (const auto& reason : job.reasons()) print(escape_terminal(reason) + "\n");
  if (!job.share_reason().empty()) print(escape_terminal(job.share_reason()) + "\n");
  if (job.state() == static_cast<std::uint32_t>(base::JobState::Pending)) {
    print(expected_start_text(job.expected_start_wall_ns()) + "\n");
  }
  return kExitOk;
}

// Sorts the list: active jobs by number, then those that ended since `since_ns`, the last one last.
void arrange(wire::JobList& list, std::int64_t since_ns) {
  std::vector<wire::JobStatus> ended;
  wire::JobList jobs;
  for (auto& job : *list.mutable_jobs()) {
    if (!is_final_state(job.state())) {
      *jobs.add_jobs() = std::move(job);
    } else if (job.ended_wall_ns() >= since_ns) {
      ended.push_back(std::move(job));
    }
  }
  std::ranges::stable_sort(ended, {}, [](const auto& job) { return job.ended_wall_ns(); });
  for (auto& job : ended) *jobs.add_jobs() = std::move(job);
  list.mutable_jobs()->Swap(jobs.mutable_jobs());
}

Result<JobListing> ask_queue(HeadLink& head, const QueueOptions& options) {
  const JobFilter& filter = options.filter;
  if (!filter.jobs().empty()) {
    auto found = find_words(head, filter.jobs());
    if (!found) return found.error();
    filter.apply(found->list);
    return JobListing{std::move(found->list), std::move(found->missing)};
  }
  const auto since = parse_past(options.since, wall_now().time_since_epoch().count());
  if (!since) return since.error().with_context("--since");
  wire::ListJobs request;
  request.set_all_users(options.all_users || filter.names_users());
  request.set_finished(!options.active_only);
  request.set_expand(options.expand);
  auto list = list_jobs(head, std::move(request));
  if (!list) return list.error();
  arrange(*list, *since);
  filter.apply(*list);
  JobListing queue;
  for (auto& job : *list->mutable_jobs()) {
    if (options.steps || job.step_of() == 0) *queue.list.add_jobs() = std::move(job);
  }
  const std::string unknown = filter.unknown_users();
  if (queue.list.jobs().empty() && !unknown.empty()) {
    queue.missing.push_back(fail(Errc::NotFound, "{}", unknown));
  }
  return queue;
}

std::string queue_json(const wire::JobList& list, JsonWriter::Layout layout) {
  JsonWriter json(layout);
  write_jobs(json, list);
  return json.take() + "\n";
}

// The partition has a column on clusters with partitions.
std::string fields_for(const JobListing& queue, const QueueOptions& options) {
  if (!options.common.fields.empty()) return options.common.fields;
  const bool has_partitions = std::ranges::any_of(
      queue.list.jobs(), [](const auto& job) { return !job.partition().empty(); });
  return fmt::format("job,{}name,{}{}",
                     options.all_users || options.filter.names_users() ? "user," : "",
                     has_partitions ? "partition," : "", kFields);
}

Result<std::string> queue_table(const JobListing& queue, const QueueOptions& options) {
  const auto columns = choose_columns(job_columns(), fields_for(queue, options));
  if (!columns) return columns.error();
  return make_table(*columns, queue.list.jobs()).to_text(table_style(options.common));
}

// Repeats the table on a cleared terminal. With --json it prints one line each time. Words that
// name nothing are reported once; if none of them names anything, there is nothing to watch.
Result<int> watch_queue(HeadLink& head, const Invocation& invocation, const QueueOptions& options) {
  bool is_first = true;
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  const auto period = Duration(static_cast<Duration::rep>(options.watch * 1e9));
  for (TimePoint next = monotonic_now();; next += period) {
    const auto queue = ask_queue(head, options);
    if (!queue) return queue.error();
    if (options.common.json) {
      print(queue_json(queue->list, JsonWriter::Layout::Line));
    } else {
      const auto table = queue_table(*queue, options);
      if (!table) return table.error();
      if (is_terminal) print("\x1b[H\x1b[2J");
      print(*table);
    }
    if (std::fflush(stdout) != 0) return kExitOk;  // the reader has closed the pipe
    if (is_first && !queue->missing.empty()) {
      const int code = report_errors(invocation, queue->missing);
      if (queue->list.jobs().empty()) return code;
    }
    is_first = false;
    const auto frame = head.wait_frame(next + period);
    if (!frame && !frame.error().is(Errc::Timeout)) return frame.error();
  }
}

Result<int> show_queue(HeadLink& head, const Invocation& invocation, const QueueOptions& options) {
  if (options.watch > 0) return watch_queue(head, invocation, options);
  const auto queue = ask_queue(head, options);
  if (!queue) return queue.error();
  if (options.common.json) {
    print(queue_json(queue->list, JsonWriter::Layout::Page));
  } else if (queue->list.jobs_size() > 0 || queue->missing.empty()) {
    const auto table = queue_table(*queue, options);
    if (!table) return table.error();
    print(*table);
  }
  return report_errors(invocation, queue->missing);
}

}  // namespace

int scq_main(const Invocation& invocation) {
  QueueOptions options;
  CLI::App app;
  describe(app, invocation, "Shows your jobs: active and recently ended ones");
  add_server_option(app, options.common);
  add_table_options(app, options.common);
  app.add_flag("-a,--all", options.all_users, "Show jobs of all users");
  app.add_flag("--active", options.active_only, "Omit jobs that have ended");
  app.add_flag("--steps", options.steps, "Also list the steps of batch jobs, such as 7.0");
  app.add_flag("--expand", options.expand, "Also list the tasks of arrays, one per line");
  app.add_option("--why", options.why, "Print why JOB waits or has its share, or how it ended")
      ->type_name("JOB");
  app.add_option("--watch", options.watch, "Repeat every N seconds (default: 2)")
      ->type_name("N")
      ->expected(0, 1)
      ->default_str("2")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("--since", options.since,
                 "Show jobs that ended after TIME: 2h, 7d, 2026-11-21T08:30 (10m)")
      ->type_name("TIME");
  options.filter.add_options(app,
                             "Only these jobs; 12_7 and 12_[1-5]: tasks of array 12; 7.0: step");
  if (const auto code = parse(app, invocation)) return *code;
  if (const auto read = options.filter.read(); !read) return print_error(invocation, read.error());
  const auto columns = choose_columns(job_columns(), fields_for({}, options));
  if (!columns) return print_error(invocation, columns.error());
  const auto show = [&](HeadLink& head) -> Result<int> {
    return options.why.empty() ? show_queue(head, invocation, options) : show_why(head, options);
  };
  return with_head(invocation, options.common, show,
                   {.is_called = true, .reports_loss = options.watch > 0});
}

}  // namespace score::scout
