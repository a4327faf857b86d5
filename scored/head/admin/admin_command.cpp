#include "scored/head/admin/admin_command.hpp"

#include "base/overloaded.hpp"
#include "scored/head/reservations/booking.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <type_traits>

namespace score::head {
namespace {

using proto::FrameType;
using What = ControlJob::What;

std::string_view name_of(What what) {
  switch (what) {
    case wire::ControlJob::SUSPEND:
      return "suspend";
    case wire::ControlJob::RESUME:
      return "resume";
    case wire::ControlJob::HOLD:
      return "hold";
    case wire::ControlJob::RELEASE:
      return "release";
    case wire::ControlJob::SET_WEIGHT:
      return "set weight";
    case wire::ControlJob::SET_PRIORITY:
      return "set priority";
    default:
      return "control";
  }
}

// Describes a reservation that was accepted.
std::string described(const wire::Reservation& reservation) {
  const auto booking = read_booking(reservation);
  return booking ? describe(*booking) : std::string();
}

}  // namespace

AdminCommand from_wire(const wire::SetQuantum& message) {
  return SetQuantum{Duration(message.quantum_ns())};
}

AdminCommand from_wire(const wire::SetSlots& message) {
  return SetSlots{message.slots()};
}

AdminCommand from_wire(const wire::SetIdleDetection& message) {
  return SetIdleDetection{message.on()};
}

AdminCommand from_wire(const wire::SetFill& message) {
  return SetFill{message.on()};
}

AdminCommand from_wire(const wire::DrainNodes& message) {
  return DrainNodes{
      {message.nodes().begin(), message.nodes().end()}, message.reason(), message.resume()};
}

AdminCommand from_wire(const wire::Reserve& message) {
  return ReserveNodes{message.reservation(), message.ends_jobs()};
}

AdminCommand from_wire(const wire::Unreserve& message) {
  return RemoveReservation{message.name()};
}

AdminCommand from_wire(const wire::Reload&) {
  return ReloadConfiguration{};
}

AdminCommand from_wire(const wire::Shutdown&) {
  return ShutDown{};
}

AdminCommand from_wire(const wire::SignalJob& message) {
  return SignalJob{JobId(message.job()), message.signal()};
}

AdminCommand from_wire(const wire::CancelJob& message) {
  CancelJob command{JobId(message.job()), std::nullopt, message.wait()};
  command.tasks = message.tasks();
  if (message.grace_ns() >= 0) command.grace = Duration(message.grace_ns());
  return command;
}

AdminCommand from_wire(const wire::ControlJob& message) {
  return ControlJob{JobId(message.job()), message.what(), message.weight(), message.priority()};
}

std::optional<AdminCommand> from_action(const monitor::Action& action) {
  using monitor::ActionKind;
  switch (action.kind) {
    case ActionKind::SetQuantum:
      return SetQuantum{action.quantum};
    case ActionKind::SetSlots:
      return SetSlots{action.slots};
    case ActionKind::Drain:
    case ActionKind::Resume:
      return DrainNodes{{action.nodes}, action.reason, action.kind == ActionKind::Resume};
    case ActionKind::Suspend:
      return ControlJob{action.job, wire::ControlJob::SUSPEND};
    case ActionKind::Continue:
      return ControlJob{action.job, wire::ControlJob::RESUME};
    case ActionKind::Cancel:
      return CancelJob{action.job, action.grace};
    case ActionKind::Logout:
      break;
  }
  return std::nullopt;
}

FrameType frame_of(const AdminCommand& command) {
  return std::visit(Overloaded{[](const SetQuantum&) { return FrameType::SetQuantum; },
                               [](const SetSlots&) { return FrameType::SetSlots; },
                               [](const SetIdleDetection&) { return FrameType::SetIdleDetection; },
                               [](const SetFill&) { return FrameType::SetFill; },
                               [](const DrainNodes&) { return FrameType::DrainNodes; },
                               [](const ReserveNodes&) { return FrameType::Reserve; },
                               [](const RemoveReservation&) { return FrameType::Unreserve; },
                               [](const ReloadConfiguration&) { return FrameType::Reload; },
                               [](const ShutDown&) { return FrameType::Shutdown; },
                               [](const SignalJob&) { return FrameType::SignalJob; },
                               [](const CancelJob&) { return FrameType::CancelJob; },
                               [](const ControlJob&) { return FrameType::ControlJob; }},
                    command);
}

std::string_view action_of(const AdminCommand& command) {
  return std::visit(
      Overloaded{[](const SetQuantum&) { return std::string_view("set quantum"); },
                 [](const SetSlots&) { return std::string_view("set slots"); },
                 [](const SetIdleDetection&) { return std::string_view("set idle detection"); },
                 [](const SetFill&) { return std::string_view("set fill"); },
                 [](const DrainNodes& drain) -> std::string_view {
                   return drain.resume ? "resume" : "drain";
                 },
                 [](const ReserveNodes&) { return std::string_view("reserve"); },
                 [](const RemoveReservation&) { return std::string_view("unreserve"); },
                 [](const ReloadConfiguration&) { return std::string_view("reload"); },
                 [](const ShutDown&) { return std::string_view("shut down"); },
                 [](const SignalJob&) { return std::string_view("signal"); },
                 [](const CancelJob&) { return std::string_view("cancel"); },
                 [](const ControlJob& control) { return name_of(control.what); }},
      command);
}

std::string value_of(const AdminCommand& command) {
  if (const auto* set = std::get_if<SetQuantum>(&command)) return format_duration(set->quantum);
  if (const auto* set = std::get_if<SetSlots>(&command)) return std::to_string(set->slots);
  if (const auto* set = std::get_if<SetIdleDetection>(&command)) return set->on ? "on" : "off";
  if (const auto* set = std::get_if<SetFill>(&command)) return set->on ? "on" : "off";
  if (const auto* drain = std::get_if<DrainNodes>(&command)) return drain->reason;
  if (const auto* reserve = std::get_if<ReserveNodes>(&command)) {
    return fmt::format("{}: {}", reserve->wanted.name(), described(reserve->wanted));
  }
  if (const auto* removed = std::get_if<RemoveReservation>(&command)) return removed->name;
  if (const auto* signal = std::get_if<SignalJob>(&command)) return std::to_string(signal->signal);
  if (const auto* cancel = std::get_if<CancelJob>(&command)) {
    const std::string tasks = cancel->tasks.empty() ? "" : "tasks " + cancel->tasks;
    if (!cancel->grace) return tasks;
    return fmt::format("{}{}grace {}", tasks, tasks.empty() ? "" : ", ",
                       format_duration(*cancel->grace));
  }
  if (const auto* control = std::get_if<ControlJob>(&command)) {
    if (control->what == wire::ControlJob::SET_WEIGHT) return std::to_string(control->weight);
    if (control->what == wire::ControlJob::SET_PRIORITY) return std::to_string(control->priority);
  }
  return {};
}

JobId job_of(const AdminCommand& command) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.job; }) return one.job;
        return JobId();
      },
      command);
}

