// Holds the program of the switcher's thread: plans and, for each of their segments, the attempts
// that run.
#pragma once

#include "gang/node/switch_plan.hpp"
#include "scored/node/channel/channel_user.hpp"
#include "scored/node/meeting/direct_meetings.hpp"
#include "scored/node/switch/switch_entry.hpp"
#include "scored/node/switch/switch_observer.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace score::node {

// The main thread makes it and hands it over as a whole, and gets it back as a whole. So the
// switcher's thread neither allocates nor frees.
struct SwitchProgram {
  // Names the only attempt that runs on this node until the next turn.
  struct Turn {
    Duration offset{0};  // in the cycle
    std::size_t index = 0;
    SwitchEntry* entry = nullptr;    // null: no attempt
    ChannelUser* network = nullptr;  // null: it has none; set when the program is taken
  };

  struct Part {
    gang::SwitchPlan plan;
    std::vector<char> runs;  // [segment][entry], row-major: not 0 if it runs; unmanaged ones always
                             // run
    std::vector<char> background;  // [entry]
    // [segment][entry]: not 0 if the plan lets it fill. Empty if no entry of the node ever fills.
    std::vector<char> fills;
    WatchPace pace;
    std::vector<Turn> turns;  // in order, neighbours differ; empty: no fast path
  };

  // `plans` are ordered by start; each is in force until the next one starts. Before the first, and
  // under a plan without segments, everything runs.
  SwitchProgram(std::vector<gang::SwitchPlan> plans,
                std::vector<std::shared_ptr<SwitchEntry>> all_entries);

  // Must be called when `networks` has changed.
  void find_shared_channels();

  std::vector<Part> parts;
  std::vector<std::shared_ptr<SwitchEntry>> entries;
  std::vector<std::shared_ptr<ChannelUser>> networks;  // [entry]; null: it has none
  std::vector<char> shares_channel;                    // [entry]: with a different entry
  std::shared_ptr<SwitchObserver> observer;            // may be null
  std::shared_ptr<MeetingChannel> meetings;            // barrier mode; null: through the head
  std::vector<std::shared_ptr<DirectGang>> gangs;      // [entry]; null: it meets through the head
  SwitchProgram* retired_next = nullptr;               // list of the programs given back
};

// Describes a row of a part of the program.
struct SwitchPosition {
  const SwitchProgram::Part* part = nullptr;
  const char* runs = nullptr;   // [entry]; null: everything runs
  const char* fills = nullptr;  // [entry]; null: nothing fills
  std::optional<TimePoint> next;

  [[nodiscard]] bool lets_run(std::size_t entry) const {
    return runs == nullptr || runs[entry] != 0;
  }

  [[nodiscard]] bool lets_fill(std::size_t entry) const {
    return fills != nullptr && fills[entry] != 0;
  }
};

[[nodiscard]] SwitchPosition position_at(const SwitchProgram& program, TimePoint now);
// Returns the role of the entry at this position.
[[nodiscard]] Role role_at(const SwitchProgram& program, std::size_t entry,
                           const SwitchPosition& where);
// Returns true if an attempt that has its turn leaves time to others, or if there is none.
// Otherwise an attempt that shares its processors with those in turn must not fill.
[[nodiscard]] bool leaves_time(const SwitchProgram& program, const SwitchPosition& where);
// Returns true if the entry does not run, and continues at this position.
[[nodiscard]] bool enters(const SwitchProgram& program, std::size_t entry,
                          const SwitchPosition& where);
[[nodiscard]] bool is_managed(const SwitchEntry& entry, const SwitchProgram::Part* part);

}  // namespace score::node
