// Runs a task that needs scheduled time and hardly any processor time: many virtual nodes share a
// few processors, so their tasks cannot compute.
//
//   scbench-scheduled SECONDS SLICE_SECONDS
//
// It ends when it has been scheduled for SECONDS. It sleeps for short times and adds up how long
// each sleep took. If one took longer by about a slice or more, although the task did not have to
// wait for a processor, the task was stopped until its gang's next turn. Gangs are stopped for
// whole slices, so the whole slices of a sleep were not the task's, and the rest of it was. It does
// not notice a stop of less than half a slice, where the timetable changed between boundaries.
//
// A sleeping task uses almost no processor time, so the cluster must not give away the turns of
// idle jobs: `scadm set idle off`.
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <optional>
#include <string_view>
#include <sys/prctl.h>
#include <unistd.h>

namespace {

constexpr double kNap_s = 0.005;
constexpr double kMost_s = 1e6;

double monotonic_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

void nap(double seconds) {
  const auto ns = static_cast<std::int64_t>(seconds * 1e9);
  const timespec length{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &length, nullptr);
}

// Reads how long this thread has waited for a processor (the second number of schedstat). The
// kernel counts this time for a running process, not for a stopped one. Returns 0 where the kernel
// does not count it.
class Waiting {
 public:
  Waiting() : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}

  ~Waiting() {
    if (file_ >= 0) close(file_);
  }

  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  [[nodiscard]] double seconds() const {
    std::array<char, 128> text{};
    const ssize_t got = file_ < 0 ? 0 : pread(file_, text.data(), text.size(), 0);
    const std::string_view line(text.data(), got < 0 ? 0 : static_cast<std::size_t>(got));
    const auto words = score::base::split(line, ' ');
    std::int64_t ns = 0;
    if (words.size() < 2) return 0;
    std::from_chars(words[1].data(), words[1].data() + words[1].size(), ns);
    return static_cast<double>(ns) / 1e9;
  }

 private:
  int file_;
};

// Holds a time, and how long the thread had waited by then.
struct Reading {
  double now_s, waited_s;
};

// Reads again if the thread had to wait between the two.
Reading take_reading(const Waiting& waiting) {
  for (;;) {
    const double waited_s = waiting.seconds();
    const double now_s = monotonic_s();
    if (waiting.seconds() == waited_s) return {now_s, waited_s};
  }
}

// Returns how much of a sleep of this length the task was scheduled.
double scheduled_part(double took_s, double waited_s, double slice_s) {
  const double own_s = took_s - waited_s;
  const double stopped_slices = std::round((own_s - kNap_s / 2) / slice_s);
  if (stopped_slices < 1) return took_s;
  return std::clamp(own_s - stopped_slices * slice_s, 0.0, kNap_s) + waited_s;
}

void use(double need_s, double slice_s) {
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  const Waiting waiting;
  double had_s = 0;
  Reading before = take_reading(waiting);
  while (had_s < need_s) {
    nap(std::min(kNap_s, need_s - had_s));
    const Reading after = take_reading(waiting);
    had_s += scheduled_part(after.now_s - before.now_s, after.waited_s - before.waited_s, slice_s);
    before = after;
  }
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  if (!is_whole || !(value > 0 && value <= kMost_s)) return std::nullopt;
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  const auto need_s = argc == 3 ? number(argv[1]) : std::nullopt;
  const auto slice_s = argc == 3 ? number(argv[2]) : std::nullopt;
  if (!need_s || !slice_s) {
    fmt::print(stderr, "usage: scbench-scheduled SECONDS SLICE_SECONDS\n");
    return 2;
  }
  use(*need_s, *slice_s);
  return 0;
}
