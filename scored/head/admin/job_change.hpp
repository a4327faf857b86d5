#pragma once
// A JobChange replaces parts of what a job's submission requested. The functions are pure.

#include "base/model/model.hpp"
#include "base/request/job_keys.hpp"
#include "base/result.hpp"
#include "proto/client.pb.h"
#include "scored/head/jobs/conditions.hpp"

#include <span>
#include <string>
#include <vector>

namespace score::head {

// The part of a submission that can be changed.
struct Requested {
  ResourceRequest resources;
  std::string name;
  Conditions conditions;

  friend bool operator==(const Requested&, const Requested&) = default;
};

struct JobChange {
  std::vector<JobKey> keys;  // each once; not empty
  Requested values;          // those of the keys apply
};

// Errors: Malformed, TooLarge.
[[nodiscard]] Result<JobChange> read_change(const wire::ChangeJob& message);

[[nodiscard]] Requested apply_change(const JobChange& change, std::span<const JobKey> keys,
                                     Requested request);

// Returns the change for the audit: "time=2h, queue=high"; empty if it cannot be read.
[[nodiscard]] std::string describe(const wire::ChangeJob& message);

struct ChangedJob {
  JobId id;
  bool has_place = false;  // its tasks run, or are being launched
  bool has_run = false;    // it has been started before, and waits again
  bool is_task = false;    // of an array
  bool has_tasks = false;  // an array of which tasks have joined the queue
};

// Checks the keys against the job's state. Errors: Denied, which names the key.
[[nodiscard]] Status check_keys(const ChangedJob& job, std::span<const JobKey> keys);

// Checks that no limit is raised. Errors: Denied, which names the key.
[[nodiscard]] Status check_lowered(const ResourceRequest& before, const ResourceRequest& after);

[[nodiscard]] std::string_view key_name(JobKey key);

}  // namespace score::head
