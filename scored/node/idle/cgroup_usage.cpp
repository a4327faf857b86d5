#include "scored/node/idle/cgroup_usage.hpp"

#include "scored/node/kernel/kernel_call.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fcntl.h>
#include <string_view>

namespace score::node {

namespace {

using namespace std::chrono_literals;

constexpr std::string_view kUsage = "usage_usec ";  // of cpu.stat
constexpr std::string_view kWaited = " total=";     // of cpu.pressure, in its line "some"
constexpr std::int64_t kMostMicroseconds = Duration::max() / 4us;

// Returns the microseconds that follow `key` in the first line; < 0 if there are none.
[[gnu::hot]] Duration number_after(int file, std::string_view key) {
  std::array<char, 128> text;
  const long got = kernel_call(SYS_pread64, file, address_of(text.data()), text.size(), 0);
  std::string_view line(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  line = line.substr(0, line.find('\n'));
  const auto at = line.find(key);
  if (at == std::string_view::npos) return Duration{-1};
  std::int64_t microseconds = -1;
  const auto parsed =
      std::from_chars(line.data() + at + key.size(), line.data() + line.size(), microseconds);
  if (parsed.ec != std::errc() || microseconds > kMostMicroseconds) return Duration{-1};
  return std::chrono::microseconds{microseconds};
}

}  // namespace

Result<std::unique_ptr<CpuUsage>> CgroupUsage::open(const std::string& cgroup) {
  auto stat = open_file(cgroup + "/cpu.stat", O_RDONLY);
  if (!stat) return stat.error();
  auto pressure = open_file(cgroup + "/cpu.pressure", O_RDONLY);
  return std::make_unique<CgroupUsage>(*std::move(stat),
                                       pressure ? *std::move(pressure) : UniqueFd());
}

[[gnu::hot]] Duration CgroupUsage::used() noexcept {
  return number_after(stat_.get(), kUsage);
}

[[gnu::hot]] Duration CgroupUsage::waited() noexcept {
  return pressure_ ? std::max(number_after(pressure_.get(), kWaited), Duration{0}) : Duration{0};
}

[[gnu::hot]] Duration CgroupUsage::used_by(pid_t process) noexcept {
  return kernel_time(cpu_clock_of(process));
}

}  // namespace score::node
