#include "scored/node/run_node.hpp"

#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "base/os/priority.hpp"
#include "base/text/plain.hpp"
#include "proto/transport/key_ring.hpp"
#include "scored/node/config.hpp"
#include "scored/node/daemon.hpp"
#include "scored/node/kernel/memory.hpp"
#include "scored/shared/journal/journal.hpp"

#include <fmt/format.h>

#include <csignal>
#include <fcntl.h>
#include <malloc.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::node {

namespace {

constexpr int kCannotStart = 1;
constexpr int kBadUsage = 2;
// The daemon needs little time, but job starts wait for it while other jobs use every core.
constexpr int kNice = -10;

int refuse(int status, const Error& error) {
  const std::string line = fmt::format("scored: node: {}\n", plain_text(error));
  [[maybe_unused]] const auto written = write_all(STDERR_FILENO, line);
  return status;
}

// Two daemons in one directory would switch each other's jobs.
Result<UniqueFd> lock_directory(const std::string& run_dir) {
  auto lock = open_file(run_dir + "/node.lock", O_RDWR | O_CREAT, 0600);
  if (!lock) return lock.error();
  if (flock(lock->get(), LOCK_EX | LOCK_NB) == 0) return lock;
  return fail(Errc::Busy, "another node daemon uses {}", run_dir);
}

// Shepherds run as the jobs' users and check that their socket's name still exists, so these users
// must be able to search the directory.
Status make_socket_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0711) == 0) {
    if (chmod(path.c_str(), 0711) == 0) return {};  // sets the mode regardless of the umask
  } else if (errno == EEXIST) {
    return {};
  }
  return fail(errno_code(errno), "cannot make {}", path);
}

Result<std::optional<JobCgroups>> open_cgroups(const NodeConfig& config) {
  std::optional<JobCgroups> none;
  const bool may_do_without = config.method == SwitchMethod::Auto && config.cgroup_root == "auto";
  if (config.method == SwitchMethod::Signal || config.cgroup_root == "none") {
    if (config.method != SwitchMethod::Freezer) return none;
    return fail(Errc::Unsupported, "method freezer needs a cgroup root");
  }
  const std::string root = config.cgroup_root == "auto" ? find_cgroup_root() : config.cgroup_root;
  if (root.empty() && may_do_without) return none;
  if (root.empty()) return fail(Errc::NotFound, "no writable cgroup2 directory");
  auto opened = JobCgroups::open(root);
  if (opened) return std::optional(*std::move(opened));
  if (may_do_without) return none;
  return opened.error();
}

// A daemon that was not started by its unit must not run jobs that could open more devices than
// they should.
Status check_devices(const NodeConfig& config, const JobCgroups* cgroups) {
  if (!config.devices.restricts()) return {};
  if (cgroups == nullptr) {
    return fail(Errc::Unsupported, "[devices] needs a cgroup of version 2, and there is none");
  }
  if (read_device_mark(cgroups->root()) == config.devices.text()) return {};
  return fail(Errc::WrongState,
              "[devices] is not in force for {}: start the daemon by its unit, or run "
              "scored-device-guard --cgroup {} as root first",
              cgroups->root(), cgroups->root());
}

void prepare_process() {
  mallopt(M_ARENA_MAX, 1);
  signal(SIGPIPE, SIG_IGN);
  if (!set_nice(kNice))
    log_debug("Cannot raise the priority of the daemon; it keeps the ordinary one");
}

Status serve(NodeConfig config) {
  auto locked = lock_directory(config.run_dir);
  if (!locked) return locked.error();
  if (auto made = make_socket_directory(config.run_dir + "/shepherds"); !made) return made;
  auto key = proto::load_node_key(config.key_file);
  if (!key) return key.error();
  auto cgroups = open_cgroups(config);
  if (!cgroups) return cgroups.error();
  const JobCgroups* const jobs = *cgroups ? &**cgroups : nullptr;
  if (jobs != nullptr) jobs->thaw_all();
  if (auto guarded = check_devices(config, jobs); !guarded) return guarded;

  gang::IdleRule idle;
  idle.share = config.idle_percent / 100.0;
  idle.checks = config.idle_slices;
  Switcher switcher({.wants_real_time = config.priority == PriorityChoice::Auto,
                     .idle = idle,
                     .uses_barriers = config.network.switch_mode == SwitchMode::Barrier});
  if (auto started = switcher.start(); !started) return started;
  const auto tls =
      proto::TlsContext::client(key->key, proto::format_node_identity({config.name, key->number}));
  asio::io_context io(1);
  SteadyClock clock;
  NodeDaemon daemon({io, clock, *tls, switcher, jobs}, std::move(config));
  if (!lock_memory()) log_info("Memory is not locked: the limits do not allow it");
  run(io, daemon.run());
  return {};
}

}  // namespace

int run_node(const std::vector<std::string>& arguments) {
  auto line = read_command_line(arguments);
  if (!line) return refuse(kBadUsage, line.error());
  if (line->help) {
    const auto written = write_all(STDOUT_FILENO, usage());
    return written ? 0 : kCannotStart;
  }
  if (auto completed = complete(line->config); !completed) {
    return refuse(kCannotStart, completed.error());
  }
  if (line->check_only) {
    const auto key = proto::check_key_file(line->config.key_file);
    if (!key) return refuse(kCannotStart, key.error());
    const auto hooks = check_hook_files(
        line->config.hooks, {Hook::Prolog, Hook::Epilog, Hook::Health}, UserId(geteuid()));
    return hooks ? 0 : refuse(kCannotStart, hooks.error());
  }
  set_log_level(line->config.log_level);
  report_to_journal_if_started_by_it();
  prepare_process();
  if (auto served = serve(std::move(line->config)); !served) {
    return refuse(kCannotStart, served.error());
  }
  return 0;
}

}  // namespace score::node
