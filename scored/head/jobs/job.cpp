#include "scored/head/jobs/job.hpp"

#include "base/exit_codes.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/plain.hpp"
#include "gang/job/job_state.hpp"
#include "gang/job/outcome.hpp"
#include "gang/matrix/shape.hpp"
#include "proto/convert/convert.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace score::head {
namespace {

constexpr int kMaxFailedShown = 64;
constexpr std::size_t kMaxEvents = 64;
constexpr std::size_t kFirstEvents = 2;  // of a waiting job
constexpr std::size_t kMaxStepsShown = 256;
constexpr std::size_t kMaxEventBytes = 512;

wire::JobStatus::Activity activity_to_wire(gang::JobActivity activity) {
  switch (activity) {
    case gang::JobActivity::Idle:
      return wire::JobStatus::IDLE;
    case gang::JobActivity::Deadlocked:
      return wire::JobStatus::DEADLOCKED;
    case gang::JobActivity::Busy:
      break;
  }
  return wire::JobStatus::BUSY;
}

std::uint32_t task_count(const gang::JobView& view) {
  std::uint32_t placed = 0;
  for (const std::uint32_t tasks : view.tasks_on_node) placed += tasks;
  if (placed > 0) return placed;
  const auto shape = gang::shape_of(view.request);
  return shape ? shape->tasks : 0;
}

// Returns what the nodes have sampled while the job runs, and what they reported at its end.
Duration filled_time(const Job& job, const gang::JobView& view) {
  Duration sampled{0};
  for (const auto& [node, filled] : *job.filled) sampled += filled;
  return is_final(view.state) ? view.filled : std::max(view.filled, sampled);
}

void add_times(const Job& job, const StatusContext& context, wire::JobStatus& out) {
  const WallTime never{};
  out.set_scheduled_ns(context.view.scheduled.count());
  out.set_filled_ns(filled_time(job, context.view).count());
  if (context.quantum > Duration{0}) {
    out.set_slices(static_cast<std::uint64_t>(context.view.scheduled / context.quantum));
  }
  out.set_submitted_wall_ns(job.info.submitted.time_since_epoch().count());
  if (job.progress.started == never) return;
  out.set_started_wall_ns(job.progress.started.time_since_epoch().count());
  out.set_elapsed_ns((context.now - job.progress.started).count());
}

// Returns the signal of the task that determined the job's exit code; 0 if it was not a signal.
int signal_of(const std::vector<TaskExit>& exits, int exit_code) {
  for (const TaskExit& exit : exits) {
    if (exit.signal != 0 && gang::code_of(exit) == exit_code) return exit.signal;
  }
  return 0;
}

void add_end(const Job& job, const StatusContext& context, wire::JobStatus& out) {
  if (!is_final(context.view.state)) return;
  out.set_ended_wall_ns(context.now.time_since_epoch().count());
  const bool hit_limit = shown_state(job, context.view.state) == JobState::TimedOut;
  out.set_exit_code(hit_limit ? kExitLimit : job.exit_code.value_or(context.view.exit_code));
  out.set_signal(signal_of(context.view.exits, out.exit_code()));
  *out.mutable_usage() = proto::to_wire(context.view.usage);
  for (const TaskExit& exit : context.view.exits) {
    if (exit.code == 0 && exit.signal == 0) continue;
    if (out.failed_tasks_size() == kMaxFailedShown) break;
    *out.add_failed_tasks() = proto::to_wire(exit);
  }
}

// Returns how many of the scheduler's reasons to leave out, because why_ended says more: it names
// the user and the cause. The head itself caused the signals by which tasks then ended.
std::size_t count_known(const Job& job, const gang::JobView& view) {
  if (job.ends_as) return view.reasons.size();
  if (job.why_ended.empty()) return 0;
  const JobState state = view.ending.value_or(view.state);
  if (state == JobState::Cancelled || state == JobState::TimedOut)
    return std::min<std::size_t>(1, view.reasons.size());
  return shown_state(job, state) != state ? view.reasons.size() : 0;
}

// Returns the least number of nodes that the job asks for; 0 means as few as can hold its tasks.
std::uint32_t nodes_wanted(const gang::JobView& view) {
  const auto shape = gang::shape_of(view.request);
  if (!shape) return 0;
  return shape->tasks == 1 ? 1 : shape->nodes;
}

void add_paging(const gang::JobView& view, wire::JobStatus& out) {
  out.set_residence(static_cast<std::uint32_t>(view.residence));
  out.set_parked_bytes(view.in_swap.value());
  out.set_paged_out_bytes(view.paged_out.value());
  out.set_paged_in_bytes(view.paged_in.value());
  out.set_paging_ns(view.paging.count());
  out.set_parked_ns(view.parked.count());
}

}  // namespace

