// The hook's processes descend from this one, which is a subreaper: a process that leaves its
// session and its parent becomes a child of this process. So no process can escape, and all are
// killed when the hook itself has ended, with or without cgroups.
#include "scored/privileged/hooks/hook_process.hpp"

#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "scored/privileged/hooks/last_line.hpp"
#include "scored/privileged/hooks/protocol.hpp"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <map>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <tuple>
#include <unistd.h>

namespace score::hooks {
namespace {

constexpr int kKillRounds = 2'000;
constexpr int kKillPauseMs = 2;

// Returns the parent of each process. A process may have any name, so its line is read from the
// last parenthesis on.
std::multimap<pid_t, pid_t> all_children() {
  std::multimap<pid_t, pid_t> children;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const auto pid = parse_number<pid_t>(entry.path().filename().string());
    if (!pid) continue;
    const auto line = read_file(entry.path().string() + "/stat", 4096);
    const auto end = line ? line->rfind(')') : std::string::npos;
    if (end == std::string::npos || end + 4 > line->size()) continue;
    const std::string_view rest = std::string_view(*line).substr(end + 4);
    if (const auto parent = parse_number<pid_t>(rest.substr(0, rest.find(' ')))) {
      children.emplace(*parent, *pid);
    }
  }
  return children;
}

void kill_below(const std::multimap<pid_t, pid_t>& children, pid_t top) {
  const auto [first, last] = children.equal_range(top);
  for (auto child = first; child != last; ++child) {
    kill(child->second, SIGKILL);
    kill_below(children, child->second);
  }
}

// Kills until no child is left: the children of a killed process become children of this one.
void kill_all(pid_t group) {
  kill(-group, SIGKILL);
  for (int round = 0; round < kKillRounds; ++round) {
    pid_t ended = 0;
    do ended = waitpid(-1, nullptr, WNOHANG);
    while (ended > 0);
    if (ended < 0) return;
    kill_below(all_children(), getpid());
    poll(nullptr, 0, kKillPauseMs);
  }
}

Result<UniqueFd> make_timer(Duration timeout) {
  UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  const auto nanoseconds = timeout.count();
  itimerspec at{};
  at.it_value.tv_sec = nanoseconds / 1'000'000'000;
  at.it_value.tv_nsec = nanoseconds % 1'000'000'000;
  if (!timer || timerfd_settime(timer.get(), 0, &at, nullptr) != 0)
    return fail(errno_code(errno), "cannot make a timer");
  return timer;
}

// Hook is the running program, its two pipes and its time limit.
class RunningHook {
 public:
  RunningHook(const HookRun& run, SpawnedProcess process, UniqueFd timer, UniqueFd messages,
              UniqueFd answers)
      : run_(run),
        process_(std::move(process)),
        timer_(std::move(timer)),
        messages_(std::move(messages)),
        answers_(std::move(answers)) {}

  // Returns why the hook has failed; empty if it has not.
  std::string wait() {
    while (why_.empty() && !has_ended_) wait_once();
    while (read_messages()) {
    }
    while (read_answers()) {
    }
    const auto status = reap(process_.pidfd.get(), has_ended_);
    kill_all(process_.pid);
    if (why_.empty() && status && *status) return of_status(**status);
    const std::string line = lines_.text();
    return line.empty() ? why_ : fmt::format("{}; its last line: {}", why_, line);
  }

 private:
  void wait_once() {
    std::array<pollfd, 5> watched{{{process_.pidfd.get(), POLLIN, 0},
                                   {timer_.get(), POLLIN, 0},
                                   {run_.peer, 0, 0},  // reports only that the other end is closed
                                   {messages_.get(), POLLIN, 0},
                                   {answers_.get(), POLLIN, 0}}};
    if (poll(watched.data(), watched.size(), -1) < 0) {
      if (errno != EINTR) why_ = "it cannot be watched";
      return;
    }
    has_ended_ = watched[0].revents != 0;
    if (watched[3].revents != 0) std::ignore = read_messages();
    if (watched[4].revents != 0) std::ignore = read_answers();
    if (has_ended_ || !why_.empty()) return;
    if (watched[1].revents != 0) {
      why_ = fmt::format("it did not end within {}", format_duration(run_.timeout));
    } else if (watched[2].revents != 0) {
      why_ = "it was cancelled";
    }
  }

  // Returns what the pipe holds, at most one buffer; empty if there is nothing or its end.
  std::string_view take(UniqueFd& pipe) {
    if (!pipe || !why_.empty()) return {};
    const ssize_t got = read(pipe.get(), buffer_.data(), buffer_.size());
    if (got <= 0) {
      const bool is_over = got == 0 || (errno != EAGAIN && errno != EINTR);
      if (is_over) pipe.reset();
      return {};
    }
    printed_ += static_cast<std::size_t>(got);
    if (printed_ > kMostOutput) why_ = fmt::format("it printed more than {}", Bytes(kMostOutput));
    return {buffer_.data(), static_cast<std::size_t>(got)};
  }

  bool read_messages() {
    const auto bytes = take(messages_);
    lines_.add(bytes);
    return !bytes.empty();
  }

  bool read_answers() {
    const auto bytes = take(answers_);
    answered_ += bytes.size();
    if (answered_ > kMostAnswerBytes) {
      why_ = fmt::format("its answer has more than {}", Bytes(kMostAnswerBytes));
    } else if (!bytes.empty() && !write_all(run_.answers, bytes)) {
      why_ = "its answer cannot be kept";
    }
    return !bytes.empty();
  }

  [[nodiscard]] std::string of_status(const ExitStatus& status) const {
    if (status.code == 0 && status.signal == 0) return {};
    const std::string line = lines_.text();
    if (status.signal == 0 && !line.empty()) return line;
    const std::string end = status.signal == 0
                                ? fmt::format("it ended with status {}", status.code)
                                : fmt::format("it was killed by signal {}", status.signal);
    return line.empty() ? end : fmt::format("{}; its last line: {}", end, line);
  }

  const HookRun& run_;
  SpawnedProcess process_;
  UniqueFd timer_;
  UniqueFd messages_;
  UniqueFd answers_;
  LastLine lines_;
  std::string why_;
  bool has_ended_ = false;
  std::size_t printed_ = 0;
  std::size_t answered_ = 0;
  std::array<char, 16'384> buffer_{};
};

Result<RunningHook> start(const HookRun& run) {
  auto timer = make_timer(run.timeout);
  if (!timer) return timer.error();
  auto messages = make_pipe();
  if (!messages) return messages.error();
  auto answers = make_pipe();
  if (!answers) return answers.error();
  for (const UniqueFd* const end : {&messages->read, &answers->read}) {
    if (auto set = set_nonblocking(end->get(), true); !set) return set.error();
  }
  SpawnSpec spec;
  spec.path = run.path;
  spec.argv = {run.path};
  spec.environment = run.environment;
  spec.directory = "/";
  spec.new_session = true;
  spec.die_with_parent = true;
  const int output = run.answers >= 0 ? answers->write.get() : messages->write.get();
  spec.fds = {{run.input, 0}, {output, 1}, {messages->write.get(), 2}};
  auto process = spawn(spec);
  if (!process) return process.error();
  return RunningHook(run, *std::move(process), *std::move(timer), std::move(messages->read),
                     std::move(answers->read));
}

}  // namespace

std::string run_hook(const HookRun& run) {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  auto hook = start(run);
  return hook ? hook->wait() : hook.error().message();
}

}  // namespace score::hooks
