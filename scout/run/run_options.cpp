#include "scout/run/run_options.hpp"

#include "base/limits.hpp"
#include "base/model/distribution.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/units.hpp"
#include "scout/batch/slurm_variables.hpp"
#include "scout/run/environment.hpp"
#include "scout/run/foreign_options.hpp"
#include "scout/run/mpiexec_options.hpp"
#include "scout/run/score_options.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::scout {
namespace {

void add_size_options(CLI::App& app, RunOptions& options) {
  app.add_option("-N,--nodes", options.nodes,
                 "Number of nodes; N-MAX: as many as are free, at least N")
      ->type_name("N[-MAX]")
      ->check([](const std::string& text) {
        const auto nodes = parse_node_range(text);
        return nodes ? std::string() : nodes.error().context();
      });
  app.add_option("-n,--ntasks", options.tasks, "Number of tasks")
      ->type_name("N")
      ->check(CLI::Range(1U, limits::kMaxTasksPerJob));
  app.add_option("--ntasks-per-node,--ppn", options.tasks_per_node, "Tasks per node")
      ->type_name("N")
      ->check(CLI::Range(1U, limits::kMaxTasksPerNode));
  app.add_option("-c,--cpus-per-task", options.cpus_per_task, "Cores per task")
      ->type_name("N")
      ->check(CLI::Range(1U, limits::kMaxCoresPerNode));
  auto* overcommit =
      app.add_flag("-O,--overcommit", options.overcommit, "Do not warn when tasks share cores");
  app.add_flag("--no-overcommit", options.no_overcommit, "Fail if tasks must share cores")
      ->excludes(overcommit);
  app.add_option("--mem", options.memory, "Memory to reserve on each node, which is also its limit")
      ->type_name("SIZE");
  app.add_option("--mem-per-cpu", options.memory_per_cpu,
                 "Memory to reserve for each core of the tasks, instead of --mem")
      ->type_name("SIZE");
  app.add_option("-w,--nodelist", options.only_nodes, "Use exactly these nodes (operators)")
      ->type_name("NODES");
  app.add_option("-x,--exclude", options.except_nodes, "Use none of these nodes")
      ->type_name("NODES");
  app.add_option("-C,--constraint", options.demands.constraint,
                 "Use only nodes with these features: a, 'a&b' (both) or 'a|b' (one of them)")
      ->type_name("FEATURES");
  app.add_option("--gres", options.demands.generic, "Generic resources on each node, such as gpu:2")
      ->type_name("NAME[:N][:mem=SIZE]");
  app.add_option("-L,--licenses", options.demands.licenses,
                 "Licenses of the cluster that the job holds, such as matlab:2,ansys")
      ->type_name("NAME[:N],...");
  app.add_option("--switches", options.demands.switches,
                 "Wait up to TIME (5m) for nodes within N leaf switches")
      ->type_name("N[@TIME]");
  app.add_option("--scratch", options.demands.scratch,
                 "Create a striped file system over the nodes' disks at $SCORE_SCRATCH")
      ->type_name("SIZE")
      ->check([](const std::string& text) {
        return text.empty() ? "expected a size, such as 100G" : std::string();
      });
  app.add_option("--cpu-bind", options.cpu_bind, "Bind tasks: none, core or socket")
      ->check(CLI::IsMember({"none", "core", "socket"}));
  app.add_option("-m,--distribution", options.distribution,
                 "Assign ranks to nodes in blocks (block) or in turn (cyclic)")
      ->check(CLI::IsMember({"block", "cyclic"}));
}

void add_time_options(CLI::App& app, RunOptions& options) {
  app.add_option("-t,--time", options.time,
                 "Limit of scheduled time: 30s, 5m, 1h30m, HH:MM:SS; a bare number means minutes")
      ->type_name("TIME");
  app.add_option("--wall-time", options.wall_time, "Limit of elapsed time")->type_name("TIME");
  app.add_option(
         "--signal", options.signal,
         "Send SIG this long (60 s) before the limit of --time or --wall-time; B: to a batch "
         "script only")
      ->type_name("[B:]SIG[@TIME]");
  app.add_option("--queue", options.queue, "Queue: exclusive, high, normal or urgent")
      ->type_name("QUEUE");
  app.add_option("--weight", options.weight, "Share of slices; the default is 100")
      ->type_name("N")
      ->check(CLI::Range(limits::kMinWeight, limits::kMaxWeight));
  app.add_option("--share", options.share,
                 "Divide the time: by weight, or equal among your jobs that ask for it")
      ->check(CLI::IsMember({"weight", "equal"}));
  app.add_option("--priority", options.priority,
                 "Priority; jobs with a larger one are placed earlier")
      ->type_name("N")
      ->check(CLI::Range(-limits::kMaxPriority, limits::kMaxPriority));
  app.add_option("--nice", options.nice, "Number to subtract from the priority")
      ->type_name("N")
      ->check(CLI::Range(-limits::kMaxPriority, limits::kMaxPriority));
  app.add_option("-A,--account", options.account, "Account to charge")->type_name("NAME");
  app.add_option("-p,--partition", options.partition, "Use only the nodes of this partition")
      ->type_name("NAME");
  app.add_option("--reservation", options.reservation, "Name of the reservation to use")
      ->type_name("NAME");
  app.add_flag("--hold", options.hold, "Do not start until released");
  app.add_option("--immediate", options.immediate, "Give up if not placed within TIME (1s)")
      ->type_name("[=TIME]")
      ->expected(0, 1);
}

void add_name_options(CLI::App& app, RunOptions& options) {
  app.add_option("-J,--job-name", options.job_name, "Job name; default: the program's name")
      ->type_name("NAME");
  app.add_flag("--no-fill", options.no_fill,
               "Run the job only in its own slices, and no other job in them");
  app.add_flag("--no-park", options.no_park, "Never write the job's memory to swap");
  add_checkpoint_options(app, options.checkpoint);
  auto* requeue = app.add_flag("--requeue", options.requeue,
                               "Restart the job from the beginning when one of its nodes is lost");
  app.add_flag("--no-requeue", options.no_requeue, "End the job when one of its nodes is lost")
      ->excludes(requeue);
}

void add_task_options(CLI::App& app, RunOptions& options) {
  app.add_option("--multi-prog", options.multi_prog,
                 "File of lines RANKS PROGRAM [ARGUMENT...]; %t: rank, %o: its position in RANKS")
      ->type_name("FILE");
  app.add_option("--mpi", options.mpi, "Process management: auto, none, pmi1, pmix or both")
      ->check(CLI::IsMember({"auto", "none", "pmi1", "pmix", "both"}));
  app.add_option("--spawn", options.spawn,
                 "Reserve room for N more tasks that MPI_Comm_spawn starts")
      ->type_name("N")
      ->check(CLI::Range(1U, limits::kMaxTasksPerJob));
  app.add_option("--net", options.net, "Transport of MPI: native (its own choice) or pm")
      ->check(CLI::IsMember({"native", "pm"}));
  app.add_flag("-l,--label", options.label, "Put \"rank: \" before each line");
  app.add_flag("-u,--unbuffered", options.unbuffered,
               "Do not buffer the output of programs that use the C library");
  app.add_flag("--pty", options.pty, "Give rank 0 a terminal");
  app.add_flag("--forward-interrupt", options.forward_interrupt,
               "Send ^C (SIGINT) to the tasks instead of ending the job");
  app.add_flag("--keep-going", options.keep_going, "Do not end the job when a task fails");
  app.add_flag("--kill-deadlock", options.kill_deadlock,
               "End the job when all its tasks wait for PM messages that none can send");
  app.add_option("--job", options.inside,
                 "Run as a step of this job of scbatch or scalloc; none: as a separate job")
      ->type_name("JOB");
  app.add_flag("--overlap", options.overlap, "Share cores with other steps of the job");
}

void add_front_end_options(CLI::App& app, RunOptions& options) {
  app.add_flag("--detach", options.detach, "Print the job's id and exit");
  app.add_flag("--dry-run", options.dry_run,
               "Print where the job would run, or why not; start nothing");
  app.add_flag("--allow-root", options.allow_root, "Allow the job to run as root");
  app.add_flag("-q,--quiet", options.quiet, "Print errors only");
  app.add_flag("-v,--verbose", options.verbose,
               "Print start lines even if standard error is not a terminal");
  add_server_option(app, options.common);
  add_json_option(app, options.common);
}

// CLI11 has no default for an optional value.
void give_default_values(std::vector<std::string>& words) {
  for (auto& word : words) {
    if (word == "--immediate") word = "--immediate=1s";
  }
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// RLIMIT_NPROC counts all of the user's processes on a node, so the shell's own limit means nothing
// there.
void add_limits(wire::LaunchSpec& spec) {
  for (const int resource : {RLIMIT_CORE, RLIMIT_STACK, RLIMIT_NOFILE, RLIMIT_DATA, RLIMIT_FSIZE,
                             RLIMIT_AS, RLIMIT_CPU, RLIMIT_MEMLOCK}) {
    rlimit limit{};
    if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) continue;
    auto* wire_limit = spec.add_limits();
    wire_limit->set_resource(static_cast<std::uint32_t>(resource));
    wire_limit->set_soft(limit.rlim_cur);
    wire_limit->set_hard(limit.rlim_max);
  }
}

Result<Duration> limit_of(const std::string& text, std::string_view option) {
  if (text.empty()) return Duration(0);
  auto limit = parse_duration(text, BareNumber::Minutes);
  if (!limit) return limit.error().with_context("{} '{}'", option, escape_terminal(text, 80));
  if (*limit <= Duration(0))
    return fail(Errc::Malformed, "{} {}: must be more than 0", option, text);
  return limit;
}

Status add_node_names(google::protobuf::RepeatedPtrField<std::string>& names,
                      const std::string& list, std::string_view option) {
  const auto expanded = expand_hostlist(list);
  // In mpirun, -x sets a variable.
  const auto equals = list.find('=');
  if (!expanded && option == "-x" && equals != list.npos) {
    const auto name = escape_terminal(list.substr(0, equals), 80);
    return fail(Errc::Malformed,
                "-x '{}': here -x excludes nodes; -genv {} VALUE or --export=ALL,{}=VALUE sets a "
                "variable",
                escape_terminal(list, 80), name, name);
  }
  if (!expanded) {
    return expanded.error().with_context("{} '{}'", option, escape_terminal(list, 80));
  }
  for (const auto& name : *expanded) names.Add(std::string(name));
  return {};
}

// The room for tasks that programs start is placed together with the job's tasks.
Status add_room(const RunOptions& options, wire::ResourceRequest& resources) {
  if (options.spawn == 0) return {};
  if (options.tasks_per_node > 0) {
    return fail(Errc::Malformed, "--spawn: give the number of tasks with -n, not per node");
  }
  if (resources.tasks() == 0)
    return fail(Errc::Malformed, "--spawn needs the number of tasks; give -n");
  if (options.spawn > limits::kMaxTasksPerJob - resources.tasks()) {
    return fail(Errc::TooLarge, "--spawn {}: a job has at most {} tasks", options.spawn,
                limits::kMaxTasksPerJob);
  }
  resources.set_tasks(resources.tasks() + options.spawn);
  return {};
}

// Parses -i: all, none, a rank, or a file's pattern.
void fill_input(const RunOptions& options, wire::LaunchSpec& spec) {
  spec.set_stdin_rank(0);
  if (options.input.empty()) return;
  const auto rank = parse_number<std::int64_t>(options.input);
  if (options.input == "all") {
    spec.set_stdin_rank(-1);
  } else if (options.input == "none") {
    spec.set_stdin_rank(-2);
  } else if (rank && *rank >= 0) {
    spec.set_stdin_rank(*rank);
  } else {
    spec.set_stdin_path(options.input);
  }
}

void fill_terminal(wire::LaunchSpec& spec) {
  spec.set_pty(true);
  winsize size{};
  const bool known = ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0;
  spec.set_terminal_rows(known ? size.ws_row : 24);
  spec.set_terminal_columns(known ? size.ws_col : 80);
}

Result<std::string> directory_of(const std::string& named) {
  std::error_code error;
  const auto here = std::filesystem::current_path(error);
  if (named.starts_with('/')) return named;
  if (error) return Error(error, "cannot determine the current directory");
  return named.empty() ? here.string() : (here / named).string();
}

std::uint32_t task_count(const std::vector<ProgramOptions>& programs) {
  std::uint64_t sum = 0;
  for (const auto& program : programs) sum += program.tasks;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, limits::kMaxTasksPerJob + 1U));
}

