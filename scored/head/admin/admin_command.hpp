#pragma once
// An AdminCommand is a change that users and operators may request, as one value. It does not
// depend on the source: command line, web page, login node or a reload of the configuration. This
// header is pure.

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

struct ChangeSetting {
  std::string name, value;  // as users write them: "quantum", "50ms"
};

struct ChangeNodes {
  std::vector<std::string> nodes;  // names
  bool removes = false;            // takes the nodes out of the cluster; else adds them
};

struct DrainNodes {
  std::vector<std::string> nodes;  // hostlists
  std::string reason;
  bool resume = false;  // end an earlier drain instead
};

struct ReserveNodes {
  wire::Reservation wanted;  // Admin gives it a name if it has none
  bool ends_jobs = false;    // end jobs that still run there when it starts
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
  std::optional<Duration> grace;  // none: the configured grace
  bool wait = false;              // reply when the end is on disk
  std::string tasks{};            // tasks of an array; empty: the whole job
};

struct ControlJob {
  using What = wire::ControlJob::What;

  JobId job;
  What what{};
  std::uint32_t weight = 0;
  std::int32_t priority = 0;
};

struct ChangeJob {
  JobId job;
  wire::ChangeJob wanted;  // read_change() examines it
};

using AdminCommand =
    std::variant<ChangeSetting, ChangeNodes, DrainNodes, ReserveNodes, RemoveReservation,
                 ReloadConfiguration, ShutDown, SignalJob, CancelJob, ControlJob, ChangeJob>;

[[nodiscard]] AdminCommand from_wire(const wire::Set& message);
[[nodiscard]] AdminCommand from_wire(const wire::ChangeNodes& message);
[[nodiscard]] AdminCommand from_wire(const wire::DrainNodes& message);
[[nodiscard]] AdminCommand from_wire(const wire::Reserve& message);
[[nodiscard]] AdminCommand from_wire(const wire::Unreserve& message);
[[nodiscard]] AdminCommand from_wire(const wire::Reload& message);
[[nodiscard]] AdminCommand from_wire(const wire::Shutdown& message);
[[nodiscard]] AdminCommand from_wire(const wire::SignalJob& message);
[[nodiscard]] AdminCommand from_wire(const wire::CancelJob& message);
[[nodiscard]] AdminCommand from_wire(const wire::ControlJob& message);
[[nodiscard]] AdminCommand from_wire(const wire::ChangeJob& message);
// Returns the command of a web page's action; nullopt for Logout, which is not a command.
[[nodiscard]] std::optional<AdminCommand> from_action(const monitor::Action& action);

// Returns the frame that a command line sends for this command; it selects the row of the
// permission table.
[[nodiscard]] proto::FrameType frame_of(const AdminCommand& command);
// Returns the name for the audit and for refusals: "set quantum", "cancel" ...
[[nodiscard]] std::string action_of(const AdminCommand& command);
// Returns the value that is set or used: "50ms", "grace 5s"; may be empty.
[[nodiscard]] std::string value_of(const AdminCommand& command);
// Returns the job that the command is about; 0 if there is none.
[[nodiscard]] JobId job_of(const AdminCommand& command);
// Returns the line for the user who gave the command; may be empty.
[[nodiscard]] std::string reply_of(const AdminCommand& command);

}  // namespace score::head
