#pragma once
// What users and operators may change, as one value, whichever way it came: command line, web page,
// login node or a reload of the configuration. Pure.

#include "base/ids.hpp"
#include "base/time.hpp"
#include "monitor/model/action.hpp"
#include "proto/client.pb.h"
#include "proto/frames/frames.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace score::head {

struct SetQuantum {
  Duration quantum{0};
};

struct SetSlots {
  std::uint32_t slots = 0;
};

struct SetIdleDetection {
  bool on = false;
};

struct SetFill {
  bool on = false;
};

struct DrainNodes {
  std::vector<std::string> nodes;  // host lists
  std::string reason;
  bool resume = false;  // end an earlier drain instead
};

struct ReserveNodes {
  wire::Reservation wanted;  // Admin gives it a name if it has none
  bool ends_jobs = false;    // those that are still there at its start
};

struct RemoveReservation {
  std::string name;
};

struct ReloadConfiguration {};

struct ShutDown {};  // ends every job, then the head

struct SignalJob {
  JobId job;
  int signal = 0;
};

struct CancelJob {
  JobId job;
  std::optional<Duration> grace;  // none: the configuration's
  bool wait = false;              // answered when the end is on disk
  std::string tasks{};            // of an array, only these; empty: all of it
};

struct ControlJob {
  using What = wire::ControlJob::What;

  JobId job;
  What what{};
  std::uint32_t weight = 0;
  std::int32_t priority = 0;
};

using AdminCommand = std::variant<SetQuantum, SetSlots, SetIdleDetection, SetFill, DrainNodes,
                                  ReserveNodes, RemoveReservation, ReloadConfiguration, ShutDown,
                                  SignalJob, CancelJob, ControlJob>;

[[nodiscard]] AdminCommand from_wire(const wire::SetQuantum& message);
[[nodiscard]] AdminCommand from_wire(const wire::SetSlots& message);
[[nodiscard]] AdminCommand from_wire(const wire::SetIdleDetection& message);
[[nodiscard]] AdminCommand from_wire(const wire::SetFill& message);
[[nodiscard]] AdminCommand from_wire(const wire::DrainNodes& message);
[[nodiscard]] AdminCommand from_wire(const wire::Reserve& message);
[[nodiscard]] AdminCommand from_wire(const wire::Unreserve& message);
[[nodiscard]] AdminCommand from_wire(const wire::Reload& message);
[[nodiscard]] AdminCommand from_wire(const wire::Shutdown& message);
[[nodiscard]] AdminCommand from_wire(const wire::SignalJob& message);
[[nodiscard]] AdminCommand from_wire(const wire::CancelJob& message);
[[nodiscard]] AdminCommand from_wire(const wire::ControlJob& message);
// Of the web page. Logout is none.
[[nodiscard]] std::optional<AdminCommand> from_action(const monitor::Action& action);

// The frame that a command line sends for it: its row of the permission table.
[[nodiscard]] proto::FrameType frame_of(const AdminCommand& command);
// For the audit and for refusals: "set quantum", "cancel" ...
[[nodiscard]] std::string_view action_of(const AdminCommand& command);
// What it is set to, or done with: "50ms", "grace 5s"; may be empty.
[[nodiscard]] std::string value_of(const AdminCommand& command);
// 0: it is not about a job.
[[nodiscard]] JobId job_of(const AdminCommand& command);
// The line for the user who gave the command; may be empty.
[[nodiscard]] std::string reply_of(const AdminCommand& command);

}  // namespace score::head
