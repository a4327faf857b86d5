// The launcher starts this program as the job's user, as `shepherd` (A), as `spawner` (B), and for
// jobs with scratch as `helpers` (C); see scored/privileged/launcher/protocol.hpp. It is statically
// linked to make the exec cheap.

#include "base/exit_codes.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "scored/job/scratch/helper_spawner.hpp"
#include "scored/job/shepherd/shepherd.hpp"
#include "scored/job/tasks/children.hpp"
#include "scored/job/tasks/spawner.hpp"

#include <array>
#include <exception>
#include <fcntl.h>
#include <signal.h>
#include <span>
#include <string_view>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace {

namespace base = score::base;
namespace shepherd = score::shepherd;

// Opens descriptors 0 to `last`, so that none opened later takes the place of a standard stream.
// Descriptors above those that the launcher promises are closed.
void tidy_descriptors(int last) {
  closefrom(shepherd::kHelpersFd + 1);
  for (int fd = 0; fd <= last; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    const int opened = open("/dev/null", O_RDWR | O_CLOEXEC);  // the lowest free one: fd
    if (opened != fd) _exit(score::kExitError);
  }
  for (const int fd : {shepherd::kListenerFd, shepherd::kSpawnFd, shepherd::kHelpersFd}) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

base::UniqueFd open_signals() {
  for (const int ignored : {SIGPIPE, SIGHUP, SIGINT}) signal(ignored, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_SETMASK, &set, nullptr);
  return base::UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

// Each task needs four descriptors, so this raises the limit as far as the system permits.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Returns the users that may connect: root, this user, and the node daemon's user, which the kernel
// recorded when that process called listen() on the socket.
std::vector<uid_t> allowed_users() {
  std::vector<uid_t> users{0, getuid()};
  if (auto daemon = base::peer_credentials(shepherd::kListenerFd)) {
    users.push_back(daemon->uid.value());
  }
  return users;
}

base::UniqueFd helpers_socket() {
  const bool is_there = fcntl(shepherd::kHelpersFd, F_GETFD) >= 0;
  return base::UniqueFd(is_there ? shepherd::kHelpersFd : -1);
}

// words: after the mode; see scored/privileged/launcher/protocol.hpp.
int run_shepherd(std::span<char* const> words) {
  base::UniqueFd helpers = helpers_socket();  // before other descriptors are opened
  shepherd::become_subreaper();
  raise_descriptor_limit();
  umask(0);  // files get the umask of the job
  auto loop = shepherd::EventLoop::create();
  auto output = shepherd::OutputPump::create();
  shepherd::ShepherdOptions options{.listener = base::UniqueFd(shepherd::kListenerFd),
                                    .spawner = base::UniqueFd(shepherd::kSpawnFd),
                                    .helpers = std::move(helpers),
                                    .signals = open_signals(),
                                    .allowed = allowed_users()};
  if (!words.empty()) {
    options.outside = base::parse_number<pid_t>(words[0]).value_or(0);
    options.restores = words.size() > 1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // the change of the user has reset it
  }
  if (!loop || !output || !options.signals) return score::kExitError;
  shepherd::Shepherd shepherd(*loop, std::move(*output), std::move(options));
  if (auto started = shepherd.start(); !started) {
    base::log_error("Cannot start the shepherd", base::kv("err", started.error()));
    return score::kExitError;
  }
  loop->run();
  return 0;
}

// The tasks belong to the same user. A task must not trace this process or take a descriptor of it,
// because the node daemon trusts the connection to be the shepherd's (ptrace(2), pidfd_getfd(2)).
// Where others may not read the program, as it is installed, that is so from exec on (ADR 0106).
// Programs started by exec are dumpable again.
void deny_tasks_access() {
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int run_mode(std::string_view mode, std::span<char* const> words) {
  deny_tasks_access();
  if (mode == "helpers") {
    tidy_descriptors(shepherd::kListenerFd);
    return shepherd::run_helpers(shepherd::kSpawnFd);
  }
  if (mode == "spawner") {
    tidy_descriptors(shepherd::kListenerFd);
    signal(SIGPIPE, SIG_IGN);
    return shepherd::run_spawner(shepherd::kSpawnFd);
  }
  tidy_descriptors(STDERR_FILENO);
  return run_shepherd(words);
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char* const> all(argv, static_cast<std::size_t>(argc));
  const std::string_view mode = argc >= 2 && argc <= 4 ? argv[1] : "";
  if (mode != "shepherd" && mode != "spawner" && mode != "helpers") {
    base::log_error("usage: scored-shepherd shepherd|spawner|helpers (started by scored-launcher)");
    return score::kExitError;
  }
  try {
    return run_mode(mode, all.subspan(2));
  } catch (const std::exception& error) {
    base::log_error("Shepherd failed", base::kv("err", std::string_view(error.what())));
    return score::kExitError;
  }
}
