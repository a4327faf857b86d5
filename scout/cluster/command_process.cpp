#include "scout/cluster/command_process.hpp"

#include "scout/session/command.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::scout {

namespace {

void set_variables(const Layout& layout) {
  const char* path = std::getenv("PATH");
  const auto programs = layout.programs + ":" + (path != nullptr ? path : "/usr/bin:/bin");
  setenv("PATH", programs.c_str(), 1);
  setenv("SCORED_SERVER", layout.servers().c_str(), 1);
  setenv("SCORED_VIRTUAL", layout.directory.c_str(), 1);
}

[[noreturn]] void become(const Layout& layout, const std::vector<std::string>& command,
                         pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExitError);  // it ended before the line above
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  set_variables(layout);
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  const int error = errno;
  tell(fmt::format("cannot execute {}: {}", escape_terminal(command[0]), std::strerror(error)));
  _exit(error == ENOENT ? kExitNotFound : kExitCannotExecute);
}

}  // namespace

pid_t start_command(const Layout& layout, const std::vector<std::string>& command) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(layout, command, parent);
  return child;
}

int shell_code(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace score::scout
