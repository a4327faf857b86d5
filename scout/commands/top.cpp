// score top --json prints the documents of docs/reference/stream.md from the head's socket, one per
// line.
#include "scout/commands/commands.hpp"
#include "scout/session/session.hpp"

#include <CLI/CLI.hpp>

namespace score::scout {

namespace {

constexpr Duration kSilence =
    std::chrono::seconds{15};  // longer than the period of the slowest rate
constexpr Duration kTakeOver = std::chrono::seconds{5};

struct TopOptions {
  CommonOptions common;
  bool once = false;
  std::string rate = "1";
  std::string parts;
  std::string job;
  std::uint64_t job_id = 0;  // 0: all
  std::uint64_t count = 0;
};

wire::WatchCluster request_of(const TopOptions& options) {
  std::string query = options.once ? "" : "rate=" + options.rate;
  const auto add = [&query](const std::string& name, const std::string& value) {
    query += (query.empty() ? "" : "&") + name + "=" + value;
  };
  if (!options.parts.empty()) add("parts", options.parts);
  if (options.job_id != 0) add("job", std::to_string(options.job_id));
  wire::WatchCluster request;
  request.set_query(query);
  request.set_follow(!options.once);
  return request;
}

void print_line(const std::string& document) {
  print(document + "\n");
  std::fflush(stdout);
}

// Prints documents until the head or the reader closes, or the count is reached. `shown` is the
// number of documents so far.
Result<int> follow(HeadLink& head, const TopOptions& options, std::uint64_t& shown) {
  const auto first = head.ask<wire::Snapshot>(request_of(options));
  if (!first) return first.error();
  print_line(first->document());
  while (++shown != options.count && std::ferror(stdout) == 0) {
    const auto frame = head.wait_frame(monotonic_now() + kSilence);
    // A host without power does not close its connections.
    if (!frame && frame.error().is(Errc::Timeout)) return fail(Errc::Closed, "the head is silent");
    if (!frame) return frame.error();
    const auto next = decode<wire::Snapshot>(*frame);
    if (!next) return next.error();
    print_line(next->document());
  }
  return kExitOk;
}

Result<int> show_once(HeadLink& head, const TopOptions& options) {
  const auto snapshot = head.ask<wire::Snapshot>(request_of(options));
  if (!snapshot) return snapshot.error();
  print_line(snapshot->document());
  return kExitOk;
}

// Checks that the head knows the job; without this check an unknown job would give empty documents
// for ever.
Status find_named_job(HeadLink& head, TopOptions& options) {
  if (options.job.empty() || options.job_id != 0) return {};
  const auto job = ask_word(head, options.job);
  if (!job) return job.error().with_context("--job");
  options.job_id = job->job();
  return {};
}

}  // namespace

int top_main(const Invocation& invocation) {
  TopOptions options;
  CLI::App app;
  describe(app, invocation, "Shows the cluster live, as JSON documents");
  add_server_option(app, options.common);
  add_json_option(app, options.common);
  app.add_flag("--once", options.once, "Print one document, then exit");
  app.add_option("--rate", options.rate, "Documents per second")
      ->type_name("N")
      ->check(CLI::Range(0.1, 10.0));
  app.add_option("--parts", options.parts, "Only these parts, e.g. jobs,nodes")->type_name("PARTS");
  app.add_option("--job", options.job, "Only this job")->type_name("JOB");
  app.add_option("--count", options.count, "Exit after N documents")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}));
  if (const auto code = parse(app, invocation)) return *code;
  if (!options.common.json)
    return print_error(invocation, "--json is required; sctop shows the cluster to people");
  std::uint64_t shown = 0;
  const auto show = [&](HeadLink& head) -> Result<int> {
    if (auto found = find_named_job(head, options); !found) return found.error();
    return options.once ? show_once(head, options) : follow(head, options, shown);
  };
  return with_head(invocation, options.common, show,
                   {.is_called = true,
                    .timeout = options.once ? kTakeOver : kReconnectFor,
                    .reports_loss = !options.once});
}

}  // namespace score::scout