std::string reply_of(const AdminCommand& command) {
  if (const auto* set = std::get_if<SetQuantum>(&command)) {
    return fmt::format("quantum set to {}, effective at the next slice boundary",
                       format_duration(set->quantum));
  }
  if (const auto* set = std::get_if<SetSlots>(&command)) {
    return fmt::format("slots set to {}", set->slots);
  }
  if (const auto* set = std::get_if<SetIdleDetection>(&command)) {
    return set->on ? "idle detection on: idle jobs give up their slices"
                   : "idle detection off: idle jobs keep their slices";
  }
  if (const auto* set = std::get_if<SetFill>(&command)) {
    return set->on ? "fill on: jobs may use the processor time that the gang in turn leaves"
                   : "fill off: jobs run only in their own slices";
  }
  if (const auto* reserve = std::get_if<ReserveNodes>(&command)) {
    return fmt::format("reservation {}: {}", reserve->wanted.name(), described(reserve->wanted));
  }
  if (const auto* removed = std::get_if<RemoveReservation>(&command)) {
    return fmt::format("reservation {} removed", removed->name);
  }
  if (std::holds_alternative<ReloadConfiguration>(command)) return "configuration reloaded";
  if (std::holds_alternative<ShutDown>(command)) return "every job has ended";
  return {};
}

}  // namespace score::head
