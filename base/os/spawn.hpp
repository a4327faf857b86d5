#pragma once
// Starts a program in one step: session, descriptors, directory. The child is known by pid and
// pidfd from the start, and gets only the descriptors that it was given. It is free of Asio.

#include "base/ids.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace score::inline base {

// A SpawnSpec describes the program to start. It is plain data; descriptors belong to the caller
// and must stay open during spawn().
struct SpawnSpec {
  std::string path;                      // path for execve; PATH is not searched
  std::vector<std::string> argv;         // argv[0] included, not empty
  std::vector<std::string> environment;  // "NAME=value", complete: nothing is inherited
  // Pairs of {our descriptor, the child's descriptor}. Targets differ from each other and are below
  // 64. All other descriptors are closed. A missing 0, 1 or 2 becomes /dev/null.
  std::vector<std::pair<int, int>> fds;
  std::string directory;         // entered by the child; empty: unchanged
  bool new_session = false;      // setsid
  bool die_with_parent = false;  // SIGKILL when the starting thread ends
};

// A SpawnedProcess is a child that was not reaped yet. Its owner must reap it, with reap().
struct SpawnedProcess {
  pid_t pid = -1;
  UniqueFd pidfd;  // becomes readable when the child ends
};

// Starts the program. On success exec has happened. On failure neither a process nor a zombie
// remains. Errors: errno codes, with a context such as "cannot exec /bin/x".
[[nodiscard]] Result<SpawnedProcess> spawn(const SpawnSpec& spec);

// ExitStatus describes how a process ended.
struct ExitStatus {
  int code = 0;    // exit code, if signal is 0
  int signal = 0;  // signal that killed it, or 0

  // Returns the code that a shell reports: the exit code, or 128 + signal.
  [[nodiscard]] int shell_code() const { return signal == 0 ? code : 128 + signal; }
};

// Collects a child that has ended. Returns nothing if `block` is false and the child is alive.
// Errors: ECHILD if it is not our child or was already collected.
[[nodiscard]] Result<std::optional<ExitStatus>> reap(int pidfd, bool block);

// Sends a signal through the pidfd, so that it cannot hit a different process with the same pid
// (where pidfd_send_signal is refused: a child that was not reaped). Errors: ESRCH if the process
// has ended.
[[nodiscard]] Status send_signal(int pidfd, int signal);

// Opens a pidfd of a process that need not be our child. It serves to adopt processes after a
// restart. Containers may refuse it with ENOSYS or EPERM.
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
