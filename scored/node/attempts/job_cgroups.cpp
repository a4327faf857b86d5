#include "scored/node/attempts/job_cgroups.hpp"

#include "base/os/cgroup.hpp"
#include "base/os/cpu_cgroup.hpp"
#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "scored/node/attempts/job_cores.hpp"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <linux/magic.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace score::node {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kJobPrefix = "job_";
constexpr std::string_view kInner = "/inner";  // in an attempt's version 1 cpu cgroup
constexpr std::string_view kLeastShares = "2";
constexpr std::string_view kLeastWeight = "1";
constexpr std::size_t kMaxControlBytes = 65'536;

// This does not use base's Cgroup, which opens three descriptors; writing one file needs only one.
Status write_control(const std::string& path, std::string_view text) {
  auto file = open_file(path, O_WRONLY);
  if (!file) return file.error();
  auto written = write_all(file->get(), text);
  if (!written) return written.error().with_context("{}", path);
  return {};
}

Status make_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return {};
  return fail(errno_code(errno), "cannot make cgroup {}", path);
}

bool has_word(const std::string& path, std::string_view word) {
  const auto text = read_file(path, kMaxControlBytes);
  if (!text) return false;
  for (const auto part : split(trim(*text), ' ')) {
    if (part == word) return true;
  }
  return false;
}

// A directory that enables controllers for the directories below it must not contain processes,
// unless it is the hierarchy's root. The process of the jobs' unit is the only one there.
void move_keeper_to_leaf(const std::string& root) {
  const std::string leaf = root + "/keeper";
  const auto processes = read_file(root + "/cgroup.procs", kMaxControlBytes);
  if (!processes || trim(*processes).empty() || !make_directory(leaf)) return;
  for (const auto process : split(trim(*processes), '\n')) {
    const auto moved = write_control(leaf + "/cgroup.procs", process);
    if (!moved)
      log_warning(
          "Cannot move the process of scored-jobs.service to a leaf; limits of jobs may not hold",
          kv("err", moved.error()));
  }
}

void leave_to_leaf(const std::string& root) {
  const std::string leaf = root + "/daemon";
  if (!make_directory(leaf)) return;
  [[maybe_unused]] auto moved = write_control(leaf + "/cgroup.procs", "0");
}

// Returns true for the directory of jobs before they had a unit of their own. Systemd could not
// restart the daemon in a cgroup that enables controllers, and that would end the jobs.
bool is_former_place(const std::string& root) {
  return root.ends_with("/system.slice/scored-node.service");
}

bool enable(const std::string& root, const std::string& controller) {
  if (is_former_place(root) || !has_word(root + "/cgroup.controllers", controller)) return false;
  return write_control(root + "/cgroup.subtree_control", "+" + controller).has_value();
}

bool may_be_real_time() {
  const sched_param least{.sched_priority = 1};
  // SCHED_RESET_ON_FORK is not used, because a process without privileges could not clear it again.
  if (sched_setscheduler(0, SCHED_FIFO, &least) != 0) return false;
  const sched_param none{};
  return sched_setscheduler(0, SCHED_OTHER, &none) == 0;
}

// Kernels with group scheduling of real-time tasks grant no real-time time to a cgroup with the cpu
// controller. The switcher's priority is more important than filling.
bool enable_cpu(const std::string& root) {
  const bool was_real_time = may_be_real_time();
  if (!enable(root, "cpu")) return false;
  if (!was_real_time || may_be_real_time()) return true;
  [[maybe_unused]] auto disabled = write_control(root + "/cgroup.subtree_control", "-cpu");
  return false;
}

// Kernels before 5.15 have the controller, but not cpu.idle.
bool has_idle(const std::string& directory) {
  if (!make_directory(directory)) return false;
  const bool has = access((directory + "/cpu.idle").c_str(), W_OK) == 0;
  rmdir(directory.c_str());
  return has;
}

bool may_make_cgroups(const std::string& root) {
  return access(root.c_str(), W_OK) == 0 && access((root + "/cgroup.procs").c_str(), W_OK) == 0;
}

std::string version1_of(const std::string& root, std::string_view controller) {
  const auto place = controller == "cpu" ? make_cpu_jobs_place() : own_cpu_cgroup(controller);
  const auto prefix = cpu_job_prefix(root);
  return place && prefix ? *place + "/" + *prefix : "";
}

// `idle` is the path of cpu.idle; "" if there is none.
void restore_priority(const std::string& idle) {
  if (!idle.empty()) [[maybe_unused]]
    auto restored = write_control(idle, "0");
}

