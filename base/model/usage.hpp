#pragma once
// Usage is what the processes of an attempt used: on one node, or summed over the job's nodes.

#include "base/text/json_writer.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

#include <cstdint>

namespace score::base {

struct Usage {
  Duration cpu_user{0};
  Duration cpu_system{0};
  Bytes memory_peak{0};           // resident memory without file cache; of the node that used most
  Bytes memory_peak_sum{0};       // the peaks of all nodes
  std::uint64_t page_faults = 0;  // minor and major ones
  Bytes read{0};                  // from disks and network file systems
  Bytes write{0};
  std::uint64_t pm_messages = 0;  // sent through PM
  Bytes pm_sent{0};
  std::uint64_t switches_voluntary = 0;  // of context
  std::uint64_t switches_involuntary = 0;
  std::uint32_t nodes_unknown = 0;  // nodes that were lost with what was used there
  Bytes paged_out{0};               // of its memory: written to swap while it was parked
  Bytes paged_in{0};                // read back
  Duration parked{0};               // time without its memory

  friend bool operator==(const Usage&, const Usage&) = default;

  // Adds another node. A number from one node is at most kMost, and a sum stays there.
  Usage& operator+=(const Usage& other);
  // Adds a step of the same job. Steps may have run one after the other, so the largest peak
  // counts.
  void add_step(const Usage& step);

  static constexpr std::uint64_t kMost = std::uint64_t{1} << 60U;
};

// Calls visit(key, member) for each member with its name in JSON, in CSV and in the database.
template <class AnyUsage, class Visit>
void each_value(AnyUsage& usage, const Visit& visit) {
  visit("cpu_user_s", usage.cpu_user);
  visit("cpu_system_s", usage.cpu_system);
  visit("memory_peak_bytes", usage.memory_peak);
  visit("memory_peak_sum_bytes", usage.memory_peak_sum);
  visit("page_faults", usage.page_faults);
  visit("read_bytes", usage.read);
  visit("write_bytes", usage.write);
  visit("pm_messages", usage.pm_messages);
  visit("pm_bytes", usage.pm_sent);
  visit("switches_voluntary", usage.switches_voluntary);
  visit("switches_involuntary", usage.switches_involuntary);
  visit("nodes_unknown", usage.nodes_unknown);
  visit("paged_out_bytes", usage.paged_out);
  visit("paged_in_bytes", usage.paged_in);
  visit("parked_s", usage.parked);
}

// Writes the values as members of an open object.
void write_usage(JsonWriter& json, const Usage& usage);

}  // namespace score::base
