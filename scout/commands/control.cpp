// score hold, release, suspend, resume, weight, priority: what a user changes about jobs that are
// there.
#include "base/limits.hpp"
#include "base/text.hpp"
#include "scout/commands/commands.hpp"
#include "scout/session/session.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

namespace score::scout {

namespace {

struct ControlOptions {
  CommonOptions common;
  std::uint32_t weight = 0;
  std::int32_t priority = 0;
  std::vector<std::string> jobs;
};

Result<int> control(HeadLink& head, const Invocation& invocation, const ControlOptions& options,
                    wire::ControlJob::What what) {
  std::vector<std::uint64_t> ids;
  for (const auto& word : options.jobs) {
    const auto id = parse_job(word);
    if (!id) return id.error();
    ids.push_back(*id);
  }
  return for_each_job(invocation, options.common, ids, [&](std::uint64_t id) -> Result<void> {
    wire::ControlJob request;
    request.set_job(id);
    request.set_what(what);
    request.set_weight(options.weight);
    request.set_priority(options.priority);
    if (const auto done = head.ask<wire::Done>(request); !done) return done.error();
    return {};
  });
}

int control_main(const Invocation& invocation, wire::ControlJob::What what,
                 const std::string& description) {
  ControlOptions options;
  CLI::App app;
  describe(app, invocation, description);
  add_server_option(app, options.common);
  add_json_option(app, options.common);
  if (what == wire::ControlJob::SET_WEIGHT) {
    app.add_option("weight", options.weight, "Share of slices; others have 100")
        ->type_name("N")
        ->required()
        ->check(CLI::Range(limits::kMinWeight, limits::kMaxWeight));
  }
  if (what == wire::ControlJob::SET_PRIORITY) {
    app.add_option("priority", options.priority, "Larger is placed earlier; others have 0")
        ->type_name("N")
        ->required()
        ->check(CLI::Range(-limits::kMaxPriority, limits::kMaxPriority));
  }
  app.add_option("jobs", options.jobs, "Their ids")->type_name("JOB")->required();
  if (const auto code = parse(app, invocation)) return *code;
  return with_head(invocation, options.common,
                   [&](HeadLink& head) { return control(head, invocation, options, what); });
}

}  // namespace

int hold_main(const Invocation& invocation) {
  return control_main(invocation, wire::ControlJob::HOLD,
                      "Keeps waiting jobs from starting until they are released");
}

int release_main(const Invocation& invocation) {
  return control_main(invocation, wire::ControlJob::RELEASE, "Lets jobs start that are held");
}

int suspend_main(const Invocation& invocation) {
  return control_main(invocation, wire::ControlJob::SUSPEND,
                      "Takes running jobs off the timetable; they keep their place and memory");
}

int resume_main(const Invocation& invocation) {
  return control_main(invocation, wire::ControlJob::RESUME,
                      "Puts suspended jobs back on the timetable");
}

int weight_main(const Invocation& invocation) {
  return control_main(invocation, wire::ControlJob::SET_WEIGHT,
                      "Changes the share of slices of jobs, from the next timetable on");
}

int priority_main(const Invocation& invocation) {
  return control_main(invocation, wire::ControlJob::SET_PRIORITY,
                      "Changes how early jobs that wait are placed");
}

}  // namespace score::scout
