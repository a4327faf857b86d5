// scbatch submits a batch script. The script's text goes with the submission, so no daemon reads
// the file. It runs on the first node of the job, and its scrun runs steps in the job's cores.
#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/text/json_writer.hpp"
#include "scout/batch/script.hpp"
#include "scout/commands/batch_submission.hpp"
#include "scout/commands/commands.hpp"
#include "scout/commands/dry_run.hpp"
#include "scout/run/front_end.hpp"
#include "scout/run/run_options.hpp"
#include "scout/run/score_options.hpp"
#include "scout/run/submitting.hpp"
#include "scout/session/session.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace score::scout {

namespace {

using Words = std::vector<std::string>;

constexpr int kWaitPause_ms = 500;  // between two requests of --wait

struct BatchOptions : RunOptions {
  bool wait = false;
  std::optional<std::string> wrap;  // a command instead of a script
  bool has_account = false;         // true if the command line has --account
  bool has_partition = false;       // likewise with --partition
};

// These options may be on the command line, which overrides the script, and in the script.
void add_options(CLI::App& app, BatchOptions& options) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_job_options(app, options);
  add_array_option(app, options.waits);
  add_place_options(app, options);
  add_json_option(app, options.common);
  app.add_flag("--dry-run", options.dry_run,
               "Print where the job would run, or why not; submit nothing");
  app.add_flag("-W,--wait", options.wait,
               "Wait for the end of the job and exit with its exit code");
  app.add_flag("-q,--quiet", options.quiet, "Do not list the #SBATCH options that are ignored");
}

// Adds the options of the command line only; a script cannot contain a second script.
void add_command_line_options(CLI::App& app, BatchOptions& options) {
  add_options(app, options);
  app.add_option("--wrap", options.wrap, "Run this shell command instead of a script")
      ->type_name("COMMAND");
}

Result<std::string> read_text(const std::string& file) {
  constexpr std::size_t kMost = limits::kMaxScriptBytes + 1;
  auto text = file.empty() ? read_all(STDIN_FILENO, kMost) : read_file(file, kMost);
  if (text || !text.error().is(Errc::TooLarge)) return text;
  return std::string(kMost, '#');  // the caller refuses it as too long
}

// Checks one line of the script. After an error, which names the line, returns the exit code;
// nullopt if the line is valid.
std::optional<int> check_line(const Invocation& invocation, const std::string& script,
                              const ScriptLine& line) {
  Invocation about = invocation;
  about.place = fmt::format("{} line {}: ", script, line.number);
  BatchOptions options;
  CLI::App app;
  describe(app, about, "");
  app.set_help_flag();
  app.set_version_flag();
  add_options(app, options);
  const auto split = split_command(app, line.words, "");
  if (!split) return print_error(about, split.error());
  // The parser takes a word after an unknown option for its value.
  if (const auto code = parse(app, about.with(split->options))) return code;
  if (split->command.empty()) return std::nullopt;
  return print_error(about,
                     fmt::format("'{}' is not an option", escape_terminal(split->command[0], 80)));
}

struct Script {
  std::string name;  // name for messages
  std::string text;
  Words words;                  // options of the script
  std::string slurm_account;    // from the last #SBATCH line that has one
  std::string slurm_partition;  // likewise
};

std::string name_of(const std::string& file) {
  if (file.empty()) return "standard input";
  return escape_terminal(file.substr(file.find_last_of('/') + 1), 80);
}

// Notes what a cluster may lack altogether.
void note_foreign(const ScriptLine& line, Script& script) {
  const auto note = [](const std::string& word, std::string_view option, std::string& value) {
    if (word.starts_with(option)) value = word.substr(option.size());
  };
  for (const auto& word : line.is_slurms ? line.words : Words()) {
    note(word, "--account=", script.slurm_account);
    note(word, "--partition=", script.slurm_partition);
  }
}