mode_t current_umask() {
  const mode_t mask = umask(022);
  umask(mask);
  return mask;
}

Status add_program(const ProgramOptions& options, wire::LaunchSpec& spec) {
  wire::Program& program = *spec.add_programs();
  program.set_tasks(options.tasks);
  for (const auto& word : options.command) program.add_argv(word);
  if (!options.directory.empty()) {
    const auto directory = directory_of(options.directory);
    if (!directory) return directory.error();
    program.set_directory(*directory);
  }
  if (!options.export_rule.empty()) {
    const auto variables = named_variables(options.export_rule);
    if (!variables) return variables.error();
    for (const auto& variable : *variables) program.add_env(variable);
  }
  for (const auto& variable : options.variables) program.add_env(variable);
  return {};
}

// Adds the variables; a later one replaces an earlier one of the same name.
std::vector<std::string> with_variables(std::vector<std::string> entries,
                                        const std::vector<std::string>& variables) {
  for (const auto& variable : variables) {
    const auto name = variable.substr(0, variable.find('=') + 1);
    std::erase_if(entries, [&](const auto& entry) { return entry.starts_with(name); });
    entries.push_back(variable);
  }
  return entries;
}

Status fill_spec(const RunOptions& options, wire::LaunchSpec& spec) {
  for (const auto& program : options.programs) {
    if (auto added = add_program(program, spec); !added) return added;
  }
  const auto environment = exported_environment(options.export_rule, options.unbuffered);
  if (!environment) return environment.error();
  auto entries = *environment;
  if (options.slurm_env) {
    const bool is_program = options.script.empty();
    set_slurm_variables(entries, {options.job_around != 0, is_program, options.waits.array});
  }
  for (const auto& entry : with_variables(std::move(entries), options.variables)) {
    spec.add_env(entry);
  }
  const auto directory = directory_of(options.directory);
  if (!directory) return directory.error();
  spec.set_directory(*directory);
  if (auto good = fill_checkpoint(options.checkpoint, *directory, spec); !good) return good;
  spec.set_umask(current_umask());
  fill_input(options, spec);
  spec.set_stdout_path(options.output == "none" ? "/dev/null" : options.output);
  spec.set_stderr_path(options.error == "none" ? "/dev/null" : options.error);
  spec.set_append_output(options.open_mode == "append");
  if (options.pty) fill_terminal(spec);
  spec.set_keep_going(options.keep_going);
  spec.set_spawn(options.spawn);
  spec.set_slurm_env(options.slurm_env);
  spec.set_quiet(options.quiet);
  spec.set_cpus_per_task(options.cpus_per_task);
  spec.set_mpi(options.mpi == "none"   ? wire::LaunchSpec::NONE
               : options.mpi == "pmi1" ? wire::LaunchSpec::PMI1
               : options.mpi == "pmix" ? wire::LaunchSpec::PMIX
               : options.mpi == "both" ? wire::LaunchSpec::BOTH
                                       : wire::LaunchSpec::AUTO);
  spec.set_net(options.net == "pm" ? wire::LaunchSpec::PM : wire::LaunchSpec::NATIVE);
  spec.set_cpu_bind(options.cpu_bind == "core"     ? wire::LaunchSpec::BIND_CORE
                    : options.cpu_bind == "socket" ? wire::LaunchSpec::BIND_SOCKET
                                                   : wire::LaunchSpec::BIND_NONE);
  spec.set_job_name(
      options.job_name.empty()
          ? base_name(options.programs[0].command[0]).substr(0, limits::kMaxJobNameBytes)
          : options.job_name);
  spec.set_script(options.script);
  add_limits(spec);
  return {};
}

