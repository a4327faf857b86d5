#pragma once
// NodeHooks runs the hooks of the site on this node: prolog and epilog of jobs, and the health
// check. It reports failures to the head, which drains the node, and repeats a report until the
// head has stored it.
//
// An allocation has an attempt only on its first node. On the others the prolog runs before the
// first of its steps, and the epilog when the head forgets the allocation. There its record has a
// number of no attempt.

#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/model/model.hpp"
#include "base/result.hpp"
#include "proto/node.pb.h"
#include "scored/node/hooks/hook_records.hpp"
#include "scored/node/link/head_link.hpp"
#include "scored/shared/config/hooks_config.hpp"
#include "scored/shared/hooks/hook_runner.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace score::node {

class NodeHooks {
 public:
  struct Settings {
    HooksConfig hooks;
    std::string node_name;
    std::string directory;  // of the records
    HookRunner::Place place;
  };

  struct Parts {  // all must outlive it
    Clock& clock;
    HeadLink& head;
    TaskGroup& tasks;
  };

  NodeHooks(Parts parts, Settings settings);

  // Returns the request for the hooks of the job, or of the allocation that the step is in; nothing
  // if it has none, as commands of the parallel shell. `spec` is its encoded LaunchSpec.
  [[nodiscard]] std::optional<hooks::HookRequest> request_for(const base::PlacedTasks& placed,
                                                              std::string_view spec) const;

  // Runs the prolog after the epilogs of earlier attempts of the job. A failure is reported.
  // Errors: one line, for the job. From now on the attempt needs its epilog.
  asio::awaitable<Status> prolog(hooks::HookRequest request, std::shared_ptr<HookHandle> handle);
  // Does the same for a step, unless its allocation has a record. Each call needs one of
  // leave_step().
  asio::awaitable<Status> enter_step(hooks::HookRequest request,
                                     std::shared_ptr<HookHandle> handle);
  void leave_step(JobId allocation);
  // Must be called when the head forgets an attempt.
  void forgotten(AttemptId attempt);
  // Runs the epilog, or waits for the one that is running; returns at once if none is due. A
  // failure is reported.
  asio::awaitable<void> epilog(AttemptId attempt);

  // Returns the attempts that need their epilog, also from before a restart, without those of
  // allocations.
  [[nodiscard]] std::vector<AttemptId> due() const;

  // Runs the health check regularly, if there is one. A pass is reported after a failure and after
  // each welcome, so that the head resumes the node.
  asio::awaitable<void> check_health();

  // Must be called when the head has welcomed the node. `takes_reports`: it knows HookReport.
  // `is_idle`: the node has no attempt.
  void welcomed(bool takes_reports, bool is_idle);
  // Handles HookReportTaken of the head.
  void taken(const proto::InFrame& frame);

 private:
  asio::awaitable<Result<HookEnd>> run(Hook hook, hooks::HookRequest request,
                                       std::shared_ptr<HookHandle> handle);
  void end_allocation(JobId job);
  void report(Hook hook, const hooks::HookRequest& request, const std::string& fault);

  Parts parts_;
  Settings settings_;
  HookRunner runner_;
  HookRecords records_;
  std::set<AttemptId> running_;           // their hooks
  std::map<JobId, std::uint32_t> steps_;  // here, of allocations
  std::set<JobId> ended_;                 // allocations whose epilog waits for the last step
  std::map<std::uint64_t, wire::HookReport> reports_;  // not stored by the head yet
  std::uint64_t last_report_ = 0;
  unsigned active_ = 0;  // hooks that run
  bool takes_reports_ = false;
  bool reports_pass_ = true;  // the next pass of the health check
};

// Returns true if the request is for an allocation that has no attempt on this node.
[[nodiscard]] bool is_of_allocation(const hooks::HookRequest& request);

// Returns the place where the node's hooks are run: by root if the launcher belongs to root.
[[nodiscard]] HookRunner::Place hook_place(const std::string& launcher_dir, std::string config);

}  // namespace score::node