// Nearly every script for Slurm names an account. On a cluster without accounts it is ignored.
void drop_foreign_account(const Invocation& invocation, const Script& script, bool is_quiet,
                          SubmitRequest& request) {
  auto& resources = *request.submission.mutable_resources();
  if (script.slurm_account.empty() || resources.account() != script.slurm_account) return;
  const auto shares = request.link.ask<wire::ShareList>(wire::ListShares());
  if (!shares) return;  // the submission reports the error
  const auto has_name = [](const wire::ShareRow& row) { return !row.account().empty(); };
  if (std::ranges::any_of(shares->rows(), has_name)) return;
  resources.clear_account();
  if (is_quiet) return;
  const auto account = escape_terminal(script.slurm_account, 80);
  print_error(invocation,
              fmt::format("{}: ignoring #SBATCH --account={}: this cluster has no accounts",
                          script.name, account));
}

// Likewise the partition, on a cluster without partitions.
void drop_foreign_partition(const Invocation& invocation, const Script& script, bool is_quiet,
                            SubmitRequest& request) {
  auto& resources = *request.submission.mutable_resources();
  if (script.slurm_partition.empty() || resources.partition() != script.slurm_partition) return;
  const auto info = request.link.ask<wire::Info>(wire::GetInfo());
  if (!info || info->partitions_size() > 0) return;  // the submission reports an error
  resources.clear_partition();
  if (is_quiet) return;
  print_error(invocation,
              fmt::format("{}: ignoring #SBATCH --partition={}: this cluster has no partitions",
                          script.name, escape_terminal(script.slurm_partition, 80)));
}

std::optional<int> load(const Invocation& invocation, const std::string& file,
                        const BatchOptions& given, Script& script) {
  script.name = given.wrap ? "--wrap" : name_of(file);
  auto text =
      given.wrap ? Result<std::string>("#!/bin/sh\n" + *given.wrap + "\n") : read_text(file);
  if (!text) return print_error(invocation, text.error());
  script.text = std::move(*text);
  const auto options = read_script(script.text);
  Invocation about = invocation;
  about.place = script.name + ": ";
  if (!options) return print_error(about, options.error());
  for (const ScriptLine& line : options->lines) {
    if (const auto code = check_line(invocation, script.name, line)) return code;
    script.words.insert(script.words.end(), line.words.begin(), line.words.end());
    note_foreign(line, script);
  }
  for (const auto& ignored : options->ignored) {
    if (!given.quiet) print_error(about, ignored);
  }
  return std::nullopt;
}

void fill_defaults(BatchOptions& options, const Script& script, const BatchStyle& style,
                   Words command) {
  options.slurm_env = options.slurm_env || style.slurm_env;
  if (command.empty()) command = {options.wrap ? "wrap" : "script"};
  options.programs = {{0, {}, {}, std::move(command)}};
  options.script = script.text;
  options.detach = true;
  options.mpi = "none";
  if (options.input.empty()) options.input = "none";
  if (options.output.empty()) {
    options.output = options.waits.array.empty() ? style.output : style.array_output;
  }
  if (options.error.empty()) options.error = options.output;
}

// Returns the exit code, or nullopt if the job has not ended.
std::optional<int> end_of(const wire::JobStatus& job) {
  if (job.array_job() != job.job()) {
    return is_final_state(job.state()) ? std::optional(job.exit_code()) : std::nullopt;
  }
  if (job.array().waiting_count() + job.array().running_count() > 0) return std::nullopt;
  return job.array().failed_count() > 0 ? 1 : kExitOk;
}

