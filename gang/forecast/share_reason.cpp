// This file is tested by young_test.cpp.
#include "gang/forecast/share_reason.hpp"

#include "base/text/plain.hpp"

#include <algorithm>
#include <vector>

namespace score::gang {

namespace {

struct ShareReason {
  const Tables& tables;
  const Placer& placer;
  const Job& job;  // not a step
  std::vector<std::string> parts{};

  [[nodiscard]] const ClusterConfig& config() const { return tables.config; }

  // The rule of ages matters only while there are both.
  void add_age() {
    const auto& active = tables.jobs.active();
    const bool has_other_age = std::ranges::any_of(active, [&](JobId id) {
      const Job& other = tables.jobs.at(id);
      return !other.is_step() && other.is_young != job.is_young;
    });
    if (!has_other_age) return;
    const std::string young = base::format_duration(config().young_time);
    parts.push_back(
        job.is_young
            ? fmt::format("young (scheduled for less than {}); young jobs have at least half of "
                          "the time",
                          young)
            : fmt::format("older than {}; young jobs have at least half of the time", young));
  }

  void add_order() {
    const Policy::Turn turn = placer.turn_of(job);
    if (!turn.is_in_order || job.is_young) return;
    const std::string limit = base::format_duration(config().long_limit);
    if (turn.ahead) {
      parts.push_back(
          fmt::format("job {} is ahead among the long jobs (time limit over {}), which "
                      "run one after the other",
                      *turn.ahead, limit));
    } else {
      parts.push_back(
          fmt::format("first of the long jobs (time limit over {}), which run one "
                      "after the other, so its weight counts {} times",
                      limit, config().long_weight));
    }
  }

  void add_weight() {
    std::string text = fmt::format("weight {}", job.request.weight);
    if (job.gate_boost > 1) text += fmt::format(" times {} by fair shares", job.gate_boost);
    parts.push_back(std::move(text));
    std::vector<JobId> equals;
    for (const JobId id : tables.jobs.active()) {
      const Job& other = tables.jobs.at(id);
      const bool divides = other.request.equal_share && job.request.equal_share;
      if (id == job.id || other.is_step() || !divides) continue;
      if (other.user == job.user && other.is_young == job.is_young) equals.push_back(id);
    }
    if (equals.empty()) return;
    parts.push_back(equals.size() == 1
                        ? fmt::format("divided equally with job {}", equals.front())
                        : fmt::format("divided equally with {} other jobs", equals.size()));
  }

  // Only the jobs that need its nodes take time from it.
  void add_others() {
    std::vector<RowId> others;
    for (const NodeIndex node : job.cells.nodes) {
      for (const JobId id : placer.on_node(node).jobs) {
        const Job& other = tables.jobs.at(id);
        if (other.is_active() && other.home != job.home) others.push_back(other.home);
      }
    }
    std::ranges::sort(others);
    const auto repeated = std::ranges::unique(others);
    others.erase(repeated.begin(), repeated.end());
    parts.push_back(fmt::format("takes turns with {} on its nodes",
                                base::counted(others.size(), "other slot")));
  }
};

}  // namespace

std::string share_reason(const Tables& tables, const Placer& placer, const Publisher& publisher,
                         const Job& job) {
  const Job& gang = tables.jobs.gang_of(job);
  const auto& rows = gang.time->rows();
  if (!gang.is_active() || rows.empty()) return {};
  const Cycle& cycle = publisher.cycles().newest();
  std::size_t slices = 0;
  for (const RowId row : rows) slices += cycle.slices_of(row);
  if (slices >= cycle.order.size()) return "share 100%: no other job takes turns on its cores";
  ShareReason reason{tables, placer, gang};
  reason.add_age();
  reason.add_order();
  reason.add_weight();
  reason.add_others();
  const double percent =
      100.0 * static_cast<double>(slices) / static_cast<double>(cycle.order.size());
  return fmt::format("share {:.0f}%: {}", percent, fmt::join(reason.parts, "; "));
}

}  // namespace score::gang
