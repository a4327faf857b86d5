// scored-stacks reads the stacks of tasks on behalf of their shepherd, as the job's user:
//
//    scored-stacks MILLISECONDS [--threads] RANK:PROCESS ...
//
// It writes the size and a wire::StackTree to standard output. A slow one harms nothing: the kernel
// ends it after this time, and releases what it has seized. It runs outside the tasks' cgroup, so
// other processes of the user must not be able to trace it.

#include "base/exit_codes.hpp"
#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "scored/job/stacks/stack_query.hpp"
#include "scored/job/stacks/stack_reader.hpp"

#include <fmt/format.h>

#include <csignal>
#include <optional>
#include <string_view>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

using score::kExitError;

constexpr std::uint32_t kLongestMs = 60'000;
constexpr rlim_t kMostMemory = rlim_t{512} << 20;

struct Task {
  std::uint32_t rank = 0;
  pid_t process = 0;
};

std::optional<Task> parse_task(std::string_view text) {
  const auto parts = score::split(text, ':');
  if (parts.size() != 2) return std::nullopt;
  const auto rank = score::parse_number<std::uint32_t>(parts[0]);
  const auto process = score::parse_number<pid_t>(parts[1]);
  if (!rank || !process || *process < 2) return std::nullopt;
  return Task{*rank, *process};
}

// SIGALRM ends this process whatever it is doing.
void limit_time(std::uint32_t milliseconds) {
  signal(SIGALRM, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigprocmask(SIG_SETMASK, &set, nullptr);
  const itimerval timer{.it_interval = {},
                        .it_value = {milliseconds / 1'000, (milliseconds % 1'000) * 1'000L}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void read_task(score::stacks::StackReader& reader, const Task& task, bool threads,
               score::proto::StackTree& tree) {
  const auto stacks = reader.read(score::stacks::working_process(task.process), threads);
  if (!stacks) return tree.add_problem(task.rank, stacks.error().context());
  for (const auto& stack : *stacks) tree.add(stack, task.rank);
}

}  // namespace

int main(int argc, char** argv) {
  const auto limit =
      argc < 2 ? score::Result<std::uint32_t>(0U) : score::parse_number<std::uint32_t>(argv[1]);
  if (!limit || *limit == 0 || *limit > kLongestMs) {
    score::log_error("usage: scored-stacks MILLISECONDS [--threads] RANK:PROCESS ...");
    return kExitError;
  }
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  limit_time(*limit);
  const rlimit memory{kMostMemory, kMostMemory};
  setrlimit(RLIMIT_DATA, &memory);
  score::stacks::StackReader reader;
  score::proto::StackTree tree;
  bool threads = false;
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--threads") {
      threads = true;
    } else if (const auto task = parse_task(argv[i])) {
      read_task(reader, *task, threads, tree);
    } else {
      score::log_error("scored-stacks: not RANK:PROCESS", score::kv("word", argv[i]));
      return kExitError;
    }
  }
  const auto out = tree.to_wire(score::proto::StackTree::kMaxNodeBytes).SerializeAsString();
  static_assert(score::shepherd::kStackSizeDigits == 8);
  const auto written = score::write_all(STDOUT_FILENO, fmt::format("{:08x}", out.size()) + out);
  return written ? score::kExitOk : kExitError;
}
