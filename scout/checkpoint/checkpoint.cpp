// score checkpoint saves a running job; score restart starts a saved one again, as a new job.
#include "scout/checkpoint/checkpoint.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/json_writer.hpp"
#include "proto/checkpoint.pb.h"
#include "scout/checkpoint/saved_job.hpp"
#include "scout/run/front_end.hpp"
#include "scout/run/run_options.hpp"
#include "scout/run/submitting.hpp"
#include "scout/session/session.hpp"

#include <CLI/CLI.hpp>

#include <unistd.h>

namespace score::scout {

namespace {

constexpr Duration kLongestSave = std::chrono::minutes{15};

double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

std::string json_of(const wire::Checkpointed& saved, std::uint64_t job) {
  JsonWriter json;
  json.begin_object().field("schema", "scored.checkpoint/1").field("job", job);
  json.field("set", saved.set()).field("image_bytes", saved.image_bytes());
  json.field("stop_s", seconds(saved.stopped_ns())).field("complete_s", seconds(saved.total_ns()));
  json.field("error", saved.reason()).end_object();
  return json.text() + "\n";
}

Result<int> restart(const Invocation& invocation, const CommonOptions& common,
                    wire::Submit submission, bool is_quiet) {
  submission.set_request_id(new_request_id());
  const bool is_detached = submission.detached();
  auto request = open_request(invocation, common.server, std::move(submission));
  if (!request) return request.error();
  if (is_detached) {
    const auto submitted = submit_with_retry(invocation, *request);
    if (!submitted) return submitted.error();
    JsonWriter json;
    json.begin_object().field("schema", "scored.submitted/1").field("job", submitted->job());
    json.end_object();
    print(common.json ? json.text() + "\n" : fmt::format("{}\n", submitted->job()));
    return kExitOk;
  }
  FrontEndOptions front;
  front.invocation = invocation;
  front.socket = request->socket;
  const auto& spec = request->submission.spec();
  front.reads_input = spec.stdin_rank() != -2 && spec.stdin_path().empty();
  front.quiet = is_quiet;
  front.json = common.json;
  front.start_lines = !is_quiet && isatty(STDERR_FILENO) == 1;
  front.submission = std::move(request->submission);
  return FrontEnd(std::move(front), std::move(request->link)).run();
}

}  // namespace

int checkpoint_main(const Invocation& invocation) {
  CommonOptions common;
  std::string job;
  bool stop = false;
  CLI::App app;
  describe(app, invocation,
           "Saves a running job that was started with --checkpoint; it goes on afterwards");
  add_server_option(app, common);
  add_json_option(app, common);
  app.add_flag("--stop", stop, "End the job when it is saved");
  app.add_option("job", job, "Job id")->type_name("JOB")->required();
  if (const auto code = parse(app, invocation)) return *code;
  const auto work = [&](HeadLink& head) -> Result<int> {
    const auto id = find_job(head, job);
    if (!id) return id.error();
    wire::Checkpoint request;
    request.set_job(*id);
    request.set_stop(stop);
    const auto saved = head.ask<wire::Checkpointed>(request, kLongestSave);
    if (!saved) return saved.error();
    if (common.json) {
      print(json_of(*saved, *id));
    } else if (saved->reason().empty()) {
      print(fmt::format("job {} is saved in {}: {:.1f} MB, stopped for {:.2f} s\n", *id,
                        escape_terminal(saved->set(), limits::kMaxPathBytes),
                        static_cast<double>(saved->image_bytes()) / 1e6,
                        seconds(saved->stopped_ns())));
    }
    if (saved->reason().empty()) return kExitOk;
    if (common.json) return kExitError;
    return fail(Errc::Unsupported, "job {} is not saved and goes on: {}", *id,
                escape_terminal(saved->reason(), limits::kMaxErrorTextBytes));
  };
  return with_head(invocation, common, work);
}

int restart_main(const Invocation& invocation) {
  CommonOptions common;
  std::string word;
  std::string images = kCheckpointDirectory;
  bool is_quiet = false;
  CLI::App app;
  describe(app, invocation,
           "Starts a saved job again, as a new job; its output continues here, or in its files");
  add_server_option(app, common);
  add_json_option(app, common);
  app.add_option("--checkpoint-dir", images, "Directory of the images, for a job id")
      ->type_name("DIR");
  app.add_flag("-q,--quiet", is_quiet, "Print only errors, not that the job completed");
  app.add_option("set", word, "Directory of a set or of a job's sets, or the id of the saved job")
      ->type_name("DIR|JOB")
      ->required();
  if (const auto code = parse(app, invocation)) return *code;
  const auto set = find_set(word, images);
  if (!set) return print_error(invocation, set.error());
  auto submission = read_saved_job(*set);
  if (!submission) return print_error(invocation, submission.error());
  const auto code = restart(invocation, common, *std::move(submission), is_quiet);
  return code ? *code : print_error(invocation, code.error());
}

}  // namespace score::scout
