#include "scored/node/attempts/process_tree.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <array>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <sys/ioctl.h>
#include <sys/wait.h>

namespace score::node {

namespace {

constexpr std::size_t kMaxListBytes = 1U << 20U;
constexpr std::size_t kMaxProcesses = 65'536;
constexpr std::size_t kMaxDepth = 1'000;  // of a tree of processes

// Mirrors struct pidfd_info of <linux/pidfd.h>, which Debian 12 does not have yet.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup;
  std::array<std::uint32_t, 11> ids;
  std::int32_t exit_code;  // in the format of waitpid(2)
};

static_assert(sizeof(PidfdInfo) == 64, "PIDFD_INFO_SIZE_VER0");
constexpr std::uint64_t kExitInfo = 1U << 3U;  // PIDFD_INFO_EXIT
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

std::vector<pid_t> children(pid_t pid) {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), ignored)) {
    const auto text = read_file(thread.path() / "children", kMaxListBytes);
    if (!text) continue;
    for (const auto word : split(trim(*text), ' ')) {
      if (const auto number = parse_number<pid_t>(word)) found.push_back(*number);
    }
  }
  return found;
}

// Returns the fields of /proc/PID/stat behind the name, which may contain spaces. See proc(5): "pid
// (name) state ppid pgrp session tty tpgid flags ...".
Result<std::vector<std::string>> stat_fields(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/stat", pid), kMaxListBytes);
  if (!text) return text.error();
  const auto behind = text->rfind(')');
  std::vector<std::string> fields;
  if (behind == std::string::npos) return fields;
  for (const auto field : split(trim(std::string_view(*text).substr(behind + 1)), ' ')) {
    fields.emplace_back(field);
  }
  return fields;
}

}  // namespace

std::vector<pid_t> ancestors(pid_t pid) {
  constexpr std::size_t kParent = 1;
  std::vector<pid_t> all;
  while (pid > 0 && all.size() < kMaxDepth) {
    const auto fields = stat_fields(pid);
    if (!fields || fields->size() <= kParent) break;
    pid = parse_number<pid_t>((*fields)[kParent]).value_or(0);
    if (pid > 0) all.push_back(pid);
  }
  return all;
}

std::vector<pid_t> descendants(pid_t pid) {
  std::vector<pid_t> all = children(pid);
  for (std::size_t i = 0; i < all.size() && all.size() < kMaxProcesses; ++i) {
    const auto below = children(all[i]);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

// See proc(5): "NSpid:", then the ids from the outermost namespace to the innermost.
std::vector<pid_t> outer_ids(pid_t above, const std::vector<pid_t>& inner) {
  std::vector<pid_t> outer(inner.size(), 0);
  for (const pid_t process : descendants(above)) {
    const auto text = read_file(fmt::format("/proc/{}/status", process), kMaxListBytes);
    const auto at = text ? text->find("NSpid:") : std::string::npos;
    if (at == std::string::npos) continue;
    const std::string_view line = std::string_view(*text).substr(at, text->find('\n', at) - at);
    const auto own = parse_number<pid_t>(line.substr(line.find_last_of(" \t") + 1));
    for (std::size_t i = 0; own && i < inner.size(); ++i) {
      if (inner[i] == *own) outer[i] = process;
    }
  }
  return outer;
}

bool is_ending(pid_t pid) {
  constexpr std::size_t kFlags = 6;
  constexpr unsigned kExiting = 0x4;  // PF_EXITING, include/linux/sched.h
  const auto read = stat_fields(pid);
  if (!read) return read.error().is(std::errc::no_such_file_or_directory);
  const std::vector<std::string>& fields = *read;
  if (fields.size() <= kFlags) return false;
  return fields[0] == "Z" || (parse_number<unsigned>(fields[kFlags]).value_or(0) & kExiting) != 0;
}

std::optional<int> signal_that_ended(int pidfd) {
  PidfdInfo info{};
  info.mask = kExitInfo;
  if (ioctl(pidfd, kGetInfo, &info) != 0 || (info.mask & kExitInfo) == 0) return std::nullopt;
  return WIFSIGNALED(info.exit_code) ? WTERMSIG(info.exit_code) : 0;
}

std::size_t kill_tree(pid_t shepherd, pid_t group) {
  if (group > 1) kill(-group, SIGKILL);
  if (shepherd <= 1) return 0;
  const auto all = descendants(shepherd);
  for (const pid_t pid : all) kill(pid, SIGKILL);
  return all.size();
}

}  // namespace score::node
