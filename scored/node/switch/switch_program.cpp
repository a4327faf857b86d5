#include "scored/node/switch/switch_program.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace score::node {

namespace {

bool contains(const std::vector<AttemptId>& sorted, AttemptId id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

std::vector<char> rows(const gang::SwitchPlan& plan,
                       const std::vector<std::shared_ptr<SwitchEntry>>& entries) {
  std::vector<char> runs;
  runs.reserve(plan.segments.size() * entries.size());
  for (const auto& segment : plan.segments) {
    for (const auto& entry : entries) {
      const bool is_running =
          !contains(plan.managed, entry->attempt) || contains(segment.jobs, entry->attempt);
      runs.push_back(is_running ? 1 : 0);
    }
  }
  return runs;
}

// An attempt fills only in segments in which all jobs may fill too, so that both users have
// consented.
std::vector<char> fill_rows(const gang::SwitchPlan& plan,
                            const std::vector<std::shared_ptr<SwitchEntry>>& entries) {
  std::vector<char> fills;
  bool is_any = false;
  for (const auto& segment : plan.segments) {
    const bool all_may =
        std::ranges::all_of(segment.jobs, [&](AttemptId job) { return contains(plan.fill, job); });
    for (const auto& entry : entries) {
      const AttemptId id = entry->attempt;
      const bool may = all_may && entry->can_fill && contains(plan.fill, id) &&
                       contains(plan.managed, id) && !contains(segment.jobs, id);
      fills.push_back(may ? 1 : 0);
      is_any = is_any || may;
    }
  }
  return is_any ? fills : std::vector<char>();
}

// Returns the only entry that runs in a row; < 0 if none runs; nullopt if several do.
std::optional<std::ptrdiff_t> only_one(std::span<const char> row) {
  const auto is_running = [](char runs) { return runs != 0; };
  const auto first = std::find_if(row.begin(), row.end(), is_running);
  if (first == row.end()) return -1;
  if (std::find_if(first + 1, row.end(), is_running) != row.end()) return std::nullopt;
  return first - row.begin();
}

std::vector<SwitchProgram::Turn> turns_of(const gang::SwitchPlan& plan,
                                          const std::vector<std::shared_ptr<SwitchEntry>>& entries,
                                          std::span<const char> runs) {
  std::vector<SwitchProgram::Turn> turns;
  const auto knows = [&](const auto& entry) { return contains(plan.managed, entry->attempt); };
  if (plan.slice > Duration{0} || !std::all_of(entries.begin(), entries.end(), knows)) return {};
  for (std::size_t i = 0; i < plan.segments.size(); ++i) {
    const auto entry = only_one(runs.subspan(i * entries.size(), entries.size()));
    if (!entry) return {};
    SwitchProgram::Turn turn{.offset = plan.segments[i].offset};
    if (*entry >= 0) turn.index = static_cast<std::size_t>(*entry);
    if (*entry >= 0) turn.entry = entries[turn.index].get();
    if (turns.empty() || turns.back().entry != turn.entry) turns.push_back(turn);
  }
  if (turns.size() > 1 && turns.front().entry == turns.back().entry) turns.erase(turns.begin());
  return turns.size() > 1 ? turns : std::vector<SwitchProgram::Turn>();
}

}  // namespace

SwitchProgram::SwitchProgram(std::vector<gang::SwitchPlan> plans,
                             std::vector<std::shared_ptr<SwitchEntry>> all_entries)
    : entries(std::move(all_entries)),
      networks(entries.size()),
      shares_channel(entries.size()),
      gangs(entries.size()) {
  for (auto& plan : plans) {
    auto runs = rows(plan, entries);
    std::vector<char> background;
    for (const auto& entry : entries)
      background.push_back(contains(plan.background, entry->attempt));
    const WatchPace pace = pace_of(plan);
    auto fills = fill_rows(plan, entries);
    auto turns = turns_of(plan, entries, runs);
    parts.push_back({std::move(plan), std::move(runs), std::move(background), std::move(fills),
                     pace, std::move(turns)});
  }
}

void SwitchProgram::find_shared_channels() {
  const auto shares = [this](std::size_t a, std::size_t b) {
    return a != b && networks[a] && networks[b] && networks[a]->shares_with(*networks[b]);
  };
  for (std::size_t i = 0; i < networks.size(); ++i) {
    shares_channel[i] = 0;
    for (std::size_t k = 0; k < networks.size(); ++k) {
      if (shares(i, k)) shares_channel[i] = 1;
    }
  }
}

[[gnu::hot]] SwitchPosition position_at(const SwitchProgram& program, TimePoint now) {
  SwitchPosition where;
  const auto& parts = program.parts;
  const auto later = std::find_if(parts.begin(), parts.end(),
                                  [now](const auto& part) { return part.plan.start > now; });
  if (later != parts.end()) where.next = later->plan.start;
  if (later == parts.begin()) return where;
  where.part = &*(later - 1);
  const auto& plan = where.part->plan;
  const auto* running = gang::running_at(plan, now);
  if (running == nullptr) return where;
  for (std::size_t i = 0; i < plan.segments.size(); ++i) {
    if (&plan.segments[i].jobs != running) continue;
    where.runs = where.part->runs.data() + i * program.entries.size();
    if (!where.part->fills.empty()) {
      where.fills = where.part->fills.data() + i * program.entries.size();
    }
  }
  if (const auto next = gang::next_switch(plan, now);
      next && (!where.next || next->at < *where.next)) {
    where.next = next->at;
  }
  return where;
}

[[gnu::hot]] Role role_at(const SwitchProgram& program, std::size_t entry,
                          const SwitchPosition& where) {
  if (program.entries[entry]->watch.is_held()) return Role::Stopped;
  if (where.lets_run(entry)) return Role::Runs;
  return where.lets_fill(entry) && program.shares_channel[entry] == 0 ? Role::Fills : Role::Stopped;
}

[[gnu::hot]] bool leaves_time(const SwitchProgram& program, const SwitchPosition& where) {
  bool is_any = false;
  for (std::size_t i = 0; i < program.entries.size(); ++i) {
    const SwitchEntry& entry = *program.entries[i];
    if (!where.lets_run(i) || !is_managed(entry, where.part)) continue;
    if (entry.watch.leaves_time()) return true;
    is_any = true;
  }
  return !is_any;
}

[[gnu::hot]] bool enters(const SwitchProgram& program, std::size_t entry,
                         const SwitchPosition& where) {
  const SwitchEntry& entering = *program.entries[entry];
  return entering.role != Role::Runs && entering.waits_for == 0 && !entering.watch.is_held() &&
         where.lets_run(entry);
}

[[gnu::hot]] bool is_managed(const SwitchEntry& entry, const SwitchProgram::Part* part) {
  return part != nullptr && contains(part->plan.managed, entry.attempt);
}

}  // namespace score::node
