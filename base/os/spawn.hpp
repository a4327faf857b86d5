#pragma once
// Starting a program in one step: identity, cgroup, descriptors, directory, limits. The child is
// known by pid and pidfd from its first instant, is in its cgroup before it runs an instruction of
// its own, and sees no descriptor it was not given. Asio-free; base/child.hpp waits for it through
// Asio.

#include "base/ids.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

#include <optional>
#include <sched.h>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace score::inline base {

// Whom the child becomes, in this order: setgroups, setresgid, setresuid, then all are read back
// and compared. Any failure ends the child before exec.
struct Identity {
  UserId uid;
  GroupId gid;
  std::vector<GroupId> groups;
};

// What to start. Plain data; descriptors belong to the caller and must stay open during spawn().
struct SpawnSpec {
  std::string path;                      // what execve gets; no search of PATH
  std::vector<std::string> argv;         // argv[0] included, not empty
  std::vector<std::string> environment;  // "NAME=value", complete: nothing is inherited
  // {ours, child's}: the child's 0, 1, 2 and whatever else it was promised. Targets differ from
  // each other and are below 64. Everything else is closed. A missing 0, 1 or 2 becomes /dev/null.
  std::vector<std::pair<int, int>> fds;
  std::string directory;                       // entered as the new user; empty: stays
  int cgroup_fd = -1;                          // directory of the cgroup to be born in; -1: ours
  std::optional<Identity> identity;            // nothing: ours
  std::vector<std::pair<int, rlimit>> limits;  // {RLIMIT_..., value}, set before the identity
  std::optional<cpu_set_t> affinity;           // the cores to run on; nothing: ours
  bool new_session = false;                    // setsid
  bool die_with_parent = false;                // SIGKILL when the starting thread ends
};

// Steps of a start, as named by SpawnFailure.
enum class SpawnStep : int {
  Fork,
  Session,
  Limits,
  Affinity,
  Identity,
  Directory,
  Descriptors,
  Exec
};
[[nodiscard]] const char* spawn_step_name(SpawnStep step);

struct SpawnFailure {
  SpawnStep step;
  Error error;  // errno code; context "exec /bin/x", "enter /home/u" ...
};

// A child that was not reaped yet. Whoever holds it reaps it: reap() or ChildProcess.
struct SpawnedProcess {
  pid_t pid = -1;
  UniqueFd pidfd;  // becomes readable when the child ends
};

// Starts the program. On success exec has happened. On failure nothing is left: no process, no
// zombie.
[[nodiscard]] std::expected<SpawnedProcess, SpawnFailure> spawn(const SpawnSpec& spec);

// How a process ended.
struct ExitStatus {
  int code = 0;    // of exit(), if signal is 0
  int signal = 0;  // that killed it, or 0
  bool core_dumped = false;
  // CPU time and peak memory of the child and what it waited for.
  Duration user_time{};
  Duration system_time{};
  std::uint64_t max_rss_kib = 0;

  // As shells have it: the code, or 128 + signal.
  [[nodiscard]] int shell_code() const { return signal == 0 ? code : 128 + signal; }
};

// Collects a child that has ended. With block = false and the child alive: nothing.
// Errors: ECHILD if it is not our child or was collected already.
[[nodiscard]] Result<std::optional<ExitStatus>> reap(int pidfd, bool block);

// A signal through the pidfd: cannot hit another process that got the same pid. A process that has
// ended: ESRCH.
[[nodiscard]] Status send_signal(int pidfd, int signal);

// Opens a pidfd of a process that need not be our child: adopting after a restart.
[[nodiscard]] Result<UniqueFd> open_pidfd(pid_t pid);

// The first executable file called `name` in the directories of `path_variable` (the text of PATH),
// or `name` itself if it has a slash. Errors: NotFound; Denied (found, but not executable).
[[nodiscard]] Result<std::string> find_executable(const std::string& name,
                                                  std::string_view path_variable);

}  // namespace score::inline base
