#pragma once
// Starts a program in one step: identity, cgroup, descriptors, directory, limits. The child is
// known by pid and pidfd from the start, is in its cgroup before it runs an instruction, and gets
// only the descriptors that it was given. It is free of Asio.

#include "base/ids.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <sched.h>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace score::inline base {

// An Identity is the user that the child becomes, in this order: setgroups, setresgid, setresuid.
// Then all are read back and compared. Any failure ends the child before exec.
struct Identity {
  UserId uid;
  GroupId gid;
  std::vector<GroupId> groups;
};

// A SpawnSpec describes the program to start. It is plain data; descriptors belong to the caller
// and must stay open during spawn().
struct SpawnSpec {
  std::string path;                      // path for execve; PATH is not searched
  std::vector<std::string> argv;         // argv[0] included, not empty
  std::vector<std::string> environment;  // "NAME=value", complete: nothing is inherited
  // Pairs of {our descriptor, the child's descriptor}. Targets differ from each other and are below
  // 64. All other descriptors are closed. A missing 0, 1 or 2 becomes /dev/null.
  std::vector<std::pair<int, int>> fds;
  std::string directory;                       // entered as the new user; empty: unchanged
  int cgroup_fd = -1;                          // directory of the cgroup to start in; -1: ours
  std::optional<Identity> identity;            // nothing: ours
  std::vector<std::pair<int, rlimit>> limits;  // {RLIMIT_..., value}, set before the identity
  std::optional<cpu_set_t> affinity;           // the cores to run on; nothing: ours
  bool new_session = false;                    // setsid
  bool die_with_parent = false;                // SIGKILL when the starting thread ends
};

// SpawnStep names the step of a start that failed.
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
  Error error;  // errno code; context such as "cannot exec /bin/x"
};

// A SpawnedProcess is a child that was not reaped yet. Its owner must reap it, with reap().
struct SpawnedProcess {
  pid_t pid = -1;
  UniqueFd pidfd;  // becomes readable when the child ends
};

using SpawnResult = std::expected<SpawnedProcess, SpawnFailure>;

// Starts the program. On success exec has happened. On failure neither a process nor a zombie
// remains.
[[nodiscard]] SpawnResult spawn(const SpawnSpec& spec);

// ExitStatus describes how a process ended.
struct ExitStatus {
  int code = 0;    // exit code, if signal is 0
  int signal = 0;  // signal that killed it, or 0
  bool core_dumped = false;
  // CPU time and peak memory of the child and of the processes that it waited for.
  Duration user_time{};
  Duration system_time{};
  std::uint64_t max_rss_kib = 0;

  // Returns the code that a shell reports: the exit code, or 128 + signal.
  [[nodiscard]] int shell_code() const { return signal == 0 ? code : 128 + signal; }
};

// Collects a child that has ended. Returns nothing if `block` is false and the child is alive.
// Errors: ECHILD if it is not our child or was already collected.
[[nodiscard]] Result<std::optional<ExitStatus>> reap(int pidfd, bool block);

// Sends a signal through the pidfd, so that it cannot hit a different process with the same pid.
// Errors: ESRCH if the process has ended.
[[nodiscard]] Status send_signal(int pidfd, int signal);

// Opens a pidfd of a process that need not be our child. It serves to adopt processes after a
// restart.
[[nodiscard]] Result<UniqueFd> open_pidfd(pid_t pid);

// Returns the first executable file called `name` in the directories of `path_variable` (the text
// of PATH), or `name` itself if it has a slash. Errors: NotFound; Denied (found, but not
// executable).
[[nodiscard]] Result<std::string> find_executable(const std::string& name,
                                                  std::string_view path_variable);

// Returns the directory of the running program; empty if /proc is not mounted.
[[nodiscard]] std::filesystem::path own_directory();

// Returns the path of an executable file in the first of the places that has it; empty if there is
// none. Places are relative to own_directory(): "." in the build tree, others where it is
// installed.
[[nodiscard]] std::string find_beside(std::string_view name,
                                      std::initializer_list<const char*> places);

// Calls find_executable() with our PATH.
[[nodiscard]] Result<std::string> find_in_path(const std::string& name);

// Returns our environment as spawn() takes it: "NAME=value".
[[nodiscard]] std::vector<std::string> own_environment();

}  // namespace score::inline base
