// These commands change existing jobs: score hold, release, suspend, resume, weight, priority.
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
  for (const auto& word : options.jobs) {
    const auto named = parse_job_word(word);
    if (named && named->step) {
      return fail(Errc::Malformed, "{} is a step; give its job", escape_terminal(word, 80));
    }
  }
  int code = kExitOk;
  const auto ids = known_jobs(invocation, head, options.jobs, code);
  if (!ids) return ids.error();
  const int result =
      for_each_job(invocation, options.common, *ids, [&](std::uint64_t id) -> Result<void> {
        wire::ControlJob request;
        request.set_job(id);
        request.set_what(what);
        request.set_weight(options.weight);
        request.set_priority(options.priority);
        if (const auto done = head.ask<wire::Done>(request); !done) return done.error();
        const bool is_shown = what == wire::ControlJob::SUSPEND && !options.common.json;
        if (is_shown) {
          tell(fmt::format(
              "{0} is suspended: score stacks {0} shows where its ranks are; a debugger "
              "such as gdb -p waits until it is resumed",
              id));
        }
        return {};
      });
  return result != kExitOk ? result : code;
}

int control_main(const Invocation& invocation, wire::ControlJob::What what,
                 const std::string& description) {
  ControlOptions options;
  CLI::App app;
  describe(app, invocation, description);
  add_server_option(app, options.common);
  add_json_option(app, options.common);
  if (what == wire::ControlJob::SET_WEIGHT) {
    app.add_option("weight", options.weight, "Share of slices; the default is 100")
        ->type_name("N")
        ->required()
        ->check(CLI::Range(limits::kMinWeight, limits::kMaxWeight));
  }
  if (what == wire::ControlJob::SET_PRIORITY) {
    app.add_option("priority", options.priority,
                   "Jobs with a higher one are placed earlier; the default is 0")
        ->type_name("N")
        ->required()
        ->check(CLI::Range(-limits::kMaxPriority, limits::kMaxPriority));
  }
  app.add_option("jobs", options.jobs, "Job ids")->type_name("JOB")->required();
  if (const auto code = parse(app, invocation)) return *code;
  return with_head(invocation, options.common,
                   [&](HeadLink& head) { return control(head, invocation, options, what); });
}

}  // namespace

int hold_main(const Invocation& invocation) {
  return control_main(invocation, wire::ControlJob::HOLD,
                      "Holds waiting jobs: they do not start until they are released");
}

int release_main(const Invocation& invocation) {
  return control_main(invocation, wire::ControlJob::RELEASE,
                      "Releases held jobs, so that they can start");
}

int suspend_main(const Invocation& invocation) {
  return control_main(invocation, wire::ControlJob::SUSPEND,
                      "Suspends running jobs; they keep their nodes and memory");
}

int resume_main(const Invocation& invocation) {
  return control_main(invocation, wire::ControlJob::RESUME, "Resumes suspended jobs");
}

int weight_main(const Invocation& invocation) {
  return control_main(invocation, wire::ControlJob::SET_WEIGHT,
                      "Changes the weight of jobs, effective with the next timetable");
}

int priority_main(const Invocation& invocation) {
  return control_main(invocation, wire::ControlJob::SET_PRIORITY,
                      "Changes the priority of waiting jobs");
}

}  // namespace score::scout
