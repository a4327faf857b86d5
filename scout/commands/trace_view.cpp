// This file computes the skew between nodes. A boundary is one instant of cluster time, so records
// of different nodes belong together by it. Each node's timestamps are converted to cluster time by
// its own offset. Boundaries that differ by less than the clocks' error are the same one; they are
// found by the nodes' common (epoch, due) rounded to 0.5 ms (the smallest quantum is 1 ms).
#include "scout/commands/trace_view.hpp"

#include "base/text/hostlist.hpp"
#include "base/text/plain.hpp"
#include "proto/trace/trace_json.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace score::scout {

namespace {

double percentile_us(std::vector<std::int64_t>& values, double part) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::size_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return static_cast<double>(values[at]) / 1e3;
}

std::string figures(std::string_view label, std::vector<std::int64_t> values) {
  if (values.empty()) return fmt::format("{:<22} none\n", label);
  return fmt::format("{:<22} p50 {:>8.1f} us  p99 {:>8.1f} us  max {:>8.1f} us  ({})\n", label,
                     percentile_us(values, 0.5), percentile_us(values, 0.99),
                     percentile_us(values, 1.0), values.size());
}

// Prints the phases of the switches in which a channel changed its job.
std::string network_figures(const wire::Trace& trace) {
  std::vector<std::int64_t> guard, save, restore;
  std::uint64_t sent = 0, resent = 0;
  for (const auto& node : trace.nodes()) {
    sent += node.channels().frames_sent();
    resent += node.channels().frames_resent();
    for (const auto& record : node.switches()) {
      if (record.restored_ns() <= record.stopped_ns()) continue;
      guard.push_back(record.guarded_ns() - record.stopped_ns());
      save.push_back(record.saved_ns() - record.guarded_ns());
      restore.push_back(record.restored_ns() - record.saved_ns());
    }
  }
  std::string page;
  if (!guard.empty()) {
    page += figures("channel: guard", std::move(guard));
    page += figures("channel: save", std::move(save));
    page += figures("channel: restore", std::move(restore));
  }
  if (sent > 0) page += fmt::format("{:<22} {} of {} sent\n", "frames resent", resent, sent);
  return page;
}

struct StopSpan {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::size_t nodes = 0;
};

// Returns the time between the first node and the last, for each boundary at which at least two
// nodes stopped something.
std::vector<std::int64_t> stop_skews(const wire::Trace& trace) {
  constexpr std::int64_t kHalfQuantum = 500'000;
  std::map<std::pair<std::uint64_t, std::int64_t>, StopSpan> boundaries;
  for (const auto& node : trace.nodes()) {
    for (const auto& record : node.switches()) {
      if (record.left_size() == 0) continue;
      const std::int64_t due = record.due_ns() + node.clock_offset_ns();
      const std::int64_t stopped = due + record.stopped_ns();
      auto& span = boundaries[{record.epoch(), (due + kHalfQuantum / 2) / kHalfQuantum}];
      span.first = span.nodes == 0 ? stopped : std::min(span.first, stopped);
      span.last = span.nodes == 0 ? stopped : std::max(span.last, stopped);
      ++span.nodes;
    }
  }
  std::vector<std::int64_t> skews;
  for (const auto& [boundary, span] : boundaries) {
    if (span.nodes > 1) skews.push_back(span.last - span.first);
  }
  return skews;
}

// Returns the share of the nodes' time that switches took, between a node's first boundary and its
// last. A switch lasts from waking to continuing the last job. Losses inside tasks (caches,
// wake-ups) are not included.
std::string time_in_switches(const wire::Trace& trace) {
  std::int64_t lost = 0;
  std::int64_t all = 0;
  for (const auto& node : trace.nodes()) {
    if (node.switches_size() < 2) continue;
    for (const auto& record : node.switches()) lost += record.done_ns() - record.woke_ns();
    all += node.switches().rbegin()->due_ns() - node.switches().begin()->due_ns();
  }
  if (all <= 0) return "";
  return fmt::format("{:<22} {:.3f} % of the nodes' time\n", "overhead of switching",
                     100 * static_cast<double>(lost) / static_cast<double>(all));
}

}  // namespace

std::string trace_json(const wire::Trace& trace) {
  return proto::trace_json(trace);
}

std::string trace_page(const wire::Trace& trace) {
  std::vector<std::int64_t> woke, stopped, whole;
  for (const auto& node : trace.nodes()) {
    for (const auto& record : node.switches()) {
      woke.push_back(record.woke_ns());
      stopped.push_back(record.stopped_ns() - record.woke_ns());
      whole.push_back(record.done_ns() - record.woke_ns());
    }
  }
  std::string page =
      fmt::format("{}, {}\n", counted(static_cast<std::uint64_t>(trace.nodes_size()), "node"),
                  whole.size() == 1 ? "1 switch" : fmt::format("{} switches", whole.size()));
  page += figures("woke after the boundary", std::move(woke));
  page += figures("stopping", std::move(stopped));
  page += figures("whole switch", std::move(whole));
  page += figures("stop skew of nodes", stop_skews(trace));
  page += network_figures(trace);
  page += time_in_switches(trace);
  if (trace.silent_nodes_size() > 0) {
    const std::vector<std::string> names(trace.silent_nodes().begin(), trace.silent_nodes().end());
    page += fmt::format("no trace from {}: no answer\n", compress_hostlist(names));
  }
  return page;
}

}  // namespace score::scout
