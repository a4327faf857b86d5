// score stacks shows where the ranks of a job are, at one instant.
#include "scout/stacks/stacks.hpp"

#include "scout/session/session.hpp"
#include "scout/stacks/stack_report.hpp"

#include <CLI/CLI.hpp>

namespace score::scout {

int stacks_main(const Invocation& invocation) {
  CommonOptions common;
  std::string job, ranks;
  bool threads = false;
  CLI::App app;
  describe(app, invocation,
           "Stops a job at the end of its slice, shows the call stacks of its ranks, merged, and "
           "lets it go on");
  add_server_option(app, common);
  add_json_option(app, common);
  app.add_option("--ranks", ranks, "Only these ranks")->type_name("LIST");
  app.add_flag("--threads", threads, "Show every thread, not only the first one of each rank");
  app.add_option("job", job, "Job id, or a step such as 7.0")->type_name("JOB")->required();
  if (const auto code = parse(app, invocation)) return *code;
  const auto work = [&](HeadLink& head) -> Result<int> {
    const auto named = ask_word(head, job);
    if (!named) return named.error();
    wire::GetStacks request;
    request.set_job(named->job());
    request.set_ranks(ranks);
    request.set_threads(threads);
    const auto stacks = head.ask<wire::Stacks>(request);
    if (!stacks) return stacks.error();
    print(common.json ? stacks_json(*stacks, named->job()) : stacks_text(*stacks, job));
    return stacks->tree().frames_size() > 0 ? kExitOk : kExitError;
  };
  return with_head(invocation, common, work);
}

}  // namespace score::scout
