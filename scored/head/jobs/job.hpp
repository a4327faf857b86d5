#pragma once
// This header declares one job as the head keeps it in addition to the scheduler: what its user
// gave, where it runs, what is on disk, and how it is shown.

#include "base/ids.hpp"
#include "base/lazy.hpp"
#include "base/model/model.hpp"
#include "base/request/notices.hpp"
#include "base/text/shared_text.hpp"
#include "base/time.hpp"
#include "gang/head/cluster.hpp"
#include "monitor/meters/job_profile.hpp"
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
  std::uint32_t next = 0;               // number of the step that is submitted next
  std::set<JobId> active;               // those that have not ended
  std::vector<wire::StepStatus> ended;  // in the order of their ends; the newest 256
};

// A queue may be long, so rare members take only a pointer in the jobs that do not have them.
struct Job {
  JobInfo info;
  JobProgress progress;  // current
  // The progress that was last given to the commit log; null if the state on disk is unknown. See
  // set_saved().
  std::shared_ptr<const JobProgress> saved;
  Duration charged{0};  // scheduled time that was charged to its user
  // Requested and not yet done; saved progress already includes it.
  std::optional<JobState> asked_state;  // Suspended, or Running again
  bool asked_detached = false;
  std::uint32_t relaunches = 0;            // see gang::JobView
  bool is_untried = false;                 // likewise
  std::vector<NodeId> nodes;               // indexed like progress.placement
  AttemptId killed;                        // attempt whose nodes were sent KillTasks
  std::optional<gang::EndCause> ended_by;  // SIGTERM was sent for this cause; the grace is running
  bool is_requeued = false;  // SIGTERM was sent so that it returns to the queue; likewise
  // The cluster holds the job back, whatever its user requests, because it waits for jobs or times.
  bool is_deferred = false;
  bool is_held = false;                   // of a deferred job: its user or an operator holds it
  std::vector<std::string> waits;         // of a deferred job: its conditions, one per line
  Lazy<ArrayRest> rest;                   // of an array, as the head first found or stored it
  SharedText kept_by;                     // the operator who held or suspended another user's job
  SharedText why_ended;                   // precedes the scheduler's reasons
  std::optional<JobState> ends_as;        // of an array: replaces the scheduler's state
  std::optional<std::int32_t> exit_code;  // replaces the scheduler's
  gang::JobActivity activity = gang::JobActivity::Busy;
  Lazy<std::map<NodeId, Duration>> filled;       // so far, by the last samples of placement.attempt
  Lazy<monitor::JobProfile> profile;             // of all attempts, and of its steps
  SharedText last_news;                          // state and reasons that watchers know
  SharedText last_wait;                          // the newest event of a wait
  std::vector<JobEvent> events;                  // see note_event()
  std::unique_ptr<const wire::JobStatus> ended;  // the final status
  bool end_is_stored = false;
  NoticeKinds happened;  // changes of which notices are due when the progress is stored
  Lazy<Steps> steps;     // of an allocation
};

// Returns what is kept of an ended step, and shown of an active one.
[[nodiscard]] wire::StepStatus step_status(const wire::JobStatus& step);
// Records a step that has ended, now or before the head restarted.
void note_step_end(Job& allocation, const wire::JobStatus& step);

// A status is made from these values and the job.
struct StatusContext {
  const gang::JobView& view;
  const std::string& user_name;
  Duration quantum{};
  WallTime now{};
};

[[nodiscard]] wire::JobStatus make_status(const Job& job, const StatusContext& context);

[[nodiscard]] wire::Profile profile_to_wire(const monitor::JobProfile& profile);

// Returns why the job waits, or the scheduler's reasons.
[[nodiscard]] std::vector<std::string> reasons_of(const Job& job, const gang::JobView& view);
// Returns what its user and operators have requested; the head's own hold of a deferred job is left
// out.
[[nodiscard]] ResourceRequest asked_request(const Job& job, const gang::JobView& view);

// Records that this progress is on disk or on its way there.
void set_saved(Job& job, const JobProgress& progress);

// Adds an event to the job's time line, which keeps its beginning and the newest events, 64 in all.
void note_event(Job& job, WallTime at, SharedText text);
// Returns the text as the time line keeps it: escaped and shortened.
[[nodiscard]] SharedText event_text(std::string_view text);
void add_events(const Job& job, wire::JobStatus& status);
// These return the time line's text for a new state, and for the end.
[[nodiscard]] std::string event_of(const Job& job, const gang::JobView& view, JobState before);
[[nodiscard]] std::string end_event(const wire::JobStatus& status);

[[nodiscard]] std::string joined(const std::vector<std::string>& reasons);  // separated by "; "

// Returns the progress as it will be when the pending requests are done.
[[nodiscard]] JobProgress asked_progress(const Job& job);

// Returns the scheduler's state, except that a job that ends while it is being cancelled counts as
// cancelled.
[[nodiscard]] JobState shown_state(const Job& job, JobState state);

[[nodiscard]] std::string_view name_of(JobState state);              // "running"
[[nodiscard]] std::string_view name_of(gang::JobActivity activity);  // "idle"

}  // namespace score::head
