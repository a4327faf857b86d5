// Measures how late this machine wakes a thread. It runs one thread per processor, bound to it,
// real-time where that is allowed, which only sleeps until absolute times of the monotonic clock.
// No daemon takes part, so lateness here is the machine's.
//
//   scbench-sleeper PERIOD_NS PHASE_NS SECONDS
//
// The threads wake at all multiples of the period plus the phase. The program prints one object of
// JSON: the lateness, and the skew, which is the latest processor minus the earliest at the same
// time.
#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <optional>
#include <sched.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <thread>
#include <vector>

namespace {

// The priority is below the switchers', so that none of them waits for a thread that only measures.
constexpr int kPriority = 10;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kMostWakes = 10'000'000;
constexpr std::int64_t kMostSeconds = 3'600;

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

// Computes the times to wake up. The first time is known when all threads are ready: on a loaded
// machine it may take half a second until a thread is real-time.
class Times {
 public:
  Times(std::int64_t period, std::int64_t phase, std::size_t wakes, std::size_t threads)
      : period_(period),
        phase_(phase % period),
        wakes_(wakes),
        ready_(static_cast<std::ptrdiff_t>(threads), Begin{this}) {}

  std::size_t wakes() const { return wakes_; }

  void wait_for_all() { ready_.arrive_and_wait(); }

  // The caller must have called wait_for_all().
  std::int64_t at(std::size_t wake) const {
    return first_ + static_cast<std::int64_t>(wake) * period_;
  }

 private:
  struct Begin {
    Times* times;

    void operator()() noexcept {
      times->first_ = (monotonic_ns() / times->period_ + 2) * times->period_ + times->phase_;
    }
  };

  std::int64_t period_, phase_, first_ = 0;
  std::size_t wakes_;
  std::barrier<Begin> ready_;
};

void sleep_until(std::int64_t time) {
  const timespec at{.tv_sec = time / kSecond, .tv_nsec = time % kSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) continue;
}

// Writes each wake-up's lateness in ns into `late`; returns whether the thread was real-time.
bool sleep_on(int processor, Times& times, std::vector<std::int64_t>& late) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  sched_setaffinity(0, sizeof(only), &only);
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  const sched_param wanted{.sched_priority = kPriority};
  const bool is_real_time = sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &wanted) == 0;
  times.wait_for_all();
  for (std::size_t i = 0; i < times.wakes(); ++i) {
    sleep_until(times.at(i));
    late[i] = monotonic_ns() - times.at(i);
  }
  return is_real_time;
}

double percentile_us(std::vector<std::int64_t> values, double part) {
  std::sort(values.begin(), values.end());
  const auto at = static_cast<std::size_t>(part * static_cast<double>(values.size()));
  return static_cast<double>(values[std::min(at, values.size() - 1)]) / 1e3;
}

void print(const std::vector<std::vector<std::int64_t>>& late, bool is_real_time) {
  std::vector<std::int64_t> all;
  std::vector<std::int64_t> skews;
  for (std::size_t i = 0; i < late.front().size(); ++i) {
    std::int64_t least = late.front()[i];
    std::int64_t most = least;
    for (const auto& one : late) {
      all.push_back(one[i]);
      least = std::min(least, one[i]);
      most = std::max(most, one[i]);
    }
    skews.push_back(most - least);
  }
  fmt::print(
      "{{\"real_time\": {}, \"wakes\": {}, \"wake_p50_us\": {:.1f}, \"wake_p99_us\": {:.1f}, "
      "\"skew_p50_us\": {:.1f}, \"skew_p99_us\": {:.1f}}}\n",
      is_real_time, all.size(), percentile_us(all, 0.5), percentile_us(all, 0.99),
      percentile_us(skews, 0.5), percentile_us(skews, 0.99));
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<int> own_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::vector<int> all;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed)) all.push_back(i);
  }
  return all;
}

int run(std::int64_t period, std::int64_t phase, std::int64_t seconds) {
  if (seconds > kMostSeconds) return 2;
  const auto count = seconds * kSecond / period;
  if (count < 1 || count > kMostWakes) return 2;
  const auto processors = own_processors();
  Times times(period, phase, static_cast<std::size_t>(count), processors.size());
  std::vector<std::vector<std::int64_t>> late(processors.size(),
                                              std::vector<std::int64_t>(times.wakes()));
  std::vector<char> is_real_time(processors.size());
  mlockall(MCL_CURRENT | MCL_FUTURE);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < processors.size(); ++i) {
    threads.emplace_back(
        [&, i] { is_real_time[i] = sleep_on(processors[i], times, late[i]) ? 1 : 0; });
  }
  for (auto& thread : threads) thread.join();
  print(late, std::all_of(is_real_time.begin(), is_real_time.end(), [](char c) { return c != 0; }));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::int64_t> numbers;
  for (int i = 1; i < argc; ++i) {
    const auto value = number(argv[i]);
    if (!value || *value < 0) break;
    numbers.push_back(*value);
  }
  const bool is_whole = argc == 4 && numbers.size() == 3 && numbers[0] > 0;
  const int status = is_whole ? run(numbers[0], numbers[1], numbers[2]) : 2;
  if (status != 0) fmt::print(stderr, "usage: scbench-sleeper PERIOD_NS PHASE_NS SECONDS\n");
  return status;
}