Status check_sizes(const wire::LaunchSpec& spec) {
  std::size_t bytes = 0;
  const auto add = [&bytes](const auto& texts) {
    for (const auto& text : texts) bytes += text.size() + limits::kExecBytesPerString;
  };
  for (const auto& program : spec.programs()) {
    add(program.argv());
    add(program.env());
  }
  add(spec.env());
  if (bytes > limits::kMaxExecBytes) {
    return fail(Errc::TooLarge,
                "the arguments and the environment take {} bytes; at most {} (--export=NONE sends "
                "no environment)",
                bytes, limits::kMaxExecBytes);
  }
  if (spec.job_name().size() > limits::kMaxJobNameBytes) {
    return fail(Errc::TooLarge, "the job's name takes {} bytes; at most {}", spec.job_name().size(),
                limits::kMaxJobNameBytes);
  }
  return {};
}

}  // namespace

Status fill_resources(const RunOptions& options, wire::ResourceRequest& resources) {
  if (!options.nodes.empty()) {
    const auto nodes = parse_node_range(options.nodes);
    if (!nodes) return nodes.error().with_context("--nodes");
    resources.set_nodes(nodes->least);
    resources.set_most_nodes(nodes->most);
  }
  resources.set_tasks(options.tasks);
  resources.set_tasks_per_node(options.tasks_per_node);
  const bool is_step = options.job_around != 0;
  resources.set_inside(options.job_around);
  resources.set_overlap(options.overlap);
  resources.set_allocation(!options.script.empty());
  resources.set_cpus_per_task(is_step && !options.has_cpus_per_task ? 0 : options.cpus_per_task);
  resources.set_own_cores(options.no_overcommit);
  const auto distribution =
      options.distribution == "cyclic" ? Distribution::Cyclic : Distribution::Block;
  resources.set_distribution(static_cast<std::uint32_t>(distribution));
  resources.set_kill_deadlock(options.kill_deadlock);
  resources.set_no_fill(options.no_fill);
  resources.set_no_park(options.no_park);
  const auto chosen = options.requeue ? Requeue::Yes : Requeue::No;
  const bool has_chosen = options.requeue || options.no_requeue;
  resources.set_requeue(static_cast<std::uint32_t>(has_chosen ? chosen : Requeue::Default));
  // A request for named nodes alone gets one task per node.
  const bool says_nothing =
      options.nodes.empty() && options.tasks == 0 && options.only_nodes.empty() && !is_step;
  if (says_nothing) resources.set_tasks(1);
  if (auto added = add_memory({options.memory, options.memory_per_cpu}, resources); !added) {
    return added;
  }
  auto status = add_node_names(*resources.mutable_only_nodes(), options.only_nodes, "-w");
  if (status)
    status = add_node_names(*resources.mutable_except_nodes(), options.except_nodes, "-x");
  if (status) status = add_demands(options.demands, resources);
  if (!status) return status;
  const auto queue = parse_queue(options.queue);
  if (!queue) return queue.error();
  resources.set_queue(static_cast<std::uint32_t>(*queue));
  resources.set_weight(options.weight == 0 ? limits::kDefaultWeight : options.weight);
  resources.set_equal_share(options.share == "equal");
  resources.set_priority(options.priority - options.nice);
  resources.set_held(options.hold);
  if (auto good = check_names(options.account, options.partition); !good) return good;
  resources.set_account(options.account);
  resources.set_partition(options.partition);
  resources.set_reservation(options.reservation);
  const auto scheduled = limit_of(options.time, "--time");
  if (!scheduled) return scheduled.error();
  const auto wall = limit_of(options.wall_time, "--wall-time");
  if (!wall) return wall.error();
  resources.set_scheduled_limit_ns(scheduled->count());
  resources.set_wall_limit_ns(wall->count());
  return add_limit_signal(options.signal, resources);
}

