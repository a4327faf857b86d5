#pragma once
// StacksCollector reads the stacks of a job: it stops the job at a slice end, asks the job's nodes,
// merges their answers, and lets the job go on, whatever the nodes do, after a time limit. A job is
// read once at a time. All calls come from one thread.

#include "proto/documents/stack_tree.hpp"
#include "proto/stacks.pb.h"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/cluster/node_poll.hpp"
#include "scored/head/jobs/job_table.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

class StacksCollector {
 public:
  using Done = std::function<void(wire::Stacks)>;

  // Ends the text of the problem of a node that did not answer.
  static constexpr std::string_view kSilent = "did not answer in time";

  // All references must outlive this object.
  StacksCollector(HeadContext& head, Clock& clock)
      : head_(head), poll_(clock, head.links, head.alarm) {}

  // Calls `done` unless it returns an error. Errors: NotFound, WrongState (it does not run, or is
  // an allocation with several steps), Unsupported, Malformed (ranks), Busy (it is
  // being read, or starts its tasks).
  [[nodiscard]] Status read(const std::string& asker, const wire::GetStacks& request, Done done);
  // Takes a node's stacks; a reply with an unknown tag is dropped.
  void reply(NodeId node, wire::StacksReply&& message);

  // ---- called in turn
  void tick(TimePoint now) { poll_.tick(now); }

  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return poll_.next_deadline(); }

 private:
  struct Parts {
    proto::StackTree tree;
    wire::Stacks answer;
    std::map<std::string, std::set<std::uint32_t>> ranks_on;  // [node]
    std::uint32_t tasks = 0;

    void add_problem(const std::string& node, const std::string& text);

    void add_silent_nodes(const std::string& name) { add_problem(name, std::string(kSilent)); }
  };

  // Returns the job whose tasks are meant: the only step of an allocation stands for it.
  [[nodiscard]] Result<gang::JobView> job_of(JobId id) const;
  [[nodiscard]] Result<std::vector<NodeId>> nodes_of(const gang::JobView& view,
                                                     const std::string& ranks, Parts& parts) const;
  void finish(JobId job, TimePoint began, Parts& parts);

  HeadContext& head_;
  NodePoll<Parts> poll_;
  std::set<JobId> stopped_;
};

}  // namespace score::head
