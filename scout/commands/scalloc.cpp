// This command, scalloc, holds nodes while a command runs here, whose scrun runs steps on the
// nodes.
//
// The job is a batch job whose script waits for the end of its input. A second process is the job's
// front end: its input is a pipe that this process closes when the command has ended. If this
// process is killed, the kernel closes the pipe and signals the front end, which ends the job.
#include "base/model/slurm_env.hpp"
#include "base/os/fd.hpp"
#include "base/text/hostlist.hpp"
#include "scout/commands/batch_submission.hpp"
#include "scout/commands/commands.hpp"
#include "scout/run/front_end.hpp"
#include "scout/run/run_options.hpp"
#include "scout/run/score_options.hpp"
#include "scout/run/submitting.hpp"
#include "scout/session/job_views.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr const char* kHold = "#!/bin/sh\nread -r end\nexit 0\n";
constexpr std::size_t kMaxStatusBytes = 1 << 20;

struct Pipes {
  Pipe end;    // closed when the command has ended
  Pipe ready;  // carries the job's status when it runs
};

[[noreturn]] void be_front_end(FrontEndOptions options, HeadLink link, Pipes pipes) {
  setpgid(0, 0);  // ^C goes to the command only
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  pipes.end.write.reset();
  pipes.ready.read.reset();
  if (dup2(pipes.end.read.get(), STDIN_FILENO) < 0) _exit(kExitError);
  pipes.end.read.reset();
  options.ready = pipes.ready.write.release();
  _exit(FrontEnd(std::move(options), std::move(link)).run());
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return kExitError;
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// The variables with Slurm's names, as the head gives them to scripts.
void set_slurm_variables(const wire::JobStatus& job) {
  SlurmJob slurm;
  slurm.job = job.job();
  slurm.name = job.name();
  slurm.nodes = node_list(job);
  slurm.tasks_on_node.assign(job.tasks_on_node().begin(), job.tasks_on_node().end());
  slurm.cpus_per_task = job.cpus_per_task();
  slurm.memory_per_node = Bytes(job.memory_per_node_bytes());
  slurm.partition =
      job.partition().empty() ? std::string(queue_word(job.queue())) : job.partition();
  slurm.account = job.account();
  slurm.user = UserId(job.user());
  slurm.user_name = job.user_name();
  for (const auto& variable : slurm_job_variables(slurm)) {
    const auto equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
}

void set_variables(const wire::JobStatus& job) {
  const auto set = [](const char* name, const auto& value) {
    setenv(name, fmt::format("{}", value).c_str(), 1);
  };
  for (const char* name : {"SCORE_ALLOCATION", "SCORE_JOB_ID", "SCORE_JOBID"}) set(name, job.job());
  set("SCORE_JOB_NAME", job.name());
  set("SCORE_NODELIST", node_list(job));
  set("SCORE_NNODES", job.nodes_size());
  set("SCORE_NTASKS", job.tasks());
  set("SCORE_CPUS_PER_TASK", job.cpus_per_task());
  if (!job.partition().empty()) set("SCORE_PARTITION", job.partition());
}

[[noreturn]] void be_command(const Invocation& invocation, const std::vector<std::string>& words,
                             const wire::JobStatus& job, bool is_slurm) {
  set_variables(job);
  if (is_slurm) set_slurm_variables(job);
  std::signal(SIGPIPE, SIG_DFL);  // our commands ignore it
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  const int error = errno;
  print_error(invocation,
              fmt::format("{}: {}", escape_terminal(words[0], 200), std::strerror(error)));
  _exit(error == ENOENT ? kExitNotFound : kExitCannotExecute);
}

// The command gets the terminal's signals. This process ignores them and waits, as system(3) does.
int run_command(const Invocation& invocation, const std::vector<std::string>& words,
                const wire::JobStatus& job, bool is_slurm) {
  const pid_t child = fork();
  if (child < 0) return print_error(invocation, "cannot fork");
  if (child == 0) be_command(invocation, words, job, is_slurm);
  for (const int signal : {SIGINT, SIGQUIT}) std::signal(signal, SIG_IGN);
  return wait_for(child);
}

int hold(const Invocation& invocation, const std::vector<std::string>& words, FrontEndOptions front,
         std::optional<HeadLink> link) {
  const bool is_slurm = front.submission->spec().slurm_env();
  auto end = make_pipe();
  auto ready = make_pipe();
  if (!end || !ready) return print_error(invocation, "cannot create a pipe");
  Pipes pipes{std::move(*end), std::move(*ready)};
  const pid_t child = fork();
  if (child < 0) return print_error(invocation, "cannot fork");
  if (child == 0) be_front_end(std::move(front), std::move(*link), std::move(pipes));
  link.reset();  // only the front end uses the connection
  pipes.end.read.reset();
  pipes.ready.write.reset();
  const auto bytes = read_all(pipes.ready.read.get(), kMaxStatusBytes);
  wire::JobStatus job;
  if (!bytes || bytes->empty() || !job.ParseFromString(*bytes)) return wait_for(child);
  tell(is_slurm ? fmt::format("{}: Granted job allocation {}", invocation.name, job.job())
                : fmt::format("{}: job {} has {}", invocation.name, job.job(), node_list(job)));
  const int code = run_command(invocation, words, job, is_slurm);
  pipes.end.write.reset();
  wait_for(child);
  return code;
}

std::vector<std::string> shell() {
  const char* named = std::getenv("SHELL");
  return {named != nullptr && *named != '\0' ? named : "/bin/sh"};
}

}  // namespace

int scalloc_main(const Invocation& invocation) {
  return hold_nodes(invocation, false);
}

int hold_nodes(const Invocation& invocation, bool is_slurm) {
  RunOptions options;
  options.slurm_env = is_slurm;
  CLI::App app;
  describe(app, invocation,
           "Holds nodes while a command runs here, whose scrun runs steps on the nodes");
  add_job_options(app, options);
  app.add_flag("-q,--quiet", options.quiet, "Do not print why the job waits");
  std::vector<std::string> shown_only;
  app.add_option("command", shown_only, "Command to run here; default: the shell")
      ->type_name("COMMAND [ARGUMENT...]");
  std::vector<std::string> words;
  if (const auto code = parse_with_command(app, invocation, words)) return *code;
  if (!options.signal.empty()) {
    return print_error(invocation, "--signal is an option of scrun and scbatch, not of scalloc");
  }
  if (words.empty()) words = shell();
  options.programs = {{0, {}, {}, {"scalloc"}}};
  options.script = kHold;
  options.mpi = "none";
  auto submission = make_submission(options);
  if (!submission) return print_error(invocation, submission.error());
  auto request = open_request(invocation, options.common.server, std::move(*submission));
  if (!request) return print_error(invocation, request.error());
  FrontEndOptions front;
  front.invocation = invocation;
  front.socket = request->socket;
  front.quiet = options.quiet;
  front.submission = std::move(request->submission);
  return hold(invocation, words, std::move(front), std::move(request->link));
}

}  // namespace score::scout
