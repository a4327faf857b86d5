#include "scored/node/attempts/attempt_usage.hpp"

#include "pmlib/core/segment.hpp"

#include <algorithm>

namespace score::node {

namespace {

void add_network(base::Usage& usage, const ContextSet& contexts) {
  for (const UniqueFd& context : contexts) {
    pm::SegmentSummary summary;
    if (pm::read_summary(context.get(), summary) != 0) continue;
    const auto& counters = summary.counters;
    base::Usage sent;
    sent.pm_messages = std::min(counters.messages_sent, base::Usage::kMost);
    sent.pm_sent = Bytes(std::min(counters.bytes_sent, base::Usage::kMost)) +
                   Bytes(std::min(counters.rma_bytes_written, base::Usage::kMost));
    usage += sent;
  }
}

}  // namespace

base::Usage usage_of(const AttemptParts& parts, const Attempt& attempt, base::Usage reaped) {
  Bytes peak = std::max(reaped.memory_peak, attempt.memory_peak);
  if (parts.cgroups != nullptr) {
    const CgroupCounters counters = parts.cgroups->counters(attempt.id);
    if (counters.cpu_user + counters.cpu_system > reaped.cpu_user + reaped.cpu_system) {
      reaped.cpu_user = counters.cpu_user;
      reaped.cpu_system = counters.cpu_system;
    }
    // Memory that tasks share counts for each of them at the shepherd.
    if (counters.charged_peak)
      peak = peak > Bytes(0) ? std::min(peak, *counters.charged_peak) : *counters.charged_peak;
  }
  reaped.memory_peak = peak;
  reaped.memory_peak_sum = peak;
  if (const auto contexts = parts.networks.contexts().of(attempt.id))
    add_network(reaped, *contexts);
  return reaped;
}

void sample_memory(const AttemptParts& parts, Attempt& attempt) {
  if (parts.cgroups == nullptr || attempt.tasks.empty() || attempt.is_retired) return;
  const Bytes memory = parts.cgroups->memory(attempt.id);
  attempt.memory_peak = std::max(attempt.memory_peak, memory);
  attempt.memory_lately = std::max(attempt.memory_lately, memory);
}

}  // namespace score::node
