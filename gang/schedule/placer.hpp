#pragma once
// Placer holds the queue of waiting jobs and gives them the places that the policy chooses. It
// gives and takes back places; it sends nothing.

#include "gang/resources/licenses.hpp"
#include "gang/schedule/policy.hpp"
#include "gang/state/gate.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace score::gang {

class Placer {
 public:
  // Uses the policy of tables.config.placement.
  explicit Placer(Tables& tables);

  // Must be called before the first job; the gate must outlive the placer. Without a gate all jobs
  // pass.
  void set_gate(Gate& gate) { gate_ = &gate; }

  // Must follow NodeTable::add().
  void add_node();

  // Copies the node's number of cores to the matrix, once no job holds cores there. Until then
  // nothing is placed there.
  void follow_hardware(NodeIndex node) { room_.follow_hardware(node); }

  // Applies a change of the node's features to all jobs.
  void follow_features(NodeIndex node);

  // Applies a change of the partitions to all jobs.
  void follow_partitions();

  // ---- licenses; see Licenses
  void set_licenses(const std::vector<base::License>& totals, bool release_suspended);
  // The job was suspended, or continues after check_resume().
  void suspended(const Job& job);

  void resumed(const Job& job) { licenses_.take(job); }

  [[nodiscard]] const Licenses& licenses() const { return licenses_; }

  // Records that room may have grown in a way that the placer cannot see: a node is up, or a limit
  // was raised.
  void capacity_grew() { room_.set_grown(); }

  // ---- the queue
  // Places a new Pending job at once (returns true) or puts it in the queue. While place_waiting()
  // is due, it only puts the job in the queue.
  bool try_new(Job& job);
  // Puts the job in the queue without an attempt to place it.
  void enqueue(Job& job);
  // Removes the job from the queue, because it ends or is held.
  void withdraw(const Job& job);
  void set_priority(Job& job, std::int32_t priority);
  // Replaces the request of a job: a waiting one gets the place in the queue that it would have if
  // it had been submitted so, and a placed one keeps its place.
  void change(Job& job, const base::ResourceRequest& request);
  // Sorts the queue again because the gate's answers have changed.
  void reorder();

  // The node is no longer used: room that was kept there is sought elsewhere.
  void leave_node(NodeIndex node) { policy_->leave_node(node); }

  // Compacts the rows and tries the queue if room has grown. Returns the placed jobs in order.
  std::vector<JobId> place_waiting(TimePoint now);

  // ---- places
  // See Room.
  bool restore(Job& job);
  void unplace(Job& job);

  // See Room.
  void lend(Job& job, std::size_t member, base::Bytes stays, bool is_open) {
    room_.lend(job, member, stays, is_open);
  }

  void take_back(Job& job) { room_.take_back(job); }

  [[nodiscard]] bool may_take_back(const Job& job) const { return room_.may_take_back(job); }

  // See Room.
  void grant(Room::Grants grants, const std::vector<base::Bytes>& withheld) {
    room_.grant(std::move(grants), withheld);
  }

  // Returns a place that the job could have if this much memory were free [node].
  [[nodiscard]] std::optional<Spot> find_spot(const Job& job, const std::vector<base::Bytes>& free);

  // Returns true if the queue will be tried at the next pass.
  [[nodiscard]] bool has_grown() const { return room_.has_grown(); }

  // ---- views
  [[nodiscard]] std::optional<Spot> find_spot(const Job& job) const {
    return job.is_step() ? room_.spot_inside(job) : policy_->find_spot(job);
  }

  [[nodiscard]] const Matrix& matrix() const { return room_.matrix(); }

  // See Room.
  [[nodiscard]] std::size_t rows_for(const Job& job) const { return room_.rows_for(job); }

  [[nodiscard]] std::size_t rows_kept_from(const Job& job) const {
    return room_.rows_kept_from(job);
  }

