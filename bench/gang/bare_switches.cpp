// Measures the kernel's part of the switches of many nodes on this one machine. It runs one process
// per node, real-time where that is allowed, which only sleeps until absolute times of the
// monotonic clock and writes cgroup.freeze twice, for two tasks that compute in turns. No daemon
// takes part, so daemons cannot use less.
//
//   scbench-bare CGROUP NODES PERIOD_NS SECONDS [COMMAND...]
//
// The program makes CGROUP, a directory of cgroup2, and removes it. It prints one object of JSON:
// the processor time of the switching processes, per switch and as a share of the machine.
//
// With COMMAND the two tasks of a node run it, each in a session of its own and on one processor;
// the nodes take the processors in turn. BARE_NODE and BARE_JOB (0, 1) identify the task. Lines of
// standard input select the mode: with `alone` (the initial mode) job 0 runs and nothing is
// switched; with `shared` both jobs take turns. The program ends at the end of the input or after
// SECONDS.
#include "base/os/cgroup.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <linux/futex.h>
#include <new>
#include <optional>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using score::Cgroup;

constexpr int kPriority = 20;  // the switchers' priority
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kToGetReady = 1'500'000'000;
constexpr std::int64_t kMostNodes = 4'096;
constexpr std::int64_t kMostSeconds = 3'600;

struct BenchPlan {
  std::string root;
  std::int64_t nodes = 0, period = 0, seconds = 0;
  char** command = nullptr;  // null: the tasks compute
  std::int64_t start = 0;    // time of the first switch
};

// Counts the work of a node.
struct Tally {
  std::int64_t used_ns = 0, switches = 0;
};

// Lies in memory that the parent and its nodes share. The tallies of the nodes follow it.
struct alignas(64) SharedState {
  std::atomic<bool> takes_turns{true};  // otherwise job 0 runs alone
  std::atomic<bool> is_over{false};
};

std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

// Sleeps in the same way as the switchers.
void sleep_until(std::int64_t time) {
  const timespec at{.tv_sec = time / kSecond, .tv_nsec = time % kSecond};
  std::uint32_t word = 0;
  do {
    syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, &at, nullptr,
            FUTEX_BITSET_MATCH_ANY);
  } while (clock_ns(CLOCK_MONOTONIC) < time);
}

[[noreturn]] void compute() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (volatile std::uint64_t i = 0;;) i = i + 1;
}

void keep_to_processor(std::int64_t node) {
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(static_cast<std::size_t>(node % sysconf(_SC_NPROCESSORS_ONLN)), &own);
  sched_setaffinity(0, sizeof own, &own);
}

[[noreturn]] void run_command(const BenchPlan& plan, std::int64_t node, int job) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setsid();
  keep_to_processor(node);
  setenv("BARE_NODE", std::to_string(node).c_str(), 1);
  setenv("BARE_JOB", std::to_string(job).c_str(), 1);
  execvp(plan.command[0], plan.command);
  fmt::print(stderr, "scbench-bare: cannot run {}\n", plan.command[0]);
  _exit(127);
}

// Makes a stopped cgroup with a task in it.
std::optional<Cgroup> make_job(const BenchPlan& plan, std::int64_t node, int job) {
  auto cgroup = Cgroup::create(fmt::format("{}/{}{}", plan.root, node, job == 0 ? 'a' : 'b'));
  if (!cgroup || !cgroup->freeze(true)) return std::nullopt;
  const pid_t task = fork();
  if (task == 0 && plan.command != nullptr) run_command(plan, node, job);
  if (task == 0) compute();
  if (task < 0 || !cgroup->add(task)) return std::nullopt;
  return *std::move(cgroup);
}

bool follow(const BenchPlan& plan, std::array<Cgroup, 2>& jobs, const SharedState& shared,
            Tally& tally) {
  const sched_param wanted{.sched_priority = kPriority};
  sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &wanted);
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  mlockall(MCL_CURRENT);
  std::size_t leaves = 1;
  std::int64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  const std::int64_t end = plan.start + plan.seconds * kSecond;
  for (std::int64_t at = plan.start; at < end && !shared.is_over; at += plan.period) {
    sleep_until(at);
    const bool does_switch = leaves != 0 || shared.takes_turns;
    if (does_switch && !(jobs[leaves].freeze(true) && jobs[1 - leaves].freeze(false))) return false;
    const std::int64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (does_switch) {
      tally.used_ns += now - before;
      ++tally.switches;
      leaves = 1 - leaves;
    }
    before = now;
  }
  return true;
}

