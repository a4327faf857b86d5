// A file's name does not show to which job it belongs, so a file is considered abandoned if no
// process uses it. The process that creates such a file has it open until it is mapped, and keeps
// it mapped as long as a different process may still open it by name. For this reason files are
// listed first, then the open files of each process, then its mappings: a file in use appears in
// one of the two, even if it changes meanwhile.
#include "scored/job/tasks/abandoned_memory.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <utility>

namespace score::shepherd {

namespace {

namespace fs = std::filesystem;

// These names are used by MPICH; by UCX; and by Open MPI 4 and 5, if the user chose a place other
// than the job's own directory.
constexpr std::array<std::string_view, 8> kNames{
    "mpich_shm_",  "mpich_shar_tmp", "ucx_shm_posix_", "vader_segment.",
    "sm_segment.", "osc_sm.",        "osc_rdma.",      "xhc_"};

using FileId = std::pair<dev_t, ino_t>;
using Files = std::map<FileId, std::string>;  // with their names

base::WallTime changed_at(const struct stat& file) {
  return base::WallTime(std::chrono::seconds(file.st_ctim.tv_sec) +
                        std::chrono::nanoseconds(file.st_ctim.tv_nsec));
}

bool is_of_mpi(std::string_view name) {
  return std::ranges::any_of(kNames, [&](auto start) { return name.starts_with(start); });
}

Files candidates(const std::string& directory, base::WallTime since) {
  Files files;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const auto name = at->path().filename().string();

    struct stat file {};

    if (!is_of_mpi(name) || lstat(at->path().c_str(), &file) != 0) continue;
    if (!S_ISREG(file.st_mode) || file.st_uid != geteuid() || changed_at(file) < since) continue;
    files[{file.st_dev, file.st_ino}] = name;
  }
  return files;
}

// Returns the number after "Name:" in /proc/PID/status; nullopt if there is no such line.
std::optional<unsigned long> number_in(const fs::path& status, std::string_view name) {
  std::ifstream lines(status);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    unsigned long number = 0;
    if (std::sscanf(line.c_str() + name.size(), "%lu", &number) == 1) return number;
  }
  return std::nullopt;
}

// A process that hides its files (a program with privileges) may use any file if it has shared
// memory at all.
bool may_hide_files(const fs::path& process) {
  const bool is_own = number_in(process / "status", "Uid:") == geteuid();
  return is_own && number_in(process / "status", "RssShmem:").value_or(0) > 0;
}

void drop_open(Files& files, const fs::path& process) {
  std::error_code error;
  for (fs::directory_iterator at(process / "fd", error), end; !error && at != end;
       at.increment(error)) {
    struct stat file {};

    if (stat(at->path().c_str(), &file) == 0) files.erase({file.st_dev, file.st_ino});
  }
}

// Returns false if the process's mappings cannot be read.
bool drop_mapped(Files& files, const fs::path& process) {
  std::ifstream lines(process / "maps");
  if (!lines) return false;
  for (std::string line; std::getline(lines, line);) {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(), "%*s %*s %*s %x:%x %lu", &major, &minor, &inode) != 3) continue;
    files.erase({makedev(major, minor), inode});
  }
  return true;
}

void drop_used(Files& files, const fs::path& process) {
  if (process.filename() == "1") return;  // init is not a rank

  struct stat owner {};

  if (stat(process.c_str(), &owner) != 0) return;  // it has ended
  if (owner.st_uid == geteuid()) {
    drop_open(files, process);
    if (drop_mapped(files, process)) return;
  }
  if (may_hide_files(process)) files.clear();
}

}  // namespace

std::vector<std::string> remove_abandoned_memory(const std::string& directory,
                                                 base::WallTime since) {
  auto files = candidates(directory, since);
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !files.empty() && !error && at != end;
       at.increment(error)) {
    if (base::parse_number<pid_t>(at->path().filename().string())) drop_used(files, at->path());
  }
  std::vector<std::string> removed;
  if (error) return removed;
  for (const auto& [id, name] : files) {
    const auto path = directory + "/" + name;

    struct stat file {};

    const bool is_same = lstat(path.c_str(), &file) == 0 && FileId{file.st_dev, file.st_ino} == id;
    if (is_same && unlink(path.c_str()) == 0) removed.push_back(name);
  }
  return removed;
}

}  // namespace score::shepherd