// Lists the attempts of the directories whose path is `start` followed by the number of an attempt.
std::vector<AttemptId> list_of(const std::string& start) {
  std::vector<AttemptId> attempts;
  std::error_code ignored;
  const fs::path first(start);
  const std::string prefix = first.filename();
  for (const auto& entry : fs::directory_iterator(first.parent_path(), ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix)) continue;
    const auto number = parse_number<std::uint64_t>(std::string_view(name).substr(prefix.size()));
    if (number) attempts.push_back(AttemptId{*number});
  }
  return attempts;
}

// Returns "" if the file cannot be read.
std::string control_text(const std::string& path) {
  return read_file(path, kMaxControlBytes).value_or(std::string());
}

Duration microseconds(std::uint64_t count) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50U;
  return std::chrono::microseconds{static_cast<std::int64_t>(std::min(count, kMost))};
}

}  // namespace

FillPlace find_fill_place(const std::string& root, const std::string& version1) {
  if (!version1.empty() && has_idle(version1 + "probe")) {
    return {FillControl::Version1, version1, ""};
  }
  if (enable_cpu(root)) {
    if (!has_idle(root + "/fill_probe"))
      return {.job = {}, .why_not = "the kernel has no cpu.idle"};
    return {FillControl::Unified, fmt::format("{}/{}", root, kJobPrefix), ""};
  }
  if (version1.empty()) return {.job = {}, .why_not = "the cpu controller is not delegated"};
  return {.job = {}, .why_not = fmt::format("no cpu.idle can be made as {}probe", version1)};
}

std::uint64_t parse_counter(std::string_view text, std::string_view key) {
  for (const auto line : split(text, '\n')) {
    if (!line.starts_with(key) || !line.substr(key.size()).starts_with(' ')) continue;
    return parse_number<std::uint64_t>(line.substr(key.size() + 1)).value_or(0);
  }
  return 0;
}

std::string find_cgroup_root() {
  if (auto unit = find_jobs_unit(); unit && may_make_cgroups(*unit)) return *unit;
  auto own = own_cgroup();
  if (!own) return {};
  if (fs::path(*own).filename() == "daemon") own = fs::path(*own).parent_path().string();
  return may_make_cgroups(*own) ? *own : std::string();
}

Result<JobCgroups> JobCgroups::open(std::string root) {
  struct statfs info {};

  if (statfs(root.c_str(), &info) != 0)
    return fail(errno_code(errno), "cannot use cgroup root {}", root);
  if (info.f_type != CGROUP2_SUPER_MAGIC) {
    return fail(Errc::Unsupported, "{} is not in a cgroup2 file system", root);
  }
  if (access(root.c_str(), W_OK) != 0)
    return fail(errno_code(errno), "cannot use cgroup root {}", root);
  if (is_jobs_unit(root)) move_keeper_to_leaf(root);
  const bool has_any = has_word(root + "/cgroup.controllers", "memory") ||
                       has_word(root + "/cgroup.controllers", "pids");
  if (has_any && own_cgroup().value_or("") == root && !enable(root, "memory")) leave_to_leaf(root);
  FillPlace fill = find_fill_place(root, version1_of(root, "cpu"));
  if (fill.control == FillControl::Version1) {
    auto entered = enter_cpu_jobs_place(root);
    if (!entered) log_warning("Cannot set the weight of jobs", kv("err", entered.error()));
  }
  JobCgroups opened(std::move(root), std::move(fill));
  opened.memory_ = opened.find_limit_place("memory");
  opened.processes_ = opened.find_limit_place("pids");
  opened.processors_ = opened.find_limit_place("cpuset");
  return opened;
}

LimitPlace JobCgroups::find_limit_place(const std::string& controller) const {
  if (enable(root_, controller)) return {.is_unified = true, .version1 = {}};
  std::string version1 = version1_of(root_, controller);
  if (version1.empty() || !make_directory(version1 + "probe")) return {};
  rmdir((version1 + "probe").c_str());
  return {.is_unified = false, .version1 = std::move(version1)};
}

std::string JobCgroups::limit_path(const LimitPlace& place, AttemptId attempt) const {
  return place.is_unified ? tasks_path(attempt) : fmt::format("{}{}", place.version1, attempt);
}

