// Implements barrier mode, as in SCore-D. At a boundary a node stops the attempts that leave, waits
// until everything they sent has left the machine, and reports that. An attempt that enters waits
// until all nodes of the leaving attempts have reported, so that none of their frames is in flight.
// Then its channel is saved and restored, and this is reported too. The attempt continues when all
// of its nodes have reported.
//
// The nodes of a gang notify each other (direct_meetings.hpp). Where that is not possible, or takes
// long, they report to the head, which answers when all have met.
//
// The thread never waits for other nodes: a waiting attempt is only an entry that step() checks
// when a datagram or the main thread wakes the thread. So a node that does not come costs only its
// own job the slice. Leaving attempts are waited for at most kDrainLimit. A gang that has not met
// within kMeetLimit continues as in clock mode; otherwise a job that is alone would wait forever
// for a late node. An attempt that enters at no boundary of the timetable (it is new, or the
// timetable came late) does not wait.
#pragma once

#include "scored/node/switch/entry_control.hpp"
#include "scored/node/switch/switch_program.hpp"

#include <optional>
#include <utility>

namespace score::node {

// Thread: the switcher's.
class BarrierMeetings {
 public:
  BarrierMeetings(const SwitchClock& clock, EntryControl& control, SwitchCounters& counters)
      : clock_(clock), control_(control), counters_(counters) {}

  // Must be called with false while the head is away and cannot announce that a gang has met.
  // Attempts that do not meet directly are then switched by the clock, and those of `program` (may
  // be null) that wait are continued. The initial value is true.
  void set_meets(bool meets, SwitchProgram* program);

  // Returns true if `reached` of an entry has changed since the last call.
  [[nodiscard]] bool take_change() { return std::exchange(has_change_, false); }

  // Must be called after the attempts that leave were stopped. Attempts that still wait from an
  // earlier boundary and no longer run have lost their slice.
  void drop_waiting(SwitchProgram& program, const SwitchPosition& where);
  // Must be called then: the attempts that left and those that enter begin to wait for their gangs.
  void call(SwitchProgram& program, const SwitchPosition& where, TimePoint due,
            const SwitchRecord& record);
  // Keeps the record of a switch until the attempts that still wait in it are continued. Returns
  // true if it was kept.
  bool keep(const SwitchProgram& program, const SwitchRecord& record);
  // Continues the attempts that need not wait any longer. Returns when it must be called again.
  std::optional<TimePoint> attend(SwitchProgram& program, TimePoint now);

 private:
  [[nodiscard]] bool can_meet(const SwitchProgram& program, std::size_t i) const {
    return meets_ || program.gangs[i] != nullptr;
  }

  void reach(SwitchProgram& program, std::size_t i, base::Meeting meeting,
             SwitchEntry::Boundary boundary);
  void report_to_head(SwitchEntry& entry, base::Meeting meeting, SwitchEntry::Boundary boundary);
  void hear_all(SwitchProgram& program, TimePoint now);
  std::optional<TimePoint> advance_gangs(SwitchProgram& program, TimePoint now);
  void flush_leaving(const SwitchProgram& program, const SwitchRecord& record);
  void call_leaving(SwitchProgram& program, SwitchEntry::Boundary boundary, bool is_awaited);
  std::optional<TimePoint> attend_all(SwitchProgram& program, TimePoint now);
  void attend_one(SwitchProgram& program, std::size_t entry, TimePoint now);

  const SwitchClock& clock_;
  EntryControl& control_;
  SwitchCounters& counters_;
  bool meets_ = true;
  bool has_change_ = false;
  std::optional<SwitchRecord> open_record_;
  Duration ahead_{0};  // cluster time minus the node's, at the last boundary
};

}  // namespace score::node
