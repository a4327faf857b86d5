#include "scored/head/admin/admin_command.hpp"

#include "base/model/settings.hpp"
#include "base/overloaded.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "scored/head/admin/job_change.hpp"
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
    case wire::ControlJob::REQUEUE:
      return "requeue";
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

AdminCommand from_wire(const wire::Set& message) {
  return ChangeSetting{message.name(), message.value()};
}

AdminCommand from_wire(const wire::ChangeNodes& message) {
  return ChangeNodes{{message.nodes().begin(), message.nodes().end()}, message.removes()};
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

AdminCommand from_wire(const wire::ChangeJob& message) {
  return ChangeJob{JobId(message.job()), message};
}

std::optional<AdminCommand> from_action(const monitor::Action& action) {
  using monitor::ActionKind;
  switch (action.kind) {
    case ActionKind::Set:
      return ChangeSetting{action.name, action.value};
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
  return std::visit(Overloaded{[](const ChangeSetting&) { return FrameType::Set; },
                               [](const ChangeNodes&) { return FrameType::ChangeNodes; },
                               [](const DrainNodes&) { return FrameType::DrainNodes; },
                               [](const ReserveNodes&) { return FrameType::Reserve; },
                               [](const RemoveReservation&) { return FrameType::Unreserve; },
                               [](const ReloadConfiguration&) { return FrameType::Reload; },
                               [](const ShutDown&) { return FrameType::Shutdown; },
                               [](const SignalJob&) { return FrameType::SignalJob; },
                               [](const CancelJob&) { return FrameType::CancelJob; },
                               [](const ControlJob&) { return FrameType::ControlJob; },
                               [](const ChangeJob&) { return FrameType::ChangeJob; }},
                    command);
}

std::string action_of(const AdminCommand& command) {
  return std::visit(
      Overloaded{
          [](const ChangeSetting& set) { return "set " + escape_terminal(set.name, 80); },
          [](const ChangeNodes& change) -> std::string {
            return change.removes ? "remove node" : "add node";
          },
          [](const DrainNodes& drain) -> std::string { return drain.resume ? "resume" : "drain"; },
          [](const ReserveNodes&) { return std::string("reserve"); },
          [](const RemoveReservation&) { return std::string("unreserve"); },
          [](const ReloadConfiguration&) { return std::string("reload"); },
          [](const ShutDown&) { return std::string("shut down"); },
          [](const SignalJob&) { return std::string("signal"); },
          [](const CancelJob&) { return std::string("cancel"); },
          [](const ControlJob& control) { return std::string(name_of(control.what)); },
          [](const ChangeJob&) { return std::string("change"); }},
      command);
}

std::string value_of(const AdminCommand& command) {
  if (const auto* set = std::get_if<ChangeSetting>(&command)) return set->value;
  if (const auto* drain = std::get_if<DrainNodes>(&command)) return drain->reason;
  if (const auto* reserve = std::get_if<ReserveNodes>(&command)) {
    return fmt::format("{}: {}", reserve->wanted.name(), described(reserve->wanted));
  }
  if (const auto* removed = std::get_if<RemoveReservation>(&command)) return removed->name;
  if (const auto* change = std::get_if<ChangeJob>(&command)) return describe(change->wanted);
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
  if (const auto* set = std::get_if<ChangeSetting>(&command)) {
    const SettingRule* rule = find_setting(set->name);
    if (rule == nullptr) return {};
    const std::string_view meaning = set->value == "off" ? rule->off : rule->on;
    return fmt::format("{} set to {}{}{}", rule->name, set->value, meaning.empty() ? "" : ": ",
                       meaning);
  }
  if (const auto* reserve = std::get_if<ReserveNodes>(&command)) {
    return fmt::format("reservation {}: {}", reserve->wanted.name(), described(reserve->wanted));
  }
  if (const auto* removed = std::get_if<RemoveReservation>(&command)) {
    return fmt::format("reservation {} removed", removed->name);
  }
  if (const auto* change = std::get_if<ChangeNodes>(&command)) {
    const std::string nodes = escape_terminal(compress_hostlist(change->nodes), 1024);
    if (change->removes) return fmt::format("{} removed", nodes);
    return fmt::format("{0} added; `scadm key rotate {0}` prints the line to run there", nodes);
  }
  if (std::holds_alternative<ReloadConfiguration>(command)) return "configuration reloaded";
  if (std::holds_alternative<ShutDown>(command)) return "every job has ended";
  return {};
}

}  // namespace score::head
