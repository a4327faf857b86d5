#pragma once
// Nodes that are kept for some users, or for no one (maintenance), for a time. A job is placed on
// such a node only if it is sure to have left it when the reservation begins, or, while the
// reservation is in force, if it asked for it by name and may use it. Pure; times are cluster time.

#include "base/model/model.hpp"
#include "gang/state/node_table.hpp"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace score::gang {

// In force during [start, end).
struct Reservation {
  std::string name;
  std::vector<NodeId> nodes;
  TimePoint start{}, end{};
  std::set<UserId> users;
  std::set<std::string> accounts;  // neither users nor accounts: maintenance
};

// What a reservation needs to know of a job.
struct Occupant {
  std::string_view reservation;  // that it asked for; empty: none
  UserId user{0};
  std::string_view account;
  std::optional<Duration> bound;  // it has ended by then, from now on; nullopt: that is not known
};

// How long a job takes at most, from its start: its limit of elapsed time, or its limit of
// scheduled time when it gets one slice in `slots`. nullopt: it has no limit.
std::optional<Duration> longest_of(const base::ResourceRequest& request, std::uint32_t slots);

class Calendar {
 public:
  // Replaces all reservations. Of two that overlap on a node both hold. Nodes that are not in the
  // table are left out.
  void set(std::vector<Reservation> all, const NodeTable& nodes);
  // Times never go back. True: a reservation has begun or ended since, or set() was called.
  bool advance(TimePoint now);

  [[nodiscard]] bool empty() const { return all_.empty(); }

  [[nodiscard]] const std::vector<Reservation>& all() const { return all_; }

  // nullptr: there is none of this name, or it has ended.
  [[nodiscard]] const Reservation* find(std::string_view name) const;
  // The one in force on the node; nullptr: none is.
  [[nodiscard]] const Reservation* on(NodeIndex node) const;

  [[nodiscard]] bool has_begun(const Reservation& reservation) const {
    return reservation.start <= now_;
  }

  [[nodiscard]] bool admits(const Reservation& reservation, const Occupant& job) const;

  // Whether the job may be placed on the node at `at`, which is now or later.
  [[nodiscard]] bool may_use(const Occupant& job, NodeIndex node) const {
    return may_use(job, node, now_);
  }

  [[nodiscard]] bool may_use(const Occupant& job, NodeIndex node, TimePoint at) const;
  // The reservation of others that keeps the job off the node; nullptr: none does.
  [[nodiscard]] const Reservation* blocking(const Occupant& job, NodeIndex node,
                                            TimePoint at) const;

  [[nodiscard]] const Reservation* blocking(const Occupant& job, NodeIndex node) const {
    return blocking(job, node, now_);
  }

  // When the next one begins or ends.
  [[nodiscard]] std::optional<TimePoint> next_change() const;

  [[nodiscard]] TimePoint now() const { return now_; }

 private:
  [[nodiscard]] const std::vector<std::size_t>& of_node(NodeIndex node) const;

  std::vector<Reservation> all_;
  std::vector<std::vector<std::size_t>> on_node_;  // [node] indices of all_
  TimePoint now_{};
  bool is_changed_ = false;
};

}  // namespace score::gang
