#pragma once
// One job as the head keeps it beside the scheduler: what its user gave, where it runs, what of it
// is on disk, and how it is shown.

#include "base/ids.hpp"
#include "base/lazy.hpp"
#include "base/model/model.hpp"
#include "base/text/shared_text.hpp"
#include "base/time.hpp"
#include "gang/head/cluster.hpp"
#include "proto/client.pb.h"
#include "scored/head/store/store.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace score::head {

struct JobEvent {
  WallTime at{};
  SharedText text;
};

struct Steps {
  std::uint32_t next = 0;               // the number of the one that is submitted next
  std::set<JobId> active;               // that have not ended
  std::vector<wire::StepStatus> ended;  // in the order of their ends; the newest 256
};

// A queue may be long: what few jobs have takes a pointer in the others.
struct Job {
  JobInfo info;
  JobProgress progress;  // as it is now
  // As it was last given to the commit log. Null: what is on disk is not known. See set_saved().
  std::shared_ptr<const JobProgress> saved;
  Duration charged{0};  // scheduled time that its user was charged with
  // Asked for and not yet done: every change that saves the progress says so already.
  std::optional<JobState> asked_state;  // Suspended, or Running again
  bool asked_detached = false;
  std::uint32_t relaunches = 0;            // see gang::JobView
  bool is_untried = false;                 // likewise
  std::vector<NodeId> nodes;               // [node index], of progress.placement
  AttemptId killed;                        // attempt whose nodes were sent KillTasks
  std::optional<gang::EndCause> ended_by;  // SIGTERM was sent for this; the grace is running
  // The cluster holds it back, whatever its user wants, because it waits for jobs or times.
  bool is_deferred = false;
  bool is_held = false;                   // of a deferred job: its user or an operator holds it
  std::vector<std::string> waits;         // of a deferred job: for what, a line each
  Lazy<ArrayRest> rest;                   // of an array, as the head found or stored it first
  SharedText kept_by;                     // the operator who held or suspended another's job
  SharedText why_ended;                   // goes before the scheduler's reasons
  std::optional<JobState> ends_as;        // of an array: instead of the scheduler's state
  std::optional<std::int32_t> exit_code;  // instead of the scheduler's
  gang::JobActivity activity = gang::JobActivity::Busy;
  Lazy<std::map<NodeId, Duration>> filled;       // so far, by the last samples of placement.attempt
  SharedText last_news;                          // state and reasons that watchers know
  SharedText last_wait;                          // the newest event of a wait
  std::vector<JobEvent> events;                  // see note_event()
  std::unique_ptr<const wire::JobStatus> ended;  // the final status
  bool end_is_stored = false;
  Lazy<Steps> steps;  // of an allocation
};

// What is kept of a step that has ended, and shown of one that has not.
[[nodiscard]] wire::StepStatus step_status(const wire::JobStatus& step);
// A step has ended, or had before the head restarted.
void note_step_end(Job& allocation, const wire::JobStatus& step);

// What a status is made from besides the job.
struct StatusContext {
  const gang::JobView& view;
  const std::string& user_name;
  Duration quantum{};
  WallTime now{};
};

[[nodiscard]] wire::JobStatus make_status(const Job& job, const StatusContext& context);

// Why it waits, or the scheduler's reasons.
[[nodiscard]] std::vector<std::string> reasons_of(const Job& job, const gang::JobView& view);
// What its user and operators ask for; a deferred job is held by the head alone.
[[nodiscard]] ResourceRequest asked_request(const Job& job, const gang::JobView& view);

// The progress is on its way to the disk, or there.
void set_saved(Job& job, const JobProgress& progress);

// Writes into the job's time line. It keeps its beginning and the newest, 64 in all.
void note_event(Job& job, WallTime at, SharedText text);
// As it is kept there.
[[nodiscard]] SharedText event_text(std::string_view text);
void add_events(const Job& job, wire::JobStatus& status);
// The text of the time line for a new state, and for the end.
[[nodiscard]] std::string event_of(const Job& job, const gang::JobView& view, JobState before);
[[nodiscard]] std::string end_event(const wire::JobStatus& status);

[[nodiscard]] std::string joined(const std::vector<std::string>& reasons);  // "; " between

// As it is once what was asked for is done.
[[nodiscard]] JobProgress asked_progress(const Job& job);

// The scheduler's state, except that what ends while it is being cancelled was cancelled.
[[nodiscard]] JobState shown_state(const Job& job, JobState state);

[[nodiscard]] std::string_view name_of(JobState state);              // "running"
[[nodiscard]] std::string_view name_of(gang::JobActivity activity);  // "idle"

}  // namespace score::head
