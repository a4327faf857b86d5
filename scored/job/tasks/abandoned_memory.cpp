// A file's name does not show to which job it belongs, so a file is considered abandoned if no
// process uses it. The kernel answers that exactly: it grants a lease for writing only on a file
// that no other process has open or mapped, in any namespace and with any rights (fcntl(2)).
// To look through /proc instead would miss processes of other PID namespaces, and a job that may be
// saved has its own one.
//
// A process that creates such a file is not yet counted while it is inside of open(). The file is
// empty at that time, so an empty file stays; it uses no memory.
#include "scored/job/tasks/abandoned_memory.hpp"

#include "base/os/fd.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

namespace fs = std::filesystem;

// These names are used by MPICH; by UCX; and by Open MPI 4 and 5, if the user chose a place other
// than the job's own directory.
constexpr std::array<std::string_view, 8> kNames{
    "mpich_shm_",  "mpich_shar_tmp", "ucx_shm_posix_", "vader_segment.",
    "sm_segment.", "osc_sm.",        "osc_rdma.",      "xhc_"};

base::WallTime changed_at(const struct stat& file) {
  return base::WallTime(std::chrono::seconds(file.st_ctim.tv_sec) +
                        std::chrono::nanoseconds(file.st_ctim.tv_nsec));
}

bool is_of_mpi(std::string_view name) {
  return std::ranges::any_of(kNames, [&](auto start) { return name.starts_with(start); });
}

bool may_be_removed(const struct stat& file, base::WallTime since) {
  return S_ISREG(file.st_mode) && file.st_uid == geteuid() && file.st_size > 0 &&
         changed_at(file) >= since;
}

// Returns a descriptor with the lease, or none if somebody else has the file. The kernel announces
// the next process that opens the file with a signal, for which SIGURG is taken because it is
// ignored by default.
base::UniqueFd lease(const std::string& path, base::WallTime since) {
  struct stat file {};

  base::UniqueFd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  const bool is_leased = fd && fstat(fd.get(), &file) == 0 && may_be_removed(file, since) &&
                         fcntl(fd.get(), F_SETSIG, SIGURG) == 0 &&
                         fcntl(fd.get(), F_SETLEASE, F_WRLCK) == 0;
  if (!is_leased) fd.reset();
  return fd;
}

}  // namespace

std::vector<std::string> remove_abandoned_memory(const std::string& directory,
                                                 base::WallTime since) {
  std::vector<std::string> removed;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const auto name = at->path().filename().string();

    struct stat file {};

    if (!is_of_mpi(name) || lstat(at->path().c_str(), &file) != 0) continue;
    if (!may_be_removed(file, since)) continue;
    const base::UniqueFd leased = lease(at->path().string(), since);
    if (leased && unlink(at->path().c_str()) == 0) removed.push_back(name);
  }
  return removed;
}

}  // namespace score::shepherd
