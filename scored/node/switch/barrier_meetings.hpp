// Barrier mode, as SCore-D switches: at a boundary a node stops the attempts that leave and waits
// until everything they sent has left the machine; then it reports so. An attempt that enters waits
// until all nodes of those that leave have done that, so that none of their frames is in flight;
// then its channel is saved and restored, and this is reported too. It goes on when all of its
// nodes have.
//
// The nodes of a gang tell each other (direct_meetings.hpp); where that is not possible, or takes
// long, they report to the head, which answers when all have come.
//
// The thread never waits for other nodes meanwhile: a waiting attempt is only an entry that step()
// looks at when a datagram or the main thread wakes it. So a node that does not come costs its own
// job the slice. Leaving attempts are waited for at most kDrainLimit, and a gang that has not met
// within kMeetLimit goes on as in clock mode: otherwise a job that is alone would wait for ever for
// a node that came late. An attempt that enters at no boundary of the timetable (it is new, or the
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

  // False while the head is away and cannot say that a gang has met: until then attempts that do
  // not meet directly are switched by the clock, and those of `program` (may be null) that wait go
  // on. At first true.
  void set_meets(bool meets, SwitchProgram* program);

  // A entry's `reached` has changed since the last call.
  [[nodiscard]] bool take_change() { return std::exchange(has_change_, false); }

  // After the attempts that leave were stopped: those that still wait from an earlier boundary and
  // do not run any more have lost their slice.
  void drop_waiting(SwitchProgram& program, const SwitchPosition& where);
  // Then: the attempts that left and those that enter begin to wait for their gangs.
  void call(SwitchProgram& program, const SwitchPosition& where, TimePoint due,
            const SwitchRecord& record);
  // The record of a switch in which an attempt still waits is kept until it has gone on. True:
  // kept.
  bool keep(const SwitchProgram& program, const SwitchRecord& record);
  // Lets go the attempts that need not wait any longer. Returns when it must be called again.
  std::optional<TimePoint> attend(SwitchProgram& program, TimePoint now);

 private:
  [[nodiscard]] bool can_meet(const SwitchProgram& program, std::size_t i) const {
    return meets_ || program.gangs[i] != nullptr;
  }

  void reach(SwitchProgram& program, std::size_t i, base::Meeting meeting,
             SwitchEntry::Boundary boundary);
  void tell_head(SwitchEntry& entry, base::Meeting meeting, SwitchEntry::Boundary boundary);
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
  Duration ahead_{0};  // cluster time less the node's, at the last boundary
};

}  // namespace score::node
