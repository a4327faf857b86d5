// scrun submits a parallel program and stays as its front end.
#include "base/text/json_writer.hpp"
#include "scout/commands/commands.hpp"
#include "scout/commands/dry_run.hpp"
#include "scout/run/front_end.hpp"
#include "scout/run/run_options.hpp"
#include "scout/run/submitting.hpp"
#include "scout/session/session.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

#include <unistd.h>

namespace score::scout {

namespace {

bool warns_sharing(const RunOptions& options) {
  return !options.quiet && !options.overcommit;
}

Result<int> detach(SubmitRequest& request, const Invocation& invocation,
                   const RunOptions& options) {
  const auto submitted = submit_with_retry(invocation, request);
  if (!submitted) return submitted.error();
  const auto sharing = sharing_text(submitted->tasks_per_core(), options.cpus_per_task);
  if (!sharing.empty() && warns_sharing(options)) print_error(invocation, sharing);
  JsonWriter json;
  json.begin_object().field("schema", "scored.submitted/1").field("job", submitted->job());
  json.end_object();
  const std::string id = submitted->step_of() == 0
                             ? std::to_string(submitted->job())
                             : fmt::format("{}.{}", submitted->step_of(), submitted->step());
  print(options.common.json ? json.text() + "\n" : id + "\n");
  return kExitOk;
}

FrontEndOptions front_end_options(const Invocation& invocation, const RunOptions& options,
                                  wire::Submit submission) {
  FrontEndOptions front;
  front.invocation = invocation;
  const bool no_input = options.input == "none" || !submission.spec().stdin_path().empty();
  front.reads_input = !no_input;
  front.pty = options.pty;
  front.forward_interrupt = options.forward_interrupt;
  front.style = options.label ? OutputStyle::Labelled : OutputStyle::Plain;
  front.quiet = options.quiet;
  front.warns_sharing = warns_sharing(options);
  front.json = options.common.json;
  front.start_lines = !options.quiet && (options.verbose || isatty(STDERR_FILENO) == 1);
  front.submission = std::move(submission);
  return front;
}

}  // namespace

int scrun_main(const Invocation& invocation) {
  RunOptions options;
  if (const auto code = parse_run_options(invocation, options)) return *code;
  auto submission = make_submission(options);
  if (!submission) return print_error(invocation, submission.error());
  auto request = open_request(invocation, options.common.server, std::move(*submission));
  if (!request) return print_error(invocation, request.error());
  if (options.dry_run) {
    const auto code = dry_run(invocation, request->link, options.common.json, request->submission);
    return code ? *code : print_error(invocation, code.error());
  }
  if (options.detach) {
    const auto code = detach(*request, invocation, options);
    return code ? *code : print_error(invocation, code.error());
  }
  auto front = front_end_options(invocation, options, std::move(request->submission));
  front.socket = request->socket;
  return FrontEnd(std::move(front), std::move(request->link)).run();
}

int scattach_main(const Invocation& invocation) {
  FrontEndOptions front;
  CommonOptions common;
  std::string job;
  bool input = false;
  bool label = false;
  CLI::App app;
  describe(app, invocation,
           "Attaches to a running job: prints its output and how it ended; ^C detaches");
  add_server_option(app, common);
  add_json_option(app, common);
  app.add_flag("--input", input, "Send standard input to the job");
  app.add_flag("-l,--label", label, "Put \"rank: \" before each line");
  app.add_flag("-q,--quiet", front.quiet, "Print only errors, not that the job completed");
  app.add_option("job", job, "Job id")->type_name("JOB")->required();
  if (const auto code = parse(app, invocation)) return *code;
  const auto server = find_server(common.server);
  if (!server) return print_error(invocation, server.error());
  auto link = reach_head(common.server, *server);
  if (!link) return print_error(invocation, link.error());
  const auto id = find_job(*link, job);
  if (!id) return print_error(invocation, id.error());
  front.invocation = invocation;
  front.socket = *server;
  front.job = *id;
  front.reads_input = input;
  front.json = common.json;
  if (label) front.style = OutputStyle::Labelled;
  return FrontEnd(std::move(front), std::move(*link)).run();
}

}  // namespace score::scout
