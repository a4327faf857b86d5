#include "scored/node/attempts/job_cgroups.hpp"

#include "base/os/cgroup.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <fcntl.h>
#include <filesystem>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace score::node {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kJobPrefix = "job_";
constexpr std::size_t kMaxControlBytes = 65'536;

// Not base's Cgroup: that opens three descriptors, and writing one file needs one.
Status write_control(const std::string& path, std::string_view text) {
  auto file = open_file(path, O_WRONLY);
  if (!file) return file.error();
  auto written = write_all(file->get(), text);
  if (!written) return written.error().with_context("{}", path);
  return {};
}

Status make_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return {};
  return fail(errno_code(errno), "make cgroup {}", path);
}

bool has_word(const std::string& path, std::string_view word) {
  const auto text = read_file(path, kMaxControlBytes);
  if (!text) return false;
  for (const auto part : split(trim(*text), ' ')) {
    if (part == word) return true;
  }
  return false;
}

// Where controllers are enabled for the directories below, no process may be in this one, unless it
// is the hierarchy's root.
void leave_to_leaf(const std::string& root) {
  const std::string leaf = root + "/daemon";
  if (!make_directory(leaf)) return;
  [[maybe_unused]] auto moved = write_control(leaf + "/cgroup.procs", "0");
}

bool enable_memory(const std::string& root) {
  if (!has_word(root + "/cgroup.controllers", "memory")) return false;
  return write_control(root + "/cgroup.subtree_control", "+memory").has_value();
}

}  // namespace

std::uint64_t parse_oom_kills(std::string_view memory_events) {
  constexpr std::string_view kKey = "oom_kill ";
  for (const auto line : split(memory_events, '\n')) {
    if (!line.starts_with(kKey)) continue;
    return parse_number<std::uint64_t>(line.substr(kKey.size())).value_or(0);
  }
  return 0;
}

std::string find_cgroup_root() {
  auto own = own_cgroup();
  if (!own) return {};
  if (fs::path(*own).filename() == "daemon") own = fs::path(*own).parent_path().string();
  const bool may_write =
      access(own->c_str(), W_OK) == 0 && access((*own + "/cgroup.procs").c_str(), W_OK) == 0;
  return may_write ? *own : std::string();
}

Result<JobCgroups> JobCgroups::open(std::string root) {
  struct statfs info {};

  if (statfs(root.c_str(), &info) != 0) return fail(errno_code(errno), "cgroup root {}", root);
  if (info.f_type != CGROUP2_SUPER_MAGIC) {
    return fail(Errc::Unsupported, "{} is not in a cgroup2 file system", root);
  }
  if (access(root.c_str(), W_OK) != 0) return fail(errno_code(errno), "cgroup root {}", root);
  bool limits_memory = enable_memory(root);
  if (!limits_memory && has_word(root + "/cgroup.controllers", "memory") &&
      own_cgroup().value_or("") == root) {
    leave_to_leaf(root);
    limits_memory = enable_memory(root);
  }
  return JobCgroups(std::move(root), limits_memory);
}

std::string JobCgroups::path(AttemptId attempt) const {
  return fmt::format("{}/{}{}", root_, kJobPrefix, attempt);
}

std::string JobCgroups::tasks_path(AttemptId attempt) const {
  return path(attempt) + "/tasks";
}

Status JobCgroups::make(AttemptId attempt, Bytes memory) const {
  const std::string job = path(attempt);
  for (const char* below : {"", "/shepherd", "/tasks"}) {
    auto made = make_directory(job + below);
    if (!made) return made;
    if (*below != '\0' || !limits_memory_) continue;
    auto enabled = write_control(job + "/cgroup.subtree_control", "+memory");
    if (!enabled) return enabled;
  }
  if (memory == Bytes(0) || !limits_memory_) return {};
  return write_control(tasks_path(attempt) + "/memory.max", fmt::format("{}", memory.value()));
}

Status JobCgroups::kill_tasks(AttemptId attempt) const {
  return write_control(tasks_path(attempt) + "/cgroup.kill", "1");
}

Status JobCgroups::kill_all(AttemptId attempt) const {
  return write_control(path(attempt) + "/cgroup.kill", "1");
}

Status JobCgroups::remove(AttemptId attempt) const {
  return remove_cgroup_tree(path(attempt));
}

std::vector<AttemptId> JobCgroups::list() const {
  std::vector<AttemptId> attempts;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root_, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kJobPrefix)) continue;
    const auto number =
        parse_number<std::uint64_t>(std::string_view(name).substr(kJobPrefix.size()));
    if (number) attempts.push_back(AttemptId{*number});
  }
  return attempts;
}

void JobCgroups::thaw_all() const {
  for (const AttemptId attempt : list()) {
    [[maybe_unused]] auto thawed = write_control(tasks_path(attempt) + "/cgroup.freeze", "0");
  }
}

bool JobCgroups::hit_memory_limit(AttemptId attempt) const {
  if (!limits_memory_) return false;
  const auto events = read_file(tasks_path(attempt) + "/memory.events", kMaxControlBytes);
  return events && parse_oom_kills(*events) > 0;
}

}  // namespace score::node
