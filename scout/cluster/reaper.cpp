#include "scout/cluster/reaper.hpp"

#include "base/os/cgroup.hpp"
#include "base/os/cpu_cgroup.hpp"
#include "base/os/unmount.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <tuple>
#include <unistd.h>

namespace score::scout {

namespace {

namespace fs = std::filesystem;

constexpr auto kPause = std::chrono::milliseconds{5};
// A killed process needs the processor to end, and on a busy machine it waits for it.
constexpr Duration kKillLimit = 30s;

std::vector<pid_t> all_pids() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const auto pid = parse_number<pid_t>(entry.path().filename().native());
    if (pid && *pid > 0) pids.push_back(*pid);
  }
  return pids;
}

// Reads parent and state from /proc/PID/stat. The name in parentheses may contain anything, so
// parsing begins after the last parenthesis.
struct Stat {
  pid_t parent = 0;
  char state = '?';
};

Stat stat_of(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/stat", 8192);
  const auto end = text ? text->rfind(')') : std::string::npos;
  if (end == std::string::npos || end + 4 > text->size()) return {};
  const std::string_view rest = std::string_view(*text).substr(end + 4);
  const auto parent = parse_number<pid_t>(rest.substr(0, rest.find(' ')));
  return {.parent = parent ? *parent : 0, .state = (*text)[end + 2]};
}

// Returns the inodes of Unix sockets that are bound to paths below the directory.
std::set<std::string> socket_inodes(const std::string& directory) {
  std::set<std::string> inodes;
  const auto table = read_file("/proc/net/unix", std::size_t{64} << 20U);
  if (!table) return inodes;
  for (const auto line : split(*table, '\n')) {
    const auto at = line.find(directory + "/");
    if (at == line.npos) continue;
    const auto before = trim(line.substr(0, at));
    inodes.emplace(before.substr(before.rfind(' ') + 1));
  }
  return inodes;
}

bool holds_socket(pid_t pid, const std::set<std::string>& inodes) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error)) {
    const auto target = fs::read_symlink(entry.path(), error).native();
    if (target.starts_with("socket:[") && inodes.contains(target.substr(8, target.size() - 9))) {
      return true;
    }
  }
  return false;
}

// Returns true if the process was started by `score virtual` or is a task of one of the cluster's
// jobs. The path alone is no proof, because a user may have it in SCORED_SERVER of a shell.
bool belongs_to(pid_t pid, const std::string& directory) {
  auto environment = read_file("/proc/" + std::to_string(pid) + "/environ", 4U << 20U);
  if (!environment) return false;
  environment->insert(environment->begin(), '\0');
  const auto has = [&](const std::string& text) { return environment->find(text) != text.npos; };
  const std::string zero(1, '\0');
  return has(zero + "SCORED_VIRTUAL=" + directory + zero) ||
         (has(directory + "/") && has(zero + "SCORE_JOBID="));
}

bool is_ours(pid_t pid) {
  struct stat info {};

  if (stat(("/proc/" + std::to_string(pid)).c_str(), &info) != 0) return false;
  return geteuid() == 0 || info.st_uid == geteuid();
}

// Returns this process and its ancestors, which may name the directory too and must not be killed.
std::set<pid_t> own_line() {
  std::set<pid_t> line;
  for (pid_t pid = getpid(); pid > 0 && line.insert(pid).second;) pid = stat_of(pid).parent;
  return line;
}

// The kernel writes mount points with octal escapes; this function decodes them.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digits = text.substr(i, 4);
    const bool is_escape = digits.size() == 4 && digits[0] == '\\' &&
                           digits.find_first_not_of("01234567", 1) == digits.npos;
    if (is_escape) {
      out += static_cast<char>((digits[1] - '0') * 64 + (digits[2] - '0') * 8 + digits[3] - '0');
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

void unmount_below(const std::string& directory) {
  const auto table = read_file("/proc/self/mountinfo", std::size_t{64} << 20U);
  if (!table) return;
  for (const auto line : split(*table, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() < 5) continue;
    const std::string place = unescape(words[4]);
    if (place.starts_with(directory + "/")) std::ignore = base::unmount(place);
  }
}

void pause_briefly() {
  std::this_thread::sleep_for(kPause);
}

std::vector<pid_t> descendants_of(pid_t ancestor) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : all_pids()) {
    const auto stat = stat_of(pid);
    if (stat.state != 'Z' && stat.state != '?') children.emplace(stat.parent, pid);
  }
  std::vector<pid_t> found;
  std::vector<pid_t> open = {ancestor};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [first, last] = children.equal_range(parent);
    for (auto it = first; it != last; ++it) {
      found.push_back(it->second);
      open.push_back(it->second);
    }
  }
  return found;
}

std::vector<pid_t> kill_descendants(Duration limit) {
  const TimePoint deadline = monotonic_now() + limit;
  for (;;) {
    const auto below = descendants_of(getpid());
    for (const pid_t pid : below) kill(pid, SIGKILL);
    pid_t reaped = 0;
    do {
      reaped = waitpid(-1, nullptr, WNOHANG);
    } while (reaped > 0);
    if (reaped < 0 && errno == ECHILD) return {};
    if (monotonic_now() > deadline) return below;
    pause_briefly();
  }
}

bool clear_cgroup(const std::string& path) {
  auto group = Cgroup::open(path);
  if (!group) return true;
  const TimePoint deadline = monotonic_now() + kKillLimit;
  for (;;) {
    if (const auto killed = group->kill(); !killed) return false;
    const auto events = group->events();
    if (!events || !events->populated) break;
    if (monotonic_now() > deadline) return false;
    pause_briefly();
  }
  remove_cpu_jobs(path);
  while (!remove_cgroup_tree(path)) {
    if (monotonic_now() > deadline) return false;
    pause_briefly();
  }
  return true;
}

void kill_users_of(const std::string& directory) {
  const auto spared = own_line();
  const TimePoint deadline = monotonic_now() + std::chrono::seconds{5};
  for (;;) {
    const auto inodes = socket_inodes(directory);
    std::set<pid_t> doomed;
    for (const pid_t pid : all_pids()) {
      if (spared.contains(pid) || !is_ours(pid) || stat_of(pid).state == 'Z') continue;
      if (!holds_socket(pid, inodes) && !belongs_to(pid, directory)) continue;
      doomed.insert(pid);
      for (const pid_t below : descendants_of(pid)) doomed.insert(below);
    }
    std::erase_if(doomed, [&](pid_t pid) { return spared.contains(pid); });
    if (doomed.empty() || monotonic_now() > deadline) return;
    // A pid may have been reused since the listing. In the worst case that kills an unrelated
    // process of our user.
    for (const pid_t pid : doomed) kill(pid, SIGKILL);
    pause_briefly();
  }
}

}  // namespace score::scout
