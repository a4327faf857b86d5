#pragma once
// How jobs share the nodes: the interface of all placement policies. Placer owns the line of
// waiting jobs and asks the policy, job by job, for a place; the policy decides which place, which
// jobs may pass others, and to which rows jobs move later. It changes nothing but rows.

#include "gang/schedule/room.hpp"

#include <optional>
#include <set>
#include <string>

namespace score::gang {

class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  // After Room::add_node().
  virtual void add_node() {}

  // The line is tried from its front.
  virtual void begin_pass(TimePoint /*now*/) {}

  // A place that the job may have now; nullopt: it waits.
  [[nodiscard]] virtual std::optional<Spot> find_spot(const Job& job) const = 0;
  // It found none and stays in line. False: no job behind it may be tried in this pass.
  virtual bool stays(const Job& job) = 0;

  // ---- jobs come and go
  virtual void placed(const Job& /*job*/) {}

  virtual void unplaced(const Job& /*job*/) {}

  // It has left the line without a place, or the order of the line has changed.
  virtual void withdrawn(const Job& /*job*/) {}

  virtual void reordered() {}

  // The job ahead in line for which room is kept; nothing is kept for it any more.
  [[nodiscard]] virtual std::optional<JobId> promised() const { return std::nullopt; }

  virtual void drop_promise() {}

  // The node is used no longer.
  virtual void leave_node(NodeIndex /*node*/) {}

  // Moves jobs to other rows, on the cores that they have, and drops empty rows. True: something
  // has changed.
  virtual bool repack() = 0;

  // ---- what Placer may spare
  // A new job is tried at once and alone; else the whole line is.
  [[nodiscard]] virtual bool tries_alone(const Job& /*job*/) const { return true; }

  // A job that needs no less than one that stays need not be tried.
  [[nodiscard]] virtual bool skips_larger(const Job& /*job*/) const { return true; }

  // The factor of its weight in the turns of its row.
  [[nodiscard]] virtual std::uint32_t boost_of(const Job& /*job*/) const { return 1; }

  // Placed jobs whose factor may have changed since the last pass; nullptr: none has.
  [[nodiscard]] virtual const std::set<JobId>* boosted() const { return nullptr; }

  // ---- for views: what is kept for a job ahead in line, which this one may not take
  [[nodiscard]] virtual std::optional<JobId> behind(const Job& /*job*/) const {
    return std::nullopt;
  }

  // Why it waits, where nodes and room do not explain it; empty: they do.
  [[nodiscard]] virtual std::string why_waits(const Job& /*job*/) const { return {}; }

  struct Withheld {
    base::Bytes memory{0};
    base::Bytes scratch{0};
  };

  [[nodiscard]] virtual Withheld withheld(const Job& /*job*/, NodeIndex /*node*/) const {
    return {};
  }
};

}  // namespace score::gang
