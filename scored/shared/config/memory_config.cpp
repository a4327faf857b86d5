#include "scored/shared/config/memory_config.hpp"

#include "base/text.hpp"
#include "base/text/hostlist.hpp"

#include <algorithm>
#include <array>

namespace score {
namespace {

constexpr std::array<std::string_view, 4> kQueueNames = {"exclusive", "high", "normal", "urgent"};
constexpr std::uint32_t kMostPercent = 100;

void read_swap(ConfigSection& section, MemoryConfig& config) {
  std::string text;
  section.read("swap", text);
  if (!section.has("swap")) return;
  const auto digits = std::string_view(text).substr(0, text.empty() ? 0 : text.size() - 1);
  const auto percent = parse_number<std::uint32_t>(digits);
  if (text.ends_with('%') && percent && *percent >= 1 && *percent <= kMostPercent) {
    config.swap_percent = *percent;
    return;
  }
  const auto size = parse_bytes(text);
  if (size && *size > Bytes(0)) {
    config.swap = *size;
    config.swap_percent = kMostPercent;
    return;
  }
  section.refuse("swap", "must be a part of the host's swap or a size, such as \"50%\" or \"16G\"");
}

// Reads a part such as "10%", at least 1 %.
void read_cost(ConfigSection& section, MemoryConfig& config) {
  std::string text;
  section.read("cost", text);
  if (!section.has("cost")) return;
  const auto digits = std::string_view(text).substr(0, text.empty() ? 0 : text.size() - 1);
  const auto percent = parse_number<std::uint32_t>(digits);
  if (text.ends_with('%') && percent && *percent >= 1 && *percent <= kMostPercent) {
    config.cost_percent = *percent;
    return;
  }
  section.refuse("cost", "must be a part of a turn from \"1%\" to \"100%\"");
}

void read_queues(ConfigSection& section, MemoryConfig& config) {
  std::vector<std::string> names;
  section.read("no_park_queues", names);
  for (const std::string& name : names) {
    const auto found = std::ranges::find(kQueueNames, name);
    if (found == kQueueNames.end()) {
      return section.refuse("no_park_queues", "use some of exclusive, high, normal, urgent");
    }
    config.unparked_queues.push_back(static_cast<Queue>(found - kQueueNames.begin()));
  }
}

}  // namespace

MemoryConfig read_memory_config(ConfigSection& root) {
  MemoryConfig config;
  ConfigSection section = root.section("memory");
  section.read_choice("share", config.share,
                      {{"never", MemoryShare::Never},
                       {"urgent", MemoryShare::Urgent},
                       {"always", MemoryShare::Always}});
  read_swap(section, config);
  section.read("least_rate", config.least_rate, Bytes(1), Bytes(1ULL << 40U));
  read_cost(section, config);
  section.read("turn_max", config.turn_max, std::chrono::seconds(1), std::chrono::hours(24));
  section.read("idle_after", config.idle_after, Duration(0), std::chrono::hours(24 * 365));
  read_queues(section, config);
  section.read("no_park_partitions", config.unparked_partitions);
  for (const std::string& name : config.unparked_partitions) {
    if (is_host_name(name)) continue;
    section.refuse("no_park_partitions", "must be names of partitions");
    break;
  }
  return config;
}

}  // namespace score