  // Returns true if the job may open no row, because as many rows are held as jobs like it may
  // hold.
  [[nodiscard]] bool is_kept_out(const Job& job) const {
    return room_.rows_kept_from(job) > 0 && !room_.may_hold(job, std::nullopt);
  }

  [[nodiscard]] std::size_t held_rows(Hold kind) const { return room_.held_rows(kind); }

  [[nodiscard]] std::size_t most_held_rows(Hold kind) const { return room_.most_held_rows(kind); }

  [[nodiscard]] bool holds_row(const Job& job, Hold kind) const {
    return room_.holds_row(job, kind);
  }

  [[nodiscard]] const Reservations& on_node(NodeIndex node) const { return room_.on_node(node); }

  [[nodiscard]] const Units& units() const { return room_.units(); }

  [[nodiscard]] bool may_use(const Job& job, NodeIndex node) const {
    return room_.may_use(job, node);
  }

  // See Room.
  [[nodiscard]] std::string why_no_row(const Job& job) const { return room_.why_no_row(job); }

  // See NodePlaces.
  [[nodiscard]] std::string why_no_place(const Job& job, NodeIndex node) const {
    return room_.on_node(node).places.why_full(job.user, place_kind(job));
  }

  // See Room.
  [[nodiscard]] Occupant occupant(const Job& job) const { return room_.occupant(job); }

  [[nodiscard]] base::Bytes free_memory(const Job& job, NodeIndex node) const {
    return room_.free_memory(job, node) - policy_->withheld(job, node).memory;
  }

  [[nodiscard]] base::Bytes free_scratch(const Job& job, NodeIndex node) const {
    return room_.free_scratch(node) - policy_->withheld(job, node).scratch;
  }

  // Returns whether the gate admits the job to this place and its licenses are free. Without a
  // place, as few nodes as it takes are assumed.
  [[nodiscard]] bool is_open(const Job& job, const Spot* spot = nullptr) const;
  // Returns the reason why the gate does not admit it; empty if it does.
  [[nodiscard]] std::string why_closed(const Job& job) const;

  // Returns the key of a job in the queue, with its rank and the order of its partition.
  [[nodiscard]] WaitKey key_of(const Job& job) const;

  // Returns the job ahead in the queue for which room is kept that this one may not take.
  [[nodiscard]] std::optional<JobId> behind(const Job& job) const { return policy_->behind(job); }

  [[nodiscard]] std::string why_waits(const Job& job) const { return policy_->why_waits(job); }

  // See Policy.
  [[nodiscard]] Policy::Turn turn_of(const Job& job) const { return policy_->turn_of(job); }

  [[nodiscard]] bool is_in_line(const Job& job) const {
    return waiting_.contains(job.wait) || waiting_steps_.contains(job.wait);
  }

  // Returns the waiting jobs without steps.
  [[nodiscard]] const std::map<WaitKey, Job*>& waiting() const { return waiting_; }

  [[nodiscard]] base::Result<void> check() const;

 private:
  [[nodiscard]] bool is_gate_open(const Job& job, const Spot* spot) const;
  bool try_place(Job& job);
  void sort_again();
  void await_licenses(const Job& job);
  void note_placed(Job& job);
  void reweigh();
  void set_boost(Job& job);
  void break_closed_promise();
  void place_steps(std::vector<JobId>& placed);

  std::map<WaitKey, Job*>& line_of(const Job& job) {
    return job.is_step() ? waiting_steps_ : waiting_;
  }

  [[nodiscard]] base::Result<void> check_line() const;

  const NodeTable& nodes_;
  JobTable& jobs_;
  Gate* gate_ = nullptr;
  Room room_;
  Licenses licenses_;
  std::unique_ptr<Policy> policy_;
  // Each entry has its job, because a pass examines the jobs one by one.
  std::map<WaitKey, Job*> waiting_;        // Pending jobs that are not held, without steps
  std::map<WaitKey, Job*> waiting_steps_;  // waiting for cores of their jobs
};

}  // namespace score::gang