std::vector<std::string> JobCgroups::version1_paths(AttemptId attempt) const {
  std::vector<std::string> paths;
  if (fill_.control == FillControl::Version1)
    paths.push_back(fmt::format("{}{}{}", fill_.job, attempt, kInner));
  for (const auto* place : {&memory_, &processes_, &processors_}) {
    if (!place->version1.empty()) paths.push_back(fmt::format("{}{}", place->version1, attempt));
  }
  return paths;
}

std::string JobCgroups::idle_path(AttemptId attempt) const {
  return fill_.job.empty() ? "" : fmt::format("{}{}/cpu.idle", fill_.job, attempt);
}

Status JobCgroups::set_idle_priority(AttemptId attempt) const {
  if (fill_.control == FillControl::None) return {};
  return write_control(idle_path(attempt), "1");
}

std::string JobCgroups::path(AttemptId attempt) const {
  return fmt::format("{}/{}{}", root_, kJobPrefix, attempt);
}

std::string JobCgroups::tasks_path(AttemptId attempt) const {
  return path(attempt) + "/tasks";
}

std::string JobCgroups::helpers_path(AttemptId attempt) const {
  return path(attempt) + "/helpers";
}

bool JobCgroups::has_helpers(AttemptId attempt) const {
  return access(helpers_path(attempt).c_str(), F_OK) == 0;
}

Status JobCgroups::write_limit(const LimitPlace& place, AttemptId attempt, std::string_view file,
                               std::string_view text) const {
  auto set = write_control(fmt::format("{}{}", limit_path(place, attempt), file), text);
  if (!set || !place.is_unified || !has_helpers(attempt)) return set;
  return write_control(fmt::format("{}{}", helpers_path(attempt), file), text);
}

Status JobCgroups::make(AttemptId attempt, const JobLimits& limits) const {
  const std::string job = path(attempt);
  if (auto made = make_directory(job); !made) return made;
  for (const auto& [place, name] : {std::pair(&memory_, "+memory"), std::pair(&processes_, "+pids"),
                                    std::pair(&processors_, "+cpuset")}) {
    if (!place->is_unified) continue;
    auto enabled = write_control(job + "/cgroup.subtree_control", name);
    if (!enabled) return enabled;
  }
  std::vector<std::string> paths = version1_paths(attempt);
  paths.insert(paths.begin(), {job + "/shepherd", job + "/tasks"});
  if (limits.has_helpers) paths.push_back(helpers_path(attempt));
  if (fill_.control == FillControl::Version1)
    paths.insert(paths.begin(), fmt::format("{}{}", fill_.job, attempt));
  for (const auto& one : paths) {
    if (auto made = make_directory(one); !made) return made;
  }
  if (auto set = set_weight(attempt); !set) {
    log_warning("Cannot set the weight of a job", kv("attempt", attempt), kv("err", set.error()));
  }
  return set_limits(attempt, limits);
}

// The tasks have the least weight in a cgroup of the default weight. This keeps the weight of the
// outer cgroup constant; otherwise tasks that sleep often can starve other jobs (ADR 0103). The
// outer cgroup has cpu.idle, which resets the weight.
Status JobCgroups::set_weight(AttemptId attempt) const {
  if (fill_.control == FillControl::None) return {};
  if (fill_.control == FillControl::Version1) {
    return write_control(fmt::format("{}{}{}/cpu.shares", fill_.job, attempt, kInner),
                         kLeastShares);
  }
  if (auto enabled = write_control(path(attempt) + "/cgroup.subtree_control", "+cpu"); !enabled)
    return enabled;
  auto set = write_control(tasks_path(attempt) + "/cpu.weight", kLeastWeight);
  if (!set || !has_helpers(attempt)) return set;
  return write_control(helpers_path(attempt) + "/cpu.weight", kLeastWeight);
}

Status JobCgroups::set_limits(AttemptId attempt, const JobLimits& limits) const {
  if (limits.memory != Bytes(0) && memory_.limits()) {
    const char* file = memory_.is_unified ? "/memory.max" : "/memory.limit_in_bytes";
    auto set = write_limit(memory_, attempt, file, fmt::format("{}", limits.memory.value()));
    if (!set) return set;
  }
  if (limits.processes != 0 && processes_.limits()) {
    auto set = write_limit(processes_, attempt, "/pids.max", fmt::format("{}", limits.processes));
    if (!set) return set;
  }
  return set_processors(attempt, limits);
}

