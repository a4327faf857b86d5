#include "scored/head/admin/command_steps.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "scored/shared/journal/event.hpp"

#include <string>
#include <utility>

namespace score::head {
namespace {

std::string nodes_of(const AdminCommand& command) {
  const auto* change = std::get_if<ChangeNodes>(&command);
  const auto* drain = std::get_if<DrainNodes>(&command);
  if (change != nullptr) return fmt::format("{}", fmt::join(change->nodes, ","));
  return drain == nullptr ? std::string() : fmt::format("{}", fmt::join(drain->nodes, ","));
}

}  // namespace

Permissions::Request request_of(const AdminCommand& command) {
  Permissions::Request request{
      .type = frame_of(command), .job = job_of(command), .action = action_of(command)};
  if (const auto* signal = std::get_if<SignalJob>(&command)) request.signal = signal->signal;
  return request;
}

Result<Effect> effect_of(HeadContext& head, Result<gang::Actions> actions) {
  if (!actions) return actions.error();
  return [&head, actions = std::move(*actions)] { head.runner.perform(actions); };
}

void audit(HeadContext& head, const Peer& peer, const AdminCommand& command) {
  const JobId job = job_of(command);
  const std::string action(action_of(command));
  const std::string value = escape_terminal(value_of(command), limits::kMaxErrorTextBytes);
  const std::string nodes = nodes_of(command);
  std::vector<EventValue> values = {{"user", peer.name}, {"action", action}};
  if (job != JobId()) values.push_back({"job", fmt::format("{}", job)});
  if (!nodes.empty()) values.push_back({"node", nodes});
  if (!value.empty()) values.push_back({"value", value});
  values.push_back({"via", peer.via});
  const auto* setting = std::get_if<ChangeSetting>(&command);
  const bool sets_quantum = setting != nullptr && setting->name == rule_of(Setting::Quantum).name;
  report_values(sets_quantum ? Event::QuantumSet : Event::CommandDone, values);

  const std::string with_value = value.empty() ? action : action + " " + value;
  if (Job* about = head.jobs.find(job)) {
    note_event(*about, wall_now(),
               event_text(fmt::format("{} requested by {}", with_value, peer.name)));
  }
  EventFeed::About about;
  std::string text = action;
  if (job != JobId()) {
    about.job = job;
    text += fmt::format(" job {}", job);
  }
  about.public_text = text;
  for (const std::string& more : {escape_terminal(nodes, 256), value}) {
    if (!more.empty()) text += " " + more;
  }
  head.feed.add(monitor::EventKind::Admin, peer.name + ": " + text, std::move(about));
}

}  // namespace score::head
