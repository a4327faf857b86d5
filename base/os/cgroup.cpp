#include "base/os/cgroup.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace score::inline base {

namespace {

constexpr std::size_t kMaxMountinfoBytes = 16 * limits::kMiB;
constexpr std::size_t kMaxControlBytes = limits::kMiB;
constexpr int kMaxTreeDepth = 8;
constexpr std::string_view kJobsUnit = "/scored-jobs.service";  // also in thaw.cpp

bool is_octal(char c) {
  return c >= '0' && c <= '7';
}

// mountinfo writes blanks, tabs, line ends and backslashes as \ooo.
std::string unescape_octal(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      const int value = (text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0');
      out += static_cast<char>(value);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Mount {
  std::string_view root;
  std::string_view point;
  std::string_view type;
};

// The format of a line is "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw". This
// function reads fields 4 and 5, and the first one after the separate dash. Any number of optional
// fields may come before the dash.
bool parse_mount(std::string_view line, Mount& mount) {
  const auto dash = line.find(" - ");
  if (dash == line.npos) return false;
  const auto fields = split(line.substr(0, dash), ' ');
  if (fields.size() < 6) return false;
  mount.root = fields[3];
  mount.point = fields[4];
  mount.type = split(line.substr(dash + 3), ' ')[0];
  return true;
}

Result<std::string> read_proc(const char* path) {
  return read_file(path, kMaxMountinfoBytes);
}

// Kernels before 5.14 have no cgroup.kill. A process of a different pid namespace has the number 0.
Status kill_each(const std::string& path) {
  const auto text = read_file(path + "/cgroup.procs", kMaxControlBytes * 16);
  if (!text) return text.error();
  for (const auto line : split(*text, '\n')) {
    const auto pid = parse_number<pid_t>(line);
    if (pid && *pid > 0) ::kill(*pid, SIGKILL);
  }
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_directory(ignored) || entry->is_symlink(ignored)) continue;
    if (auto killed = kill_each(entry->path()); !killed) return killed;
  }
  return {};
}

Status remove_tree(const std::string& path, int depth) {
  if (depth > kMaxTreeDepth) return fail(Errc::TooLarge, "depth of {}", path);
  std::error_code error;  // of the listing: rmdir below shows whether it matters
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_directory(ignored) || entry->is_symlink(ignored)) continue;
    if (auto removed = remove_tree(entry->path(), depth + 1); !removed) return removed;
  }
  if (rmdir(path.c_str()) != 0 && errno != ENOENT) {
    return fail(errno_code(errno), "cannot remove cgroup {}", path);
  }
  return {};
}

}  // namespace

Result<std::string> parse_cgroup2_mount(std::string_view mountinfo) {
  std::string_view found;
  for (const auto line : split(mountinfo, '\n')) {
    Mount mount;
    if (!parse_mount(line, mount) || mount.type != "cgroup2") continue;
    if (mount.point.empty() || mount.point[0] != '/') continue;
    if (mount.root == "/") return unescape_octal(mount.point);
    if (found.empty()) found = mount.point;
  }
  if (found.empty()) return fail(Errc::NotFound, "mount of cgroup2");
  return unescape_octal(found);
}

Result<std::string> find_cgroup2_mount() {
  const auto text = read_proc("/proc/self/mountinfo");
  if (!text) return text.error();
  return parse_cgroup2_mount(*text);
}

Result<std::string> parse_cgroup2_path(std::string_view proc_cgroup) {
  constexpr std::string_view kStart = "0::/";
  for (const auto line : split(proc_cgroup, '\n')) {
    if (line.starts_with(kStart)) return std::string(line.substr(kStart.size() - 1));
  }
  return fail(Errc::NotFound, "cgroup of version 2");
}

Result<std::string> own_cgroup() {
  const auto mount = find_cgroup2_mount();
  if (!mount) return mount.error();
  const auto text = read_proc("/proc/self/cgroup");
  if (!text) return text.error();
  const auto path = parse_cgroup2_path(*text);
  if (!path) return path.error();
  return *path == "/" ? *mount : *mount + *path;
}

