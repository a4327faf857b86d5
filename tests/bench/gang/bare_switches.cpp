// What the kernel takes for the switches of many nodes on this one machine: a process a node,
// real-time where that is allowed, only sleeps until absolute times of the monotonic clock and
// writes cgroup.freeze twice, for two tasks that compute in turns. No daemon has a part in it, so
// daemons cannot use less.
//
//   scbench-bare CGROUP NODES PERIOD_NS SECONDS
//
// Makes CGROUP, a directory of cgroup2, and removes it. Prints one object of JSON: the processor
// time of the switching processes, for a switch and as a part of the machine.
#include "base/cgroup.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
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

constexpr int kPriority = 20;  // as the switchers have
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kToGetReady = 1'500'000'000;
constexpr std::int64_t kMostNodes = 4'096;
constexpr std::int64_t kMostSeconds = 3'600;

struct Plan {
  std::string root;
  std::int64_t nodes = 0, period = 0, seconds = 0;
  std::int64_t start = 0;  // of the first switch
};

// What a node has done, in memory that it shares with the parent.
struct Tally {
  std::int64_t used_ns = 0, switches = 0;
};

std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

// As the switchers sleep.
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

// A stopped cgroup with a task in it.
std::optional<Cgroup> make_job(const std::string& path) {
  auto cgroup = Cgroup::create(path);
  if (!cgroup || !cgroup->freeze(true)) return std::nullopt;
  const pid_t task = fork();
  if (task == 0) compute();
  if (task < 0 || !cgroup->add(task)) return std::nullopt;
  return *std::move(cgroup);
}

bool follow(const Plan& plan, std::array<Cgroup, 2>& jobs, Tally& tally) {
  const sched_param wanted{.sched_priority = kPriority};
  sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &wanted);
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  mlockall(MCL_CURRENT);
  std::int64_t before = 0;
  const std::int64_t end = plan.start + plan.seconds * kSecond;
  for (std::int64_t at = plan.start; at < end; at += plan.period, ++tally.switches) {
    sleep_until(at);
    if (tally.switches == 0) before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const std::size_t leaves = tally.switches % 2;
    if (!jobs[leaves].freeze(true) || !jobs[1 - leaves].freeze(false)) return false;
  }
  tally.used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
  return true;
}

int run_node(const Plan& plan, std::int64_t node, Tally& tally) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto first = make_job(fmt::format("{}/{}a", plan.root, node));
  auto second = make_job(fmt::format("{}/{}b", plan.root, node));
  if (!first || !second) return 1;
  std::array<Cgroup, 2> jobs{*std::move(first), *std::move(second)};
  return follow(plan, jobs, tally) ? 0 : 1;
}

// True: every node ended well.
bool run_nodes(const Plan& plan, Tally* tallies) {
  std::vector<pid_t> nodes;
  for (std::int64_t i = 0; i < plan.nodes; ++i) {
    const pid_t node = fork();
    if (node == 0) _exit(run_node(plan, i, tallies[i]));
    if (node > 0) nodes.push_back(node);
  }
  bool went_well = static_cast<std::int64_t>(nodes.size()) == plan.nodes;
  for (const pid_t node : nodes) {
    int status = 0;
    while (waitpid(node, &status, 0) < 0 && errno == EINTR) continue;
    went_well = went_well && status == 0;
  }
  return went_well;
}

void print(const Plan& plan, const Tally* tallies) {
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

// The dead leave a cgroup some time after they were killed.
bool remove_all(Cgroup& root) {
  [[maybe_unused]] const auto killed = root.kill();
  for (int i = 0; i < 200; ++i) {
    if (score::remove_cgroup_tree(root.path())) return true;
    usleep(10'000);
  }
  return false;
}

int run(Plan plan) {
  const auto bytes = static_cast<std::size_t>(plan.nodes) * sizeof(Tally);
  void* const shared =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto root = Cgroup::create(plan.root);
  if (shared == MAP_FAILED || !root) {
    fmt::print(stderr, "scbench-bare: cannot make cgroup {}\n", plan.root);
    return 1;
  }
  auto* const tallies = static_cast<Tally*>(shared);
  plan.start = (clock_ns(CLOCK_MONOTONIC) + kToGetReady) / plan.period * plan.period + plan.period;
  const bool went_well = run_nodes(plan, tallies);
  if (!remove_all(*root) || !went_well) {
    fmt::print(stderr, "scbench-bare: failed below {}\n", plan.root);
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
  const auto nodes = argc == 5 ? number(argv[2], kMostNodes) : std::nullopt;
  const auto period = argc == 5 ? number(argv[3], kMostSeconds * kSecond) : std::nullopt;
  const auto seconds = argc == 5 ? number(argv[4], kMostSeconds) : std::nullopt;
  if (nodes && period && seconds) return run({argv[1], *nodes, *period, *seconds});
  fmt::print(stderr, "usage: scbench-bare CGROUP NODES PERIOD_NS SECONDS\n");
  return 2;
}
