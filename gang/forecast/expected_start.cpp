// This file is tested by gang/head/reservations_test.cpp.
#include "gang/forecast/expected_start.hpp"

#include "gang/forecast/forecast.hpp"
#include "gang/schedule/backfill.hpp"

#include <algorithm>

namespace score::gang {

namespace {

constexpr std::size_t kMostAhead = 1'000;  // jobs in the queue that are examined

struct Scene {
  const Tables& tables;
  const Placer& placer;
  const Publisher& publisher;
  TimePoint now{};
  std::uint32_t sharing = 1;  // rows that take turns

  [[nodiscard]] Forecast forecast() const;
  [[nodiscard]] std::optional<TimePoint> end_of(const Job& job) const;
  [[nodiscard]] Forecast::Wanted wanted_by(const Job& job) const;
};

// Returns the end by the limit that is reached first. The remaining scheduled time is multiplied by
// the number of rows that take turns.
std::optional<TimePoint> Scene::end_of(const Job& job) const {
  std::optional<TimePoint> end;
  if (job.request.wall_limit > Duration::zero()) {
    end = job.started.value_or(now) + job.request.wall_limit;
  }
  const Duration limit = job.request.scheduled_limit;
  if (limit > Duration::zero() && job.state != JobState::Suspended) {
    const Duration left = std::max(Duration::zero(), limit - publisher.scheduled(job, now));
    if (left < kNoEstimate) {
      const TimePoint scheduled = now + left * std::max(1U, sharing);
      end = std::min(end.value_or(scheduled), scheduled);
    }
  }
  if (job.state == JobState::Completing) end = std::min(end.value_or(now), now);
  return end;
}

Forecast::Wanted Scene::wanted_by(const Job& job) const {
  Forecast::Wanted wanted;
  wanted.shape = job.shape;
  wanted.rows = placer.rows_for(job) - placer.rows_kept_from(job);
  wanted.is_exclusive = job.is_exclusive();
  wanted.allowed = job.allowed;
  wanted.occupant = placer.occupant(job);
  return wanted;
}

Forecast Scene::forecast() const {
  std::vector<Forecast::Node> nodes;
  for (NodeIndex index = 0; index < tables.nodes.size(); ++index) {
    const Node& node = tables.nodes[index];
    const bool is_usable = node.state == NodeState::Up && !node.drained && node.zombies.empty();
    nodes.push_back({is_usable ? placer.matrix().cores(index) : 0, node.info.memory});
  }
  const std::size_t rows = std::max<std::size_t>(
      placer.matrix().row_count(), tables.config.max_slots + tables.config.urgent_slots);
  Forecast out(now, rows, std::move(nodes), tables.calendar);
  for (const auto& [id, job] : tables.jobs.all()) {
    if (!job.placed || job.is_step()) continue;
    std::vector<Forecast::Part> parts;
    for (std::size_t m = 0; m < job.cells.nodes.size(); ++m) {
      const NodeIndex node = job.cells.nodes[m];
      const auto cores = job.is_exclusive() ? placer.matrix().cores(node)
                                            : static_cast<std::uint32_t>(job.cells.cores[m].size());
      parts.push_back({node, job.overlay() ? 0 : cores, job.shape.memory});
    }
    const auto row = job.is_exclusive() ? std::nullopt : placer.matrix().position(job.home);
    out.occupied(parts, job.overlay() ? std::optional<std::size_t>(0) : row, end_of(job));
  }
  return out;
}

}  // namespace

std::optional<TimePoint> expected_start(const Tables& tables, const Placer& placer,
                                        const Publisher& publisher, const Job& job) {
  const Duration long_limit = tables.config.long_limit;
  const bool has_own_rows = long_limit > Duration::zero() && estimate_of(job) > long_limit &&
                            estimate_of(job) < kNoEstimate;
  if (job.request.held || job.is_step() || job.overlay() || has_own_rows ||
      !job.request.generic.empty() || tables.nodes.is_awaiting() || !placer.is_open(job)) {
    return std::nullopt;
  }
  const auto rows = static_cast<std::uint32_t>(placer.matrix().row_count());
  const Scene scene{tables, placer, publisher, tables.calendar.now(), std::max(1U, rows)};
  Forecast forecast = scene.forecast();
  std::size_t ahead = 0;
  for (const auto& [key, waiting] : placer.waiting()) {
    if (!(key < job.wait)) break;
    const Job& other = *waiting;
    if (other.overlay() || !placer.is_open(other)) continue;
    if (++ahead > kMostAhead || !forecast.put(scene.wanted_by(other))) return std::nullopt;
  }
  const auto start = forecast.put(scene.wanted_by(job));
  return start && *start > scene.now ? start : std::nullopt;  // now: something else blocks it
}

}  // namespace score::gang
