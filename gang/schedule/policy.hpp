#pragma once
// Policy is the interface of all placement policies, which define how jobs share the nodes. Placer
// owns the queue of waiting jobs and asks the policy for a place, job by job. The policy chooses
// the place, decides which jobs may pass others, and moves jobs to other rows later. It changes
// only rows.

#include "gang/schedule/room.hpp"

#include <optional>
#include <set>
#include <string>

namespace score::gang {

class Policy {
 public:
  // Turn describes the order of jobs that proceed one after the other.
  struct Turn {
    bool is_in_order = false;    // the job is one of them
    std::optional<JobId> ahead;  // needs a node of it and is ahead; nullopt: none, it is in front
  };

  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  // Is called after Room::add_node().
  virtual void add_node() {}

  // Begins a pass over the queue, from its front.
  virtual void begin_pass(TimePoint /*now*/) {}

  // Returns a place that the job may have now; nullopt if it must wait.
  [[nodiscard]] virtual std::optional<Spot> find_spot(const Job& job) const = 0;
  // Records that the job found no place and stays in the queue. Returns false if no job behind it
  // may be tried in this pass.
  virtual bool stays(const Job& job) = 0;

  // ---- jobs come and go
  virtual void placed(const Job& /*job*/) {}

  virtual void unplaced(const Job& /*job*/) {}

  // The job has left the queue without a place, or the order of the queue has changed.
  virtual void withdrawn(const Job& /*job*/) {}

  virtual void reordered() {}

  // These return the job ahead in the queue for which room is kept, and stop keeping room for it.
  [[nodiscard]] virtual std::optional<JobId> promised() const { return std::nullopt; }

  virtual void drop_promise() {}

  // The node is no longer used.
  virtual void leave_node(NodeIndex /*node*/) {}

  // Moves jobs to other rows, on the cores that they have, and drops empty rows. Returns true if
  // something has changed.
  virtual bool repack() = 0;

  // ---- work that Placer may skip
  // Returns true if a new job may be tried at once and alone; otherwise the whole queue is tried.
  [[nodiscard]] virtual bool tries_alone(const Job& /*job*/) const { return true; }

  // Returns true if a job that needs no less than one that stays need not be tried.
  [[nodiscard]] virtual bool skips_larger(const Job& /*job*/) const { return true; }

  // Returns the factor of its weight in the turns of its row.
  [[nodiscard]] virtual std::uint32_t boost_of(const Job& /*job*/) const { return 1; }

  // Returns the placed jobs whose factor may have changed since the last pass; nullptr if there are
  // none.
  [[nodiscard]] virtual const std::set<JobId>* boosted() const { return nullptr; }

  // Returns why it waits if nodes and room do not explain it; empty if they do.
  [[nodiscard]] virtual std::string why_waits(const Job& /*job*/) const { return {}; }

  // Returns the order of a placed job among those that proceed one after the other.
  [[nodiscard]] virtual Turn turn_of(const Job& /*job*/) const { return {}; }

  // ---- for views: room kept for a job ahead in the queue, which this one may not take
  [[nodiscard]] virtual std::optional<JobId> behind(const Job& /*job*/) const {
    return std::nullopt;
  }

  struct Withheld {
    base::Bytes memory{0};
    base::Bytes scratch{0};
  };

  [[nodiscard]] virtual Withheld withheld(const Job& /*job*/, NodeIndex /*node*/) const {
    return {};
  }
};

}  // namespace score::gang
