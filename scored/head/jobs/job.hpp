#pragma once
// One job as the head keeps it beside the scheduler: what its user gave, where it runs, what of it
// is on disk, and how it is shown.

#include "base/ids.hpp"
#include "base/model/model.hpp"
#include "base/time.hpp"
#include "gang/head/cluster.hpp"
#include "proto/client.pb.h"
#include "scored/head/store/store.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace score::head {

struct Job {
  JobInfo info;
  JobProgress progress;              // as it is now
  std::optional<JobProgress> saved;  // as it was last given to the commit log
  Duration charged{0};               // scheduled time that its user was charged with
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
  ArrayRest rest;                         // of an array, as the head found or stored it first
  std::string kept_by;                    // the operator who held or suspended another's job
  std::string why_ended;                  // goes before the scheduler's reasons
  std::optional<JobState> ends_as;        // of an array: instead of the scheduler's state
  std::optional<std::int32_t> exit_code;  // instead of the scheduler's
  gang::JobActivity activity = gang::JobActivity::Busy;
  std::map<NodeId, Duration> filled;     // so far, by the last samples of placement.attempt
  std::string last_news;                 // state and reasons that watchers know
  std::string last_wait;                 // reasons that the events name
  std::vector<wire::JobEvent> events;    // see note_event()
  std::optional<wire::JobStatus> ended;  // the final status
  bool end_is_stored = false;
  // Of an allocation.
  std::uint32_t next_step = 0;                // the number of the step that is submitted next
  std::set<JobId> steps;                      // that have not ended
  std::vector<wire::StepStatus> ended_steps;  // in the order of their ends; the newest 256
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

// Writes into the job's time line. It keeps its beginning and the newest, 64 in all.
void note_event(Job& job, WallTime at, std::string_view text);
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
