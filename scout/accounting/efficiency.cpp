#include "scout/accounting/efficiency.hpp"

#include "scout/session/usage_words.hpp"

#include <algorithm>
#include <cmath>

namespace score::scout {

namespace {

constexpr double kLowCpu = 0.5;
constexpr double kLowMemory = 0.5;
constexpr double kFullMemory = 0.95;
constexpr double kRoom = 1.2;  // of memory, above what was used
constexpr std::uint64_t kMega = 1 << 20U;

std::optional<double> ratio(double part, double whole) {
  return whole > 0 ? std::optional(part / whole) : std::nullopt;
}

// Returns a request with some room, in whole megabytes.
std::string request_for(Bytes used) {
  const double megabytes = static_cast<double>(used.value()) * kRoom / static_cast<double>(kMega);
  return fmt::format("{}M", static_cast<std::uint64_t>(std::ceil(std::max(megabytes, 1.0))));
}

}  // namespace

Efficiency efficiency_of(const wire::JobStatus& job, const base::Usage& usage) {
  const double scheduled = static_cast<double>(job.scheduled_ns());
  const double used = static_cast<double>((usage.cpu_user + usage.cpu_system).count());
  Efficiency out;
  out.cpu = ratio(used, scheduled * job.cores());
  out.memory = ratio(static_cast<double>(usage.memory_peak.value()),
                     static_cast<double>(job.memory_per_node_bytes()));
  out.time = ratio(scheduled, static_cast<double>(job.scheduled_limit_ns()));
  if (out.cpu && *out.cpu < kLowCpu && job.cores() > 1) {
    const double busy = std::ceil(used / std::max(scheduled, 1.0));
    out.advice.push_back(fmt::format("advice: {:.0f} of {} cores would have been enough",
                                     std::max(busy, 1.0), job.cores()));
  }
  if (out.memory && *out.memory < kLowMemory) {
    out.advice.push_back(
        fmt::format("advice: --mem {} would have been enough", request_for(usage.memory_peak)));
  } else if (out.memory && *out.memory > kFullMemory) {
    out.advice.push_back(fmt::format("advice: request more memory, such as --mem {}",
                                     request_for(usage.memory_peak)));
  }
  return out;
}

}  // namespace score::scout