// Version 1 accepts no task before both files have a value, which must lie within the parent's.
Status JobCgroups::set_processors(AttemptId attempt, const JobLimits& limits) const {
  const std::string place = limit_path(processors_, attempt);
  std::string cpus = cpu_list(limits.processors);
  if (!processors_.version1.empty()) {
    const std::string parent = fs::path(place).parent_path();
    const auto memories = read_file(parent + "/cpuset.mems", kMaxControlBytes);
    if (!memories) return memories.error();
    auto set = write_control(place + "/cpuset.mems", trim(*memories));
    if (!set) return set;
    const auto all = read_file(parent + "/cpuset.cpus", kMaxControlBytes);
    if (!all) return all.error();
    if (cpus.empty()) cpus = trim(*all);
  }
  if (cpus.empty() || !processors_.limits()) return {};
  return write_limit(processors_, attempt, "/cpuset.cpus", cpus);
}

Result<std::vector<UniqueFd>> JobCgroups::open_places(AttemptId attempt) const {
  std::vector<std::string> paths = version1_paths(attempt);
  paths.insert(paths.begin(), {path(attempt) + "/shepherd", tasks_path(attempt),
                               has_helpers(attempt) ? helpers_path(attempt) : tasks_path(attempt)});
  std::vector<UniqueFd> places;
  for (const auto& one : paths) {
    auto opened = open_file(one, O_PATH | O_DIRECTORY);
    if (!opened) return opened.error();
    places.push_back(*std::move(opened));
  }
  return places;
}

// Tasks need the processor to end. At idle priority they would wait for it on a busy host.
Status JobCgroups::kill_tasks(AttemptId attempt) const {
  restore_priority(idle_path(attempt));
  return kill_cgroup(tasks_path(attempt));
}

Status JobCgroups::kill_all(AttemptId attempt) const {
  restore_priority(idle_path(attempt));
  return kill_cgroup(path(attempt));
}

Status JobCgroups::remove(AttemptId attempt) const {
  auto removed = remove_cgroup_tree(path(attempt));
  std::vector<std::string> paths = version1_paths(attempt);
  if (fill_.control == FillControl::Version1)
    paths.push_back(fmt::format("{}{}", fill_.job, attempt));
  for (const auto& one : paths) {
    if (removed) removed = remove_cgroup_tree(one);
  }
  return removed;
}

std::vector<AttemptId> JobCgroups::list() const {
  auto attempts = list_of(root_ + "/" + std::string(kJobPrefix));
  for (const auto& start : {fill_.control == FillControl::Version1 ? fill_.job : std::string(),
                            memory_.version1, processes_.version1, processors_.version1}) {
    if (start.empty()) continue;
    for (const AttemptId other : list_of(start)) attempts.push_back(other);
  }
  std::sort(attempts.begin(), attempts.end());
  attempts.erase(std::unique(attempts.begin(), attempts.end()), attempts.end());
  return attempts;
}

void JobCgroups::thaw_all() const {
  for (const AttemptId attempt : list()) {
    restore_priority(idle_path(attempt));
    [[maybe_unused]] auto thawed = write_control(tasks_path(attempt) + "/cgroup.freeze", "0");
  }
}

std::uint32_t JobCgroups::oom_kills(AttemptId attempt) const {
  if (!memory_.limits()) return 0;
  const char* file = memory_.is_unified ? "/memory.events" : "/memory.oom_control";
  const auto events = read_file(limit_path(memory_, attempt) + file, kMaxControlBytes);
  return events ? static_cast<std::uint32_t>(parse_counter(*events, "oom_kill")) : 0;
}

CgroupCounters JobCgroups::counters(AttemptId attempt) const {
  CgroupCounters out;
  const std::string times = control_text(tasks_path(attempt) + "/cpu.stat");
  out.cpu_user = microseconds(parse_counter(times, "user_usec"));
  out.cpu_system = microseconds(parse_counter(times, "system_usec"));
  if (!memory_.limits()) return out;
  const char* file = memory_.is_unified ? "/memory.peak" : "/memory.max_usage_in_bytes";
  const std::string peak = control_text(limit_path(memory_, attempt) + file);
  if (const auto bytes = parse_number<std::uint64_t>(trim(peak))) out.charged_peak = Bytes(*bytes);
  return out;
}

Bytes JobCgroups::memory(AttemptId attempt) const {
  if (!memory_.limits()) return Bytes(0);
  const std::string text = control_text(limit_path(memory_, attempt) + "/memory.stat");
  const bool is_unified = memory_.is_unified;
  return Bytes(parse_counter(text, is_unified ? "anon" : "total_rss")) +
         Bytes(parse_counter(text, is_unified ? "shmem" : "total_shmem"));
}

}  // namespace score::node