// Connects again for each request. A wait of days then holds no connection to the head and survives
// restarts of it.
Result<int> wait_for_end(const Invocation& invocation, const std::string& server,
                         std::uint64_t job) {
  TimePoint answered = monotonic_now();
  bool is_loss_reported = false;
  for (;; ::poll(nullptr, 0, kWaitPause_ms)) {
    auto link = HeadLink::connect(server);
    const Duration silent = monotonic_now() - answered;
    if (!link && silent > kReconnectFor) {
      return link.error().with_context("job {} may still run; `scq {}` shows it", job, job);
    }
    if (!link && silent > kSilentFor && !is_loss_reported) {
      print_error(invocation, fmt::format("job {}: {}", job, lost_head_text(kReconnectFor)));
      is_loss_reported = true;
    }
    if (!link) continue;
    if (std::exchange(is_loss_reported, false)) print_error(invocation, "reconnected to the head");
    answered = monotonic_now();
    const auto jobs = ask_jobs(*link, {job});
    const bool is_lost = !jobs && (jobs.error().is(Errc::Closed) || jobs.error().is(Errc::Timeout));
    if (!jobs && !is_lost) return jobs.error();
    const auto code = jobs ? end_of(jobs->jobs(0)) : std::nullopt;
    if (code) return *code;
  }
}

int submit(const Invocation& invocation, const BatchOptions& options, const Script& script,
           const BatchStyle& style) {
  auto submission = make_submission(options);
  if (!submission) return print_error(invocation, submission.error());
  auto request = open_request(invocation, options.common.server, std::move(*submission));
  if (!request) return print_error(invocation, request.error());
  if (!options.has_account) {
    drop_foreign_account(invocation, script, options.quiet, *request);
  }
  if (!options.has_partition) {
    drop_foreign_partition(invocation, script, options.quiet, *request);
  }
  if (options.dry_run) {
    const auto code = style.show_plan ? style.show_plan(request->link, request->submission)
                                      : dry_run(invocation, request->link, options.common.json,
                                                request->submission);
    return code ? *code : print_error(invocation, code.error());
  }
  const auto submitted = submit_with_retry(invocation, *request);
  if (!submitted) return print_error(invocation, submitted.error());
  if (submitted->no_mail() && !options.quiet) print_error(invocation, kNoMail);
  JsonWriter json;
  json.begin_object().field("schema", "scored.submitted/1").field("job", submitted->job());
  json.end_object();
  print(options.common.json ? json.text() + "\n"
                            : fmt::format("{}{}\n", style.before_id, submitted->job()));
  if (!options.wait) return kExitOk;
  const auto code = wait_for_end(invocation, request->socket, submitted->job());
  return code ? *code : print_error(invocation, code.error());
}

}  // namespace

int scbatch_main(const Invocation& invocation) {
  return submit_batch(invocation, {});
}

int submit_batch(const Invocation& invocation, const BatchStyle& style) {
  BatchOptions given;
  CLI::App app;
  describe(app, invocation, "Submits a batch script; options may also be in its #SCORE lines");
  add_command_line_options(app, given);
  Words shown_only;
  app.add_option("script", shown_only, "Script and its arguments; default: standard input")
      ->type_name("SCRIPT [ARGUMENT...]");
  auto split = split_command(app, invocation.args, "");
  if (!split) return print_error(invocation, split.error());
  if (const auto code = parse(app, invocation.with(split->options))) return *code;
  Script script;
  const std::string file = split->command.empty() ? "" : split->command[0];
  if (given.wrap && !file.empty()) {
    return print_error(invocation, "--wrap and a script cannot be given together");
  }
  if (const auto code = load(invocation, file, given, script)) return *code;
  Words words = script.words;
  words.insert(words.end(), style.environment.begin(), style.environment.end());
  words.insert(words.end(), split->options.begin(), split->options.end());
  BatchOptions options;
  CLI::App all;
  describe(all, invocation, "");
  add_command_line_options(all, options);
  if (const auto code = parse(all, invocation.with(words))) return *code;
  options.has_account = !given.account.empty();
  options.has_partition = !given.partition.empty();
  fill_defaults(options, script, style, std::move(split->command));
  return submit(invocation, options, script, style);
}

}  // namespace score::scout