Result<std::string> find_jobs_unit() {
  const auto own = own_cgroup();
  if (!own) return own.error();
  return find_jobs_unit(*own);
}

Result<std::string> find_jobs_unit(const std::string& own) {
  std::string unit = own.substr(0, own.rfind('/')).append(kJobsUnit);
  std::error_code ignored;
  if (std::filesystem::is_directory(unit, ignored)) return unit;
  return fail(Errc::NotFound, "{}", unit);
}

bool is_jobs_unit(std::string_view cgroup) {
  return cgroup.ends_with(kJobsUnit);
}

CgroupEvents parse_cgroup_events(std::string_view text) {
  CgroupEvents events;
  for (const auto line : split(text, '\n')) {
    if (line == "populated 1") events.populated = true;
    if (line == "frozen 1") events.frozen = true;
  }
  return events;
}

Result<Cgroup> Cgroup::create(std::string path) {
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
    return fail(errno_code(errno), "cannot make cgroup {}", path);
  }
  return open(std::move(path));
}

Result<Cgroup> Cgroup::open(std::string path) {
  auto directory = open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory) return directory.error();
  auto freeze = open_file(path + "/cgroup.freeze", O_WRONLY);
  if (!freeze) return freeze.error();
  auto events = open_file(path + "/cgroup.events", O_RDONLY);
  if (!events) return events.error();
  return Cgroup(std::move(path), *std::move(directory), *std::move(freeze), *std::move(events));
}

Result<UniqueFd> Cgroup::open_control(std::string_view file, int flags) const {
  UniqueFd opened(openat(directory_.get(), std::string(file).c_str(), flags | O_CLOEXEC));
  if (!opened) return fail(errno_code(errno), "cannot open {}/{}", path_, file);
  return opened;
}

Status Cgroup::freeze(bool on) {
  if (pwrite(freeze_.get(), on ? "1" : "0", 1, 0) == 1) return {};
  return fail(errno_code(errno), "cannot {} {}", on ? "freeze" : "thaw", path_);
}

Status Cgroup::kill() {
  return kill_cgroup(path_);
}

Result<CgroupEvents> Cgroup::events() const {
  std::array<char, 256> text{};
  const ssize_t got = pread(events_.get(), text.data(), text.size(), 0);
  if (got < 0) return fail(errno_code(errno), "cannot read events of {}", path_);
  return parse_cgroup_events({text.data(), static_cast<std::size_t>(got)});
}

Result<std::vector<pid_t>> Cgroup::processes(std::size_t max) const {
  const auto control = open_control("cgroup.procs", O_RDONLY);
  if (!control) return control.error();
  const auto text = read_all(control->get(), kMaxControlBytes * 16);
  if (!text) return text.error().with_context("{}", path_);
  std::vector<pid_t> pids;
  for (const auto line : split(*text, '\n')) {
    const auto pid = parse_number<pid_t>(line);
    if (pid && pids.size() < max) pids.push_back(*pid);
  }
  return pids;
}

Status Cgroup::add(pid_t pid) {
  return write("cgroup.procs", fmt::format("{}", pid));
}

Status Cgroup::write(std::string_view file, std::string_view text) {
  auto control = open_control(file, O_WRONLY);
  if (!control) return control.error();
  if (auto written = write_all(control->get(), text); !written) {
    return written.error().with_context("{}/{}", path_, file);
  }
  return {};
}

Status kill_cgroup(const std::string& path) {
  auto control = open_file(path + "/cgroup.kill", O_WRONLY);
  if (!control) {
    const bool is_old = control.error().is(std::errc::no_such_file_or_directory);
    return is_old ? kill_each(path) : control.error();
  }
  if (::write(control->get(), "1", 1) != 1) return fail(errno_code(errno), "cannot kill {}", path);
  return {};
}

Status remove_cgroup_tree(const std::string& path) {
  return remove_tree(path, 0);
}

}  // namespace score::inline base