std::string new_request_id() {
  const auto id = RequestId::random();
  std::string bytes(16, '\0');
  std::memcpy(bytes.data(), &id.high, 8);
  std::memcpy(bytes.data() + 8, &id.low, 8);
  return bytes;
}

namespace {

Result<std::vector<ProgramOptions>> read_programs(const RunOptions& options,
                                                  const std::vector<std::string>& words) {
  if (options.multi_prog.empty()) return split_programs(words, options.tasks);
  if (!words.empty()) {
    return fail(Errc::Malformed, "--multi-prog: the programs are in the file, not after it");
  }
  const auto text = read_file(options.multi_prog, limits::kMaxProgramsBytes);
  if (!text) return text.error().with_context("--multi-prog");
  auto programs = parse_multi_prog(*text, options.tasks);
  if (programs) return programs;
  return programs.error().with_context("{}", escape_terminal(options.multi_prog, 80));
}

// Uses the programs of -configfile as the rest of the command line, and sets the limit of
// MPIEXEC_TIMEOUT if no limit is given.
Status apply_mpiexec(const CLI::App& app, SplitCommand& split) {
  if (!split.config_file.empty()) {
    if (!split.command.empty()) {
      return fail(Errc::Malformed, "-configfile: the programs are in the file, not after it");
    }
    const auto text = read_file(split.config_file, limits::kMaxProgramsBytes);
    if (!text) return text.error().with_context("-configfile");
    auto words = parse_config_file(*text);
    auto more = words ? split_command(app, *words, "") : Result<SplitCommand>(words.error());
    if (!more) {
      return more.error().with_context("{}", escape_terminal(split.config_file, 80));
    }
    split.options.insert(split.options.end(), more->options.begin(), more->options.end());
    split.variables = std::move(more->variables);
    split.job_variables.insert(split.job_variables.end(), more->job_variables.begin(),
                               more->job_variables.end());
    split.command = std::move(more->command);
    split.typed.insert(more->typed.begin(), more->typed.end());
  }
  const auto is_limit = [](const std::string& word) { return word.starts_with("--wall-time"); };
  if (std::ranges::any_of(split.options, is_limit)) return {};
  const auto limit = timeout_option(std::getenv("MPIEXEC_TIMEOUT"));
  if (!limit) return limit.error();
  split.options.insert(split.options.end(), limit->begin(), limit->end());
  return {};
}

}  // namespace

