#include "scout/session/usage_words.hpp"

#include "base/text/plain.hpp"
#include "scout/session/words.hpp"

namespace score::scout {

std::vector<std::string> usage_lines(const base::Usage& usage) {
  std::vector<std::string> lines{
      fmt::format("{:.1f} s of processor time (user {:.1f}, system {:.1f})",
                  to_seconds((usage.cpu_user + usage.cpu_system).count()),
                  to_seconds(usage.cpu_user.count()), to_seconds(usage.cpu_system.count())),
      fmt::format("{} of memory at most on a node, {} on all", short_bytes(usage.memory_peak),
                  short_bytes(usage.memory_peak_sum)),
      fmt::format("{} read, {} written, {} page faults", short_bytes(usage.read),
                  short_bytes(usage.write), usage.page_faults)};
  if (usage.pm_messages > 0) {
    lines.push_back(fmt::format("{} messages with {} sent through PM", usage.pm_messages,
                                short_bytes(usage.pm_sent)));
  }
  if (usage.paged_out > Bytes(0)) {
    lines.push_back(fmt::format("{} written to swap, {} read back, {:.1f} s without its memory",
                                short_bytes(usage.paged_out), short_bytes(usage.paged_in),
                                to_seconds(usage.parked.count())));
  }
  if (usage.nodes_unknown > 0) {
    lines.push_back(
        fmt::format("unknown on {}, which the cluster lost", counted(usage.nodes_unknown, "node")));
  }
  return lines;
}

std::string short_bytes(Bytes bytes) {
  constexpr std::string_view kUnits = "BKMGTPE";
  double number = static_cast<double>(bytes.value());
  std::size_t unit = 0;
  while (number >= 1023.5 && unit + 1 < kUnits.size()) {
    number /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{}", bytes.value());
  return fmt::format("{:.{}f}{}", number, number < 9.95 ? 1 : 0, kUnits[unit]);
}

}  // namespace score::scout
