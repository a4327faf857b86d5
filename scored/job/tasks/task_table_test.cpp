#include "scored/job/tasks/task_table.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::shepherd {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMemory = 64U << 20U;

base::Duration used_by_this_process() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return std::chrono::seconds{used.ru_utime.tv_sec + used.ru_stime.tv_sec} +
         std::chrono::microseconds{used.ru_utime.tv_usec + used.ru_stime.tv_usec};
}

// Starts a process that touches memory and computes for 50 ms.
pid_t start_busy() {
  const pid_t child = fork();
  if (child != 0) return child;
  const auto memory = std::make_unique<char[]>(kMemory);
  std::memset(memory.get(), 1, kMemory);
  while (used_by_this_process() < 50ms) continue;
  _exit(memory[kMemory / 2] == 1 ? 0 : 1);
}

void reap_all(TaskTable& table, std::initializer_list<pid_t> children) {
  for (const pid_t child : children) {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  }
  table.reap();
}

TEST(TaskTable, AddsUpWhatTasksUsed) {
  TaskTable table({0, 1}, [](std::uint32_t, const wire::TaskExit&) {});
  const pid_t first = start_busy();
  const pid_t second = start_busy();
  table.set_process(0, first);
  table.set_process(1, second);
  reap_all(table, {first, second});
  EXPECT_TRUE(table.all_ended_well());
  const base::Usage& usage = table.usage();
  EXPECT_GE(usage.cpu_user + usage.cpu_system, 100ms);
  EXPECT_LT(usage.cpu_user + usage.cpu_system, 10s);
  EXPECT_GE(usage.memory_peak, base::Bytes(2 * kMemory)) << "they ran side by side";
  EXPECT_EQ(usage.memory_peak_sum, usage.memory_peak);
  EXPECT_GE(usage.page_faults, 2 * kMemory / 65'536);
}

TEST(TaskTable, CountsProcessesThatTasksLeftBehind) {
  TaskTable table({0}, [](std::uint32_t, const wire::TaskExit&) {});
  const pid_t stranger = start_busy();
  const pid_t other = start_busy();
  reap_all(table, {stranger, other});
  const base::Usage& usage = table.usage();
  EXPECT_GE(usage.cpu_user + usage.cpu_system, 100ms);
  EXPECT_GE(usage.memory_peak, base::Bytes(kMemory));
  EXPECT_LT(usage.memory_peak, base::Bytes(2 * kMemory)) << "the largest one counts";
}

}  // namespace
}  // namespace score::shepherd