namespace {

// Returns the job that scrun runs inside. It is given by --job, or else by the variable that
// scbatch and scalloc set.
Result<std::uint64_t> job_around(const RunOptions& options) {
  const char* variable = std::getenv("SCORE_ALLOCATION");
  const std::string word =
      options.inside.empty() && variable != nullptr ? variable : options.inside;
  if (word.empty() || word == "none") return 0;
  const auto job = parse_job(word);
  const char* where = options.inside.empty() ? "SCORE_ALLOCATION" : "--job";
  if (!job) return job.error().with_context("{}", where);
  return job;
}

}  // namespace

void add_job_options(CLI::App& app, RunOptions& options) {
  add_size_options(app, options);
  add_time_options(app, options);
  add_wait_options(app, options.waits);
  add_name_options(app, options);
  add_notice_options(app, options.notices);
  app.add_flag("--allow-root", options.allow_root, "Allow the job to run as root");
  add_server_option(app, options.common);
}

std::optional<int> parse_run_options(const Invocation& invocation, RunOptions& options) {
  CLI::App app;
  describe(app, invocation, "Runs a parallel program");
  add_size_options(app, options);
  add_time_options(app, options);
  add_wait_options(app, options.waits);
  add_array_option(app, options.waits);
  add_name_options(app, options);
  add_notice_options(app, options.notices);
  add_place_options(app, options);
  add_task_options(app, options);
  add_front_end_options(app, options);
  std::vector<std::string> shown_only;  // split_command() handles the words after the options
  app.add_option(
         "program", shown_only,
         "Program to run, followed by its options. ':' separates several programs of one job, "
         "each with its own -n, -D and --export")
      ->type_name("PROGRAM [ARGUMENT...] [: [-n N] PROGRAM...]");
  const char* variable = std::getenv("SCORE_OPTIONS");
  auto split = split_command(app, invocation.args, variable != nullptr ? variable : "");
  if (!split) return print_error(invocation, split.error());
  if (auto applied = apply_mpiexec(app, *split); !applied) {
    return print_error(invocation, applied.error());
  }
  give_default_values(split->options);
  if (const auto foreign = explain_foreign(app, split->options); !foreign.empty()) {
    return print_error(invocation, foreign);
  }
  invocation.typed->insert(split->typed.begin(), split->typed.end());
  if (const auto code = parse(app, invocation.with(split->options))) return code;
  if (options.multi_prog.empty() && split->command.empty()) {
    return print_error(invocation, fmt::format("which program? (try {} --help)", invocation.name));
  }
  const auto around = job_around(options);
  if (!around) return print_error(invocation, around.error());
  options.job_around = *around;
  // The tasks of a job with Slurm's variables would otherwise see those of its script.
  const char* slurm_job = std::getenv("SLURM_JOB_ID");
  if (*around != 0 && slurm_job != nullptr && slurm_job == std::to_string(*around)) {
    options.slurm_env = true;
  }
  options.has_cpus_per_task = app.count("--cpus-per-task") > 0;
  auto programs = read_programs(options, split->command);
  if (!programs) return print_error(invocation, programs.error());
  options.programs = std::move(*programs);
  options.variables = std::move(split->job_variables);
  options.programs[0].variables = std::move(split->variables);
  if (options.programs.size() > 1) options.tasks = task_count(options.programs);
  if (options.detach && options.pty) {
    return print_error(invocation, "--detach: --pty needs a front end");
  }
  return std::nullopt;
}

Result<wire::Submit> make_submission(const RunOptions& options) {
  wire::Submit submit;
  submit.set_request_id(new_request_id());
  auto& resources = *submit.mutable_resources();
  if (auto status = fill_resources(options, resources); !status) return status.error();
  if (auto status = fit_limit_signal(options.slurm_env, resources); !status) return status.error();
  if (auto status = add_room(options, resources); !status) return status.error();
  if (auto status = fill_spec(options, *submit.mutable_spec()); !status) return status.error();
  if (auto status = check_sizes(submit.spec()); !status) return status.error();
  if (auto status = fill_conditions(options.waits, wall_now(), submit); !status) {
    return status.error();
  }
  if (auto status = fill_notices(options.notices, submit); !status) return status.error();
  submit.set_detached(options.detach);
  submit.set_allow_root(options.allow_root);
  if (!options.immediate.empty()) {
    const auto limit = parse_duration(options.immediate, BareNumber::Seconds);
    if (!limit) return limit.error().with_context("--immediate");
    submit.set_immediate_ns(std::max<std::int64_t>(limit->count(), 1));
  }
  return submit;
}

}  // namespace score::scout
