#include "base/os/cpu_cgroup.hpp"

#include "base/limits.hpp"
#include "base/os/cgroup.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace score::inline base {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxProcBytes = 16 * limits::kMiB;
constexpr std::string_view kControllers[] = {"cpu", "memory", "pids", "cpuset"};
constexpr std::string_view kOuterPlace = "/scored";
constexpr std::string_view kJobsPlace = "/scored/jobs";
constexpr std::string_view kNodeName = "node";  // after the prefix, instead of an attempt
constexpr std::size_t kLeastShares = 2;
constexpr std::size_t kSharesPerNode = 1024;  // the kernel's default for a new cgroup
constexpr std::size_t kMostShares = 262'144;  // limit of the kernel

bool lists(std::string_view text, std::string_view word) {
  const auto words = split(text, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> directories_of(const std::string& path) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) found.push_back(entry->path());
  }
  return found;
}

void remove_jobs(const std::vector<std::string>& jobs, const std::string& root) {
  const auto prefix = cpu_job_prefix(root);
  if (!prefix) return;
  for (const auto& job : jobs) {
    if (!fs::path(job).filename().native().starts_with(*prefix)) continue;
    [[maybe_unused]] auto removed = remove_cgroup_tree(job);
  }
}

Status make_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return {};
  return fail(errno_code(errno), "cannot make cgroup {}", path);
}

Status set_shares(const std::string& cgroup, std::size_t shares) {
  auto file = open_file(cgroup + "/cpu.shares", O_WRONLY);
  if (!file) return file.error();
  return write_all(file->get(), fmt::format("{}", shares));
}

// Sets the weight of the place to the weight of one service per node that has entered it.
Status weigh_nodes(const std::string& place) {
  const auto found = directories_of(place);
  const auto nodes = static_cast<std::size_t>(std::count_if(
      found.begin(), found.end(), [](const auto& name) { return name.ends_with(kNodeName); }));
  return set_shares(fs::path(place).parent_path(),
                    std::clamp(nodes * kSharesPerNode, kSharesPerNode, kMostShares));
}

}  // namespace

// The format of a line is "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup
// rw,cpu,cpuacct".
Result<std::string> parse_cpu_mount(std::string_view mountinfo, std::string_view controller) {
  for (const auto line : split(mountinfo, '\n')) {
    const auto dash = line.find(" - cgroup ");
    if (dash == line.npos) continue;
    const auto fields = split(line.substr(0, dash), ' ');
    const auto last = split(line.substr(dash + 3), ' ');
    if (fields.size() < 6 || last.size() < 3 || !fields[4].starts_with('/')) continue;
    if (fields[3] == "/" && lists(last[2], controller)) return std::string(fields[4]);
  }
  return fail(Errc::NotFound, "mount of the {} cgroup", controller);
}

Result<std::string> parse_cpu_path(std::string_view proc_cgroup, std::string_view controller) {
  for (const auto line : split(proc_cgroup, '\n')) {
    const auto first = line.find(':');
    const auto second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos || line.substr(second + 1).substr(0, 1) != "/") continue;
    if (lists(line.substr(first + 1, second - first - 1), controller)) {
      return std::string(line.substr(second + 1));
    }
  }
  return fail(Errc::NotFound, "cgroup of the {} controller", controller);
}

Result<std::string> own_cpu_cgroup(std::string_view controller) {
  const auto mounts = read_file("/proc/self/mountinfo", kMaxProcBytes);
  if (!mounts) return mounts.error();
  const auto mount = parse_cpu_mount(*mounts, controller);
  if (!mount) return mount.error();
  const auto text = read_file("/proc/self/cgroup", kMaxProcBytes);
  if (!text) return text.error();
  const auto path = parse_cpu_path(*text, controller);
  if (!path) return path.error();
  return *path == "/" ? *mount : *mount + *path;
}

Result<std::string> cpu_job_prefix(const std::string& root) {
  struct stat info {};

  if (stat(root.c_str(), &info) != 0) return fail(errno_code(errno), "{}", root);
  return fmt::format("scored_{}_job_", info.st_ino);
}

Result<std::string> make_cpu_jobs_place() {
  const auto own = own_cpu_cgroup();
  if (!own) return own.error();
  if (auto made = make_directory(fmt::format("{}{}", *own, kOuterPlace)); !made) {
    return made.error();
  }
  const std::string place = fmt::format("{}{}", *own, kJobsPlace);
  if (auto made = make_directory(place); !made) return made.error();
  if (auto set = set_shares(place, kLeastShares); !set) return set.error();
  return place;
}

Status enter_cpu_jobs_place(const std::string& root) {
  const auto place = make_cpu_jobs_place();
  if (!place) return place.error();
  const auto prefix = cpu_job_prefix(root);
  if (!prefix) return prefix.error();
  if (auto made = make_directory(fmt::format("{}/{}{}", *place, *prefix, kNodeName)); !made) {
    return made;
  }
  return weigh_nodes(*place);
}

void remove_cpu_jobs(const std::string& root) {
  for (const auto controller : kControllers) {
    const auto own = own_cpu_cgroup(controller);
    if (!own) continue;
    auto jobs = directories_of(*own);
    for (auto& job : directories_of(fmt::format("{}{}", *own, kJobsPlace))) {
      jobs.push_back(std::move(job));
    }
    remove_jobs(jobs, root);
    for (const auto& below : directories_of(root)) remove_jobs(jobs, below);
  }
  const auto own = own_cpu_cgroup();
  if (!own) return;
  const std::string place = fmt::format("{}{}", *own, kJobsPlace);
  if (rmdir(place.c_str()) == 0) {
    rmdir(fmt::format("{}{}", *own, kOuterPlace).c_str());
  } else {
    [[maybe_unused]] auto weighed = weigh_nodes(place);
  }
}

}  // namespace score::inline base
