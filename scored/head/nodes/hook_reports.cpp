#include "scored/head/nodes/hook_reports.hpp"

#include "base/model/model.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "scored/head/jobs/job.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/store/settings.hpp"
#include "scored/shared/config/hooks_config.hpp"

#include <algorithm>
#include <utility>

namespace score::head {
namespace {

constexpr std::size_t kMaxReasonBytes = 400;

}  // namespace

void HookReports::reported(NodeId node, const wire::HookReport& message,
                           std::shared_ptr<proto::Connection> connection) {
  auto& pace = paces_.try_emplace(node, kChangesPerSecond, kChangesAtOnce).first->second;
  const auto view = head_.runner.cluster().node(node);
  if (!view || message.hook() >= static_cast<std::uint32_t>(Hook::Submit)) return;
  if (!pace.try_take(head_.runner.now())) return;
  const auto acknowledge = [connection = std::move(connection),
                            number = message.number()](const Status&) {
    wire::HookReportTaken taken;
    taken.set_number(number);
    proto::send(*connection, taken);
  };
  const auto hook = static_cast<Hook>(message.hook());
  const std::string fault = escape_terminal(message.reason(), kMaxReasonBytes);
  if (hook == Hook::Health) {
    const bool is_own = view->drained && view->drain_reason.starts_with(kHealthReason);
    if (fault.empty() && is_own) return resume(node, acknowledge);
    if (fault.empty() || view->drained) return acknowledge({});
    return drain(node, std::string(kHealthReason) + fault, acknowledge);
  }
  const JobId job = job_of(AttemptId(message.attempt()));
  const std::string reason = fmt::format("{} failed: {}", name_of(hook), fault);
  tell_job(node, job, reason);
  if (view->drained) return acknowledge({});
  drain(node, fmt::format("{} of job {} failed: {}", name_of(hook), job, fault), acknowledge);
}

void HookReports::drain(NodeId node, std::string reason, CommitLog::Callback stored) {
  const std::string& name = head_.links.name(node);
  log_warning("Drained node after a hook failed", kv("node", name), kv("reason", reason));
  head_.commits.add(drain_setting(name, reason), std::move(stored));
  auto actions = head_.runner.cluster().drain(node, std::move(reason), head_.runner.now());
  if (actions) head_.runner.perform(std::move(*actions));
}

void HookReports::resume(NodeId node, CommitLog::Callback stored) {
  const std::string& name = head_.links.name(node);
  log_notice("Resumed node: its health check passes again", kv("node", name));
  head_.commits.add(drain_setting(name, std::nullopt), std::move(stored));
  auto actions = head_.runner.cluster().resume_node(node, head_.runner.now());
  if (actions) head_.runner.perform(std::move(*actions));
}

void HookReports::tell_job(NodeId node, JobId id, const std::string& text) {
  Job* const job = head_.jobs.find(id);
  const bool is_on_node = job != nullptr && std::ranges::find(job->nodes, node) != job->nodes.end();
  if (!is_on_node || job->ended) return;
  const std::string line = fmt::format("{}; drained {}", text, head_.links.name(node));
  note_event(*job, wall_now(), event_text(line));
  EventFeed::About about;
  about.job = id;
  about.node = node;
  head_.feed.add(monitor::EventKind::Job, fmt::format("job {}: {}", id, line), std::move(about));
}

}  // namespace score::head
