#pragma once
// CheckpointManager saves a job: it stops the job at a slice end, orders the steps from the job's
// nodes, and lets the job go on, whatever the nodes do. A job is saved once at a time. A head that
// restarts has forgotten it; the shepherds then continue their tasks. All calls come from one
// thread.

#include "proto/checkpoint.pb.h"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/cluster/node_poll.hpp"
#include "scored/head/jobs/job_table.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace score::head {

class CheckpointManager {
 public:
  using Done = std::function<void(wire::Checkpointed)>;

  // All references must outlive this object.
  CheckpointManager(HeadContext& head, Clock& clock)
      : head_(head), poll_(clock, head.links, head.alarm) {}

  // Calls `done` unless it returns an error. Errors: NotFound, WrongState (it does not run, or has
  // steps), Unsupported, Busy.
  [[nodiscard]] Status save(const std::string& asker, const wire::Checkpoint& request, Done done);
  // Takes a node's reply; one with an unknown tag is dropped. A node may also ask for a save of an
  // attempt that it has.
  void reply(NodeId node, wire::CheckpointReply&& message);

  // Returns the directory of the job's last complete set; empty: there is none.
  [[nodiscard]] std::string last_set(JobId job) const;

  // Restores what last_set() returns, when the head starts.
  void restore(std::map<JobId, std::string> sets) { last_sets_ = std::move(sets); }

  // ---- called in turn
  void tick(TimePoint now) { poll_.tick(now); }

  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return poll_.next_deadline(); }

 private:
  struct Answers {
    std::string reason;     // the first; empty: all nodes have done the step
    std::string directory;  // of the set
    std::uint64_t image_bytes = 0;

    void add_silent_nodes(const std::string& name);
  };

  struct Save {
    AttemptId attempt;
    std::vector<NodeId> nodes;  // that have tasks; the first has the first task
    std::string asker;
    std::string set;
    bool ends_job = false;
    bool is_held = false;  // the timetable leaves the job out
    TimePoint began{};
    TimePoint stopped{};
    wire::Checkpointed answer;
    Done done;
  };

  [[nodiscard]] Result<gang::JobView> view_of(JobId id) const;
  [[nodiscard]] Result<std::vector<NodeId>> nodes_of(const gang::JobView& view) const;
  void order(JobId job, wire::CheckpointStep step);
  void done(JobId job, wire::CheckpointStep step, const Answers& answers);
  void release(JobId job, Save& save);
  void finish(JobId job);
  void keep_set(JobId job, const std::string& directory);
  void save_as_wanted(NodeId node, AttemptId attempt);

  HeadContext& head_;
  NodePoll<Answers> poll_;
  std::map<JobId, Save> saves_;
  std::map<JobId, std::string> last_sets_;  // of jobs that have not ended, as far as it is known
};

}  // namespace score::head
