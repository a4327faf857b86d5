#pragma once
// Reports the events that administrators search for: who changed what, jobs that start and end,
// nodes that come and go, late switches. In systemd's journal each event has its own MESSAGE_ID,
// and the values of the call are fields. So `journalctl JOB_ID=7` finds it, and `journalctl -x`
// explains it from deploy/systemd/scored.catalog. Without a journal an event is a line of
// base/os/log.hpp.
//
//   report(Event::JobStarted, kv("job", id), kv("user", name));

#include "base/os/log.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace score {

enum class Event : std::uint8_t {
  CommandDone,     // a user's or operator's command was carried out
  QuantumSet,      // the same, and it set the quantum
  CommandRefused,  // a command was refused for lack of permission
  JobStarted,
  JobEnded,
  NodeUp,    // and not drained
  NodeDown,  // declared dead
  HeadStarted,
  HeadStopping,
  SwitchLate,  // a gang switch of a node
  NodeStarted,
  NodeStopping,
  NodeJoined,  // the head has welcomed the node
  HeadLost,    // the node's connection to the head has ended
  JobDeadlocked,
  // These are events of a cluster with two heads.
  HeadInCharge,     // this head has taken charge
  HeadStoodDown,    // it is no longer in charge
  FollowerCurrent,  // the other head has every change
  FollowerLost,     // it lacks changes from now on
};

struct EventValue {
  std::string_view key;
  std::string text;
};

// "JOB_ID" and "7". Values hold no control characters.
using JournalField = std::pair<std::string_view, std::string>;

// This is the part of the template below that does not depend on types.
void report_values(Event event, std::span<const EventValue> values);

// Logs the event at its level, or sends it to the journal if there is one. Keys that are not fields
// of the journal appear only in the message.
template <typename... Ts>
void report(Event event, const LogField<Ts>&... values) {
  const std::array<EventValue, sizeof...(Ts)> texts = {
      EventValue{values.key, fmt::format("{}", values.value)}...};
  report_values(event, texts);
}

// Receives the fields of every event: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, MESSAGE_ID, and those
// of JOB_ID, NODE, SLOT, RANK, USER_NAME, ACTION, VALUE, VIA, STATE, REASON, LATE_US and HELD_BACK
// that have a value. Returns false if the event could not be delivered; it is then logged. An empty
// function removes the sink. Must not be called while other threads report.
using JournalSink = std::function<bool(std::span<const JournalField>)>;
void set_journal_sink(JournalSink sink);

}  // namespace score