int run_node(const BenchPlan& plan, std::int64_t node, const SharedState& shared, Tally& tally) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto first = make_job(plan, node, 0);
  auto second = make_job(plan, node, 1);
  if (!first || !second) return 1;
  std::array<Cgroup, 2> jobs{*std::move(first), *std::move(second)};
  return follow(plan, jobs, shared, tally) ? 0 : 1;
}

// Follows the lines of standard input until it ends.
void obey(SharedState& shared) {
  for (std::string line; std::getline(std::cin, line);) shared.takes_turns = line == "shared";
  shared.is_over = true;
}

// Returns true if every node ended successfully.
bool run_nodes(const BenchPlan& plan, SharedState& shared, Tally* tallies) {
  shared.takes_turns = plan.command == nullptr;
  std::vector<pid_t> nodes;
  for (std::int64_t i = 0; i < plan.nodes; ++i) {
    const pid_t node = fork();
    if (node == 0) _exit(run_node(plan, i, shared, tallies[i]));
    if (node > 0) nodes.push_back(node);
  }
  if (plan.command != nullptr) obey(shared);
  bool went_well = static_cast<std::int64_t>(nodes.size()) == plan.nodes;
  for (const pid_t node : nodes) {
    int status = 0;
    while (waitpid(node, &status, 0) < 0 && errno == EINTR) continue;
    went_well = went_well && status == 0;
  }
  return went_well;
}

void print(const BenchPlan& plan, const Tally* tallies) {
  double used = 0;
  double switches = 0;
  for (std::int64_t i = 0; i < plan.nodes; ++i) {
    used += static_cast<double>(tallies[i].used_ns);
    switches += static_cast<double>(tallies[i].switches);
  }
  const double machine = static_cast<double>(plan.seconds * kSecond) *
                         static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  fmt::print("{{\"switches\": {:.0f}, \"switch_us\": {:.2f}, \"cpu_percent\": {:.3f}}}\n", switches,
             used / switches / 1e3, used / machine * 100);
}

// Killed processes leave a cgroup some time after the signal, so this retries.
bool remove_all(Cgroup& root) {
  [[maybe_unused]] const auto killed = root.kill();
  for (int i = 0; i < 200; ++i) {
    if (score::remove_cgroup_tree(root.path())) return true;
    usleep(10'000);
  }
  return false;
}

int run(BenchPlan plan) {
  const auto bytes = sizeof(SharedState) + static_cast<std::size_t>(plan.nodes) * sizeof(Tally);
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto root = Cgroup::create(plan.root);
  if (memory == MAP_FAILED || !root) {
    fmt::print(stderr, "scbench-bare: cannot create cgroup {}\n", plan.root);
    return 1;
  }
  auto* const shared = new (memory) SharedState;
  auto* const tallies = reinterpret_cast<Tally*>(shared + 1);
  plan.start = (clock_ns(CLOCK_MONOTONIC) + kToGetReady) / plan.period * plan.period + plan.period;
  const bool went_well = run_nodes(plan, *shared, tallies);
  if (!remove_all(*root) || !went_well) {
    fmt::print(stderr, "scbench-bare: cannot run the nodes below {}\n", plan.root);
    return 1;
  }
  print(plan, tallies);
  return 0;
}

std::optional<std::int64_t> number(std::string_view text, std::int64_t most) {
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return is_whole && value > 0 && value <= most ? std::optional(value) : std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  const auto nodes = argc >= 5 ? number(argv[2], kMostNodes) : std::nullopt;
  const auto period = argc >= 5 ? number(argv[3], kMostSeconds * kSecond) : std::nullopt;
  const auto seconds = argc >= 5 ? number(argv[4], kMostSeconds) : std::nullopt;
  char** const command = argc > 5 ? argv + 5 : nullptr;
  if (nodes && period && seconds) return run({argv[1], *nodes, *period, *seconds, command});
  fmt::print(stderr, "usage: scbench-bare CGROUP NODES PERIOD_NS SECONDS [COMMAND...]\n");
  return 2;
}