wire::JobStatus make_status(const Job& job, const StatusContext& context) {
  const gang::JobView& view = context.view;
  wire::JobStatus out;
  out.set_job(job.info.id.value());
  out.set_user(job.info.user.value());
  out.set_user_name(context.user_name);
  out.set_name(job.info.name);
  out.set_account(job.info.account.str());
  out.set_reservation(view.request.reservation);
  out.set_partition(view.request.partition);
  for (const auto& license : view.request.licenses) *out.add_licenses() = proto::to_wire(license);
  out.set_state(static_cast<std::uint32_t>(shown_state(job, view.state)));
  if (!job.why_ended.empty()) out.add_reasons(job.why_ended.str());
  const std::vector<std::string> reasons = reasons_of(job, view);
  for (std::size_t i = std::min(reasons.size(), count_known(job, view)); i < reasons.size(); ++i) {
    out.add_reasons(reasons[i]);
  }
  out.set_tasks(task_count(view));
  out.set_nodes_wanted(nodes_wanted(view));
  for (const std::string& node : job.progress.placement.nodes) out.add_nodes(node);
  for (const std::uint32_t tasks : job.progress.placement.tasks_on_node) {
    out.add_tasks_on_node(tasks);
  }
  out.set_slot(view.slot ? static_cast<std::int32_t>(view.slot->value()) : -1);
  out.set_rows_used(view.rows_used);
  out.set_share(view.share);
  out.set_weight(view.request.weight);
  out.set_scheduled_limit_ns(view.request.scheduled_limit.count());
  out.set_wall_limit_ns(view.request.wall_limit.count());
  out.set_command(job.info.command.str());
  out.set_directory(job.info.directory.str());
  out.set_queue(static_cast<std::uint32_t>(view.request.queue));
  out.set_priority(view.request.priority);
  out.set_activity(activity_to_wire(view.activity));
  out.set_background(view.background);
  for (const std::string& wait : view.waits) out.add_waits(wait);
  out.set_restarts(view.restarts);
  out.set_cpus_per_task(view.request.cpus_per_task);
  out.set_tasks_per_core(view.tasks_per_core);
  out.set_no_fill(view.request.no_fill);
  out.set_equal_share(view.request.equal_share);
  for (const auto& feature : view.request.features) out.add_features(feature);
  out.set_memory_per_node_bytes(view.request.memory_per_node.value());
  std::size_t cores = 0;
  for (const auto& on_node : view.cores) cores += on_node.size();
  out.set_cores(static_cast<std::uint32_t>(cores));
  for (const auto& wanted : view.request.generic) *out.add_generic() = proto::to_wire(wanted);
  out.set_scratch_bytes(view.request.scratch.value());
  out.set_limit_signal(view.request.limit_signal);
  out.set_limit_signal_before_ns(view.request.limit_signal_before.count());
  out.set_limit_signal_script(view.request.limit_signal_script);
  add_paging(view, out);
  out.set_step_of(job.info.step_of.value());
  out.set_step(job.info.step);
  out.set_allocation(job.info.allocation);
  out.set_array_job(job.info.array.value());
  out.set_array_task(job.info.task);
  add_times(job, context, out);
  add_end(job, context, out);
  return out;
}

wire::StepStatus step_status(const wire::JobStatus& step) {
  wire::StepStatus out;
  out.set_step(step.step());
  out.set_job(step.job());
  out.set_name(step.name());
  out.set_state(step.state());
  out.set_exit_code(step.exit_code());
  out.set_signal(step.signal());
  out.set_tasks(step.tasks());
  out.set_nodes(static_cast<std::uint32_t>(step.nodes_size()));
  out.set_elapsed_ns(step.elapsed_ns());
  return out;
}

void note_step_end(Job& allocation, const wire::JobStatus& step) {
  Steps& steps = allocation.steps.edit();
  steps.active.erase(JobId(step.job()));
  auto& ended = steps.ended;
  if (ended.size() == kMaxStepsShown) ended.erase(ended.begin());
  ended.push_back(step_status(step));
  steps.next = std::max(steps.next, step.step() + 1);
}

