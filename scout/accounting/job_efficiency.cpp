// This command compares what ended jobs requested with what they used, and gives advice.
#include "base/text/plain.hpp"
#include "scout/accounting/accounting.hpp"
#include "scout/accounting/efficiency.hpp"
#include "scout/session/job_views.hpp"
#include "scout/session/session.hpp"
#include "scout/session/usage_words.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

namespace score::scout {

namespace {

struct EfficiencyOptions {
  CommonOptions common;
  std::vector<std::string> jobs;
};

std::string percent_text(const std::optional<double>& part) {
  return part ? fmt::format("{:.0f}%", *part * 100) : std::string("-");
}

std::string page_of(const wire::JobStatus& job, const Efficiency& efficiency,
                    const base::Usage& usage) {
  const auto memory = Bytes(job.memory_per_node_bytes());
  std::string page = fmt::format("job {} ({})\n", job_id(job), escape_terminal(job.name(), 200));
  page += fmt::format("processors  {:>4}  {:.1f} s used of {:.1f} s: {} for {:.1f} s\n",
                      percent_text(efficiency.cpu),
                      to_seconds((usage.cpu_user + usage.cpu_system).count()),
                      to_seconds(job.scheduled_ns()) * job.cores(), counted(job.cores(), "core"),
                      to_seconds(job.scheduled_ns()));
  page += fmt::format("memory      {:>4}  {} used on a node{}\n", percent_text(efficiency.memory),
                      short_bytes(usage.memory_peak),
                      memory > Bytes(0) ? fmt::format(", {} requested", short_bytes(memory))
                                        : std::string(", none requested"));
  page += fmt::format("time        {:>4}  {:.1f} s{}\n", percent_text(efficiency.time),
                      to_seconds(job.scheduled_ns()),
                      job.scheduled_limit_ns() > 0
                          ? fmt::format(", limit {}", limit_time(job.scheduled_limit_ns()))
                          : std::string(", no limit"));
  for (const auto& line : efficiency.advice) page += line + "\n";
  return page;
}

void write_json(JsonWriter& json, const wire::JobStatus& job, const Efficiency& efficiency,
                const base::Usage& usage) {
  json.begin_object().field("job", job.job()).field("cores", job.cores());
  json.field("scheduled_s", to_seconds(job.scheduled_ns()));
  json.field("memory_per_node_bytes", job.memory_per_node_bytes());
  json.field("cpu_efficiency", efficiency.cpu).field("memory_efficiency", efficiency.memory);
  json.field("time_efficiency", efficiency.time).list("advice", efficiency.advice);
  base::write_usage(json, usage);
  json.end_object();
}

Result<int> show_efficiency(HeadLink& head, const EfficiencyOptions& options) {
  JsonWriter json;
  json.begin_object().field("schema", "scored.efficiency/1").key("jobs").begin_array();
  std::string pages;
  for (const std::string& word : options.jobs) {
    const auto job = ask_word(head, word);
    if (!job) return job.error();
    if (!is_final_state(job->state()))
      return fail(Errc::WrongState, "job {} has not ended", escape_terminal(word, 80));
    const auto usage = usage_in(*job);
    if (!usage) {
      return fail(Errc::NotFound, "job {}: it was not recorded what it used",
                  escape_terminal(word, 80));
    }
    const Efficiency efficiency = efficiency_of(*job, *usage);
    write_json(json, *job, efficiency, *usage);
    pages += (pages.empty() ? "" : "\n") + page_of(*job, efficiency, *usage);
  }
  json.end_array().end_object();
  print(options.common.json ? json.text() + "\n" : pages);
  return kExitOk;
}

}  // namespace

int efficiency_main(const Invocation& invocation) {
  EfficiencyOptions options;
  CLI::App app;
  describe(app, invocation, "Compares what ended jobs requested with what they used");
  add_server_option(app, options.common);
  add_json_option(app, options.common);
  app.add_option("job", options.jobs, "Job ids")->type_name("JOB")->required();
  if (const auto code = parse(app, invocation)) return *code;
  return with_head(
      invocation, options.common, [&](HeadLink& head) { return show_efficiency(head, options); },
      kReadsOnly);
}

}  // namespace score::scout
