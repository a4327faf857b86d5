#pragma once
// A reservation keeps nodes for some users, or for no one (maintenance), for a time. A job is
// placed on such a node only if it is certain to have left it when the reservation begins. While
// the reservation is in force, a job must ask for it by name and be allowed to use it. It has no
// I/O; times are cluster time.

#include "base/model/model.hpp"
#include "gang/state/node_table.hpp"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace score::gang {

// A reservation is in force during [start, end).
struct Reservation {
  std::string name;
  std::vector<NodeId> nodes;
  TimePoint start{}, end{};
  std::set<UserId> users;
  std::set<std::string> accounts;  // no users and no accounts: maintenance
};

// Occupant holds the facts about a job that a reservation depends on.
struct Occupant {
  std::string_view reservation;  // requested by the job; empty: none
  UserId user{0};
  std::string_view account;
  std::optional<Duration> bound;  // the job ends within this time from now; nullopt: unknown
};

// Returns the longest time that the job takes from its start: its limit of elapsed time, or its
// limit of scheduled time when it gets one slice in `slots`, at most in 8. Returns nullopt if it
// has no limit.
std::optional<Duration> longest_of(const base::ResourceRequest& request, std::uint32_t slots);

class Calendar {
 public:
  // Replaces all reservations. If two overlap on a node, both hold. Nodes that are not in the table
  // are ignored.
  void set(std::vector<Reservation> all, const NodeTable& nodes);
  // Sets the time, which never goes back. Returns true if a reservation has begun or ended since,
  // or set() was called.
  bool advance(TimePoint now);

  [[nodiscard]] bool empty() const { return all_.empty(); }

  [[nodiscard]] const std::vector<Reservation>& all() const { return all_; }

  // Returns nullptr if there is no reservation of this name, or it has ended.
  [[nodiscard]] const Reservation* find(std::string_view name) const;
  // Returns the reservation in force on the node; nullptr if there is none.
  [[nodiscard]] const Reservation* on(NodeIndex node) const;

  [[nodiscard]] bool has_begun(const Reservation& reservation) const {
    return reservation.start <= now_;
  }

  [[nodiscard]] bool admits(const Reservation& reservation, const Occupant& job) const;

  // Returns whether the job may be placed on the node at `at`, which is now or later.
  [[nodiscard]] bool may_use(const Occupant& job, NodeIndex node) const {
    return may_use(job, node, now_);
  }

  [[nodiscard]] bool may_use(const Occupant& job, NodeIndex node, TimePoint at) const;
  // Returns the reservation that keeps the job off the node; nullptr if there is none.
  [[nodiscard]] const Reservation* blocking(const Occupant& job, NodeIndex node,
                                            TimePoint at) const;

  [[nodiscard]] const Reservation* blocking(const Occupant& job, NodeIndex node) const {
    return blocking(job, node, now_);
  }

  // Returns the time at which the next reservation begins or ends.
  [[nodiscard]] std::optional<TimePoint> next_change() const;

  [[nodiscard]] TimePoint now() const { return now_; }

 private:
  [[nodiscard]] const std::vector<std::size_t>& of_node(NodeIndex node) const;

  std::vector<Reservation> all_;
  std::vector<std::vector<std::size_t>> on_node_;  // [node] indices into all_
  TimePoint now_{};
  bool is_changed_ = false;
};

}  // namespace score::gang
