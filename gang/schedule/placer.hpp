#pragma once
// Where jobs go: the line of waiting jobs, and the places that the policy chooses for them. It
// gives and takes places; it sends nothing.

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
  // With the policy of tables.config.placement.
  explicit Placer(Tables& tables);

  // Before the first job; must outlive it. Without one all jobs pass.
  void set_gate(Gate& gate) { gate_ = &gate; }

  // After NodeTable::add().
  void add_node();

  // The matrix takes over the node's number of cores, once no job holds cores there; until then
  // nothing is placed there.
  void follow_hardware(NodeIndex node) { room_.follow_hardware(node); }

  // The node has other features than before.
  void follow_features(NodeIndex node);

  // Room may have grown in a way that the placer does not see: a node is up, a limit was raised.
  void capacity_grew() { room_.set_grown(); }

  // ---- the line
  // A new Pending job: placed at once (true), or in line. While place_waiting() is due it is only
  // put in line.
  bool try_new(Job& job);
  // In line, without an attempt to place it.
  void enqueue(Job& job);
  // It waits no longer, because it ends or is held.
  void withdraw(const Job& job);
  void set_priority(Job& job, std::int32_t priority);
  // The gate's answers have changed.
  void reorder();

  // The node is used no longer: room that was kept there is looked for elsewhere.
  void leave_node(NodeIndex node) { policy_->leave_node(node); }

  // Compacts the rows and tries the line, if room grew. The jobs that got a place, in order.
  std::vector<JobId> place_waiting(TimePoint now);

  // ---- places
  // See Room.
  bool restore(Job& job);
  void unplace(Job& job);

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

  // The job may open no row, because as many are held as jobs like it may hold.
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
  [[nodiscard]] Occupant occupant(const Job& job) const { return room_.occupant(job); }

  [[nodiscard]] base::Bytes free_memory(const Job& job, NodeIndex node) const {
    return room_.free_memory(node) - policy_->withheld(job, node).memory;
  }

  [[nodiscard]] base::Bytes free_scratch(const Job& job, NodeIndex node) const {
    return room_.free_scratch(node) - policy_->withheld(job, node).scratch;
  }

  // Whether the gate lets it have this place; without a place: one on as few nodes as it takes.
  [[nodiscard]] bool is_open(const Job& job, const Spot* spot = nullptr) const;
  // Why it does not; empty: it does.
  [[nodiscard]] std::string why_closed(const Job& job) const;

  [[nodiscard]] std::int64_t rank_of(const Job& job) const {
    return gate_ != nullptr && job.has_row() ? gate_->rank(job) : 0;
  }

  // The job ahead in line for which room is kept that this one may not take.
  [[nodiscard]] std::optional<JobId> behind(const Job& job) const { return policy_->behind(job); }

  [[nodiscard]] std::string why_waits(const Job& job) const { return policy_->why_waits(job); }

  [[nodiscard]] bool is_in_line(const Job& job) const {
    return waiting_.contains(job.wait) || waiting_steps_.contains(job.wait);
  }

  // Without steps.
  [[nodiscard]] const std::map<WaitKey, Job*>& waiting() const { return waiting_; }

  [[nodiscard]] base::Result<void> check() const;

 private:
  bool try_place(Job& job);
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
  std::unique_ptr<Policy> policy_;
  // With the jobs, which a pass looks at one by one.
  std::map<WaitKey, Job*> waiting_;        // Pending jobs that are not held, without steps
  std::map<WaitKey, Job*> waiting_steps_;  // for cores of their jobs
};

}  // namespace score::gang
