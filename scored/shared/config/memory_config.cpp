#include "scored/shared/config/memory_config.hpp"

#include "base/text.hpp"
#include "base/text/hostlist.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace score {
namespace {

constexpr std::array<std::string_view, 4> kQueueNames = {"exclusive", "high", "normal", "urgent"};
constexpr std::uint32_t kMostPercent = 100;

// Reads a part such as "10%", at least 1 %.
std::optional<std::uint32_t> percent_of(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  const auto percent = parse_number<std::uint32_t>(text.substr(0, text.size() - 1));
  if (!percent || *percent < 1 || *percent > kMostPercent) return std::nullopt;
  return *percent;
}

// Reads a part or a size. Returns false if it is neither.
bool read_part(std::string_view text, std::uint32_t& percent, Bytes& size) {
  if (const auto part = percent_of(text)) {
    percent = *part;
    return true;
  }
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes == Bytes(0)) return false;
  size = *bytes;
  percent = kMostPercent;
  return true;
}

void read_sizes(ConfigSection& section, MemoryConfig& config) {
  std::string swap;
  section.read("swap", swap);
  if (section.has("swap") && !read_part(swap, config.swap_percent, config.swap)) {
    section.refuse("swap",
                   "must be a part of the host's swap or a size, such as \"50%\" or \"16G\"");
  }
  std::string kept;
  section.read("keep_free", kept);
  if (section.has("keep_free") && !read_part(kept, config.keep_free_percent, config.keep_free)) {
    section.refuse("keep_free",
                   "must be a part of the host's memory or a size, such as \"2%\" or \"1G\"");
  }
}

void read_cost(ConfigSection& section, MemoryConfig& config) {
  std::string text;
  section.read("cost", text);
  if (!section.has("cost")) return;
  if (const auto percent = percent_of(text)) {
    config.cost_percent = *percent;
  } else {
    section.refuse("cost", "must be a part of a turn from \"1%\" to \"100%\"");
  }
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
  read_sizes(section, config);
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