wire::Profile profile_to_wire(const monitor::JobProfile& profile) {
  wire::Profile out;
  if (profile.points().empty()) return out;
  out.set_step_ns(profile.step().count());
  for (const monitor::ProfilePoint& point : profile.points()) {
    wire::ProfilePoint& made = *out.add_points();
    made.set_end_wall_ns(point.end.time_since_epoch().count());
    made.set_cpu_ns(point.cpu.count());
    made.set_memory_bytes(point.memory.value());
    made.set_memory_largest_bytes(point.memory_largest.value());
    made.set_pm_sent_bytes(point.pm_sent.value());
  }
  return out;
}

std::vector<std::string> reasons_of(const Job& job, const gang::JobView& view) {
  if (!job.is_deferred || view.state != JobState::Pending) return view.reasons;
  std::vector<std::string> reasons = job.waits;
  if (job.is_held) reasons.emplace_back("held until it is released");
  return reasons;
}

ResourceRequest asked_request(const Job& job, const gang::JobView& view) {
  ResourceRequest request = view.request;
  if (job.is_deferred) request.held = job.is_held;
  return request;
}

SharedText event_text(std::string_view text) {
  return escape_terminal(text, kMaxEventBytes);
}

void note_event(Job& job, WallTime at, SharedText text) {
  if (job.events.empty()) job.events.reserve(kFirstEvents);
  if (job.events.size() == kMaxEvents) job.events.erase(job.events.begin() + kMaxEvents / 4);
  job.events.push_back({at, std::move(text)});
}

// Waiting jobs have the same progress, so it is in memory only once.
void set_saved(Job& job, const JobProgress& progress) {
  static const auto as_accepted = std::make_shared<const JobProgress>();
  static const auto detached = [] {
    JobProgress made;
    made.detached = true;
    return std::make_shared<const JobProgress>(std::move(made));
  }();
  for (const auto& common : {as_accepted, detached}) {
    if (*common == progress) {
      job.saved = common;
      return;
    }
  }
  job.saved = std::make_shared<const JobProgress>(progress);
}

std::string joined(const std::vector<std::string>& reasons) {
  return fmt::format("{}", fmt::join(reasons, "; "));
}

std::string event_of(const Job& job, const gang::JobView& view, JobState before) {
  std::string text(name_of(view.state));
  switch (view.state) {
    case JobState::Launching:
      text = "launching on " + compress_hostlist(job.progress.placement.nodes);
      if (view.slot) text += fmt::format(", slot {}", view.slot->value());
      return text;
    case JobState::Running:
      if (before == JobState::Suspended) return "continued";
      return fmt::format("{} started", counted(task_count(view), "task"));
    default:
      if (!view.reasons.empty()) text += ": " + joined(view.reasons);
      return text;
  }
}

std::string end_event(const wire::JobStatus& status) {
  auto text = fmt::format("{}, exit code {}", name_of(static_cast<JobState>(status.state())),
                          status.exit_code());
  if (status.signal() != 0) text += fmt::format(" (signal {})", status.signal());
  const std::vector<std::string> reasons(status.reasons().begin(), status.reasons().end());
  if (!reasons.empty()) text += ": " + joined(reasons);
  return text;
}

void add_events(const Job& job, wire::JobStatus& status) {
  for (const JobEvent& event : job.events) {
    wire::JobEvent& added = *status.add_events();
    added.set_wall_ns(event.at.time_since_epoch().count());
    added.set_text(event.text.str());
  }
}

JobProgress asked_progress(const Job& job) {
  JobProgress progress = job.progress;
  const bool can_be_suspended =
      progress.state == JobState::Running || progress.state == JobState::Suspended;
  if (job.asked_state && can_be_suspended) progress.state = *job.asked_state;
  progress.detached = progress.detached || job.asked_detached;
  if (job.is_untried && progress.state == JobState::Completing) {  // a restarted head launches it
    progress.state = JobState::Launching;
    progress.ending.reset();
    progress.exit_code = 0;
    progress.reasons.clear();
  }
  return progress;
}

JobState shown_state(const Job& job, JobState state) {
  if (job.ends_as && is_final(state)) return *job.ends_as;
  const bool ended_itself = state == JobState::Completed || state == JobState::Failed;
  if (!job.ended_by || !ended_itself) return state;
  return *job.ended_by == gang::EndCause::TimeLimit ? JobState::TimedOut : JobState::Cancelled;
}

std::string_view name_of(gang::JobActivity activity) {
  constexpr std::array<std::string_view, 3> kNames = {"busy", "idle", "deadlocked"};
  return kNames.at(static_cast<std::size_t>(activity));
}

std::string_view name_of(JobState state) {
  return gang::to_string(state);
}

}  // namespace score::head
