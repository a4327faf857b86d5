#pragma once
// Where jobs go: the matrix, what is reserved on each node, and the line of waiting jobs. It gives
// and takes places; it sends nothing.

#include "gang/matrix/matrix.hpp"
#include "gang/matrix/shape.hpp"
#include "gang/state/tables.hpp"

#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace score::gang {

// A place that a job could have now.
struct Spot {
  std::optional<std::size_t> row;  // position; nullopt: in a new row, or none (overlay)
  Choice choice;
};

// What is placed on a node.
struct Reservations {
  base::Bytes memory{0};
  std::set<JobId> jobs;  // overlay jobs too
  std::optional<JobId> exclusive;
  std::uint32_t high = 0;  // jobs of queue high, without overlay jobs
};

class Placer {
 public:
  explicit Placer(Tables& tables)
      : config_(tables.config), nodes_(tables.nodes), jobs_(tables.jobs) {}

  // After NodeTable::add().
  void add_node();
  // The matrix takes over the node's number of cores, once no job holds cores there; until then
  // nothing is placed there.
  void follow_hardware(NodeIndex node);

  // Room may have grown in a way that the placer does not see: a node is up, a limit was raised.
  void capacity_grew() { capacity_grew_ = true; }

  // ---- the line
  // A new Pending job: placed at once (true), or in line. While place_waiting() is due it is only
  // put in line.
  bool try_new(Job& job);
  // In line, without an attempt to place it.
  void enqueue(Job& job);
  // It waits no longer, because it ends or is held.
  void withdraw(const Job& job);
  void set_priority(Job& job, std::int32_t priority);
  // The node is used no longer: room that was kept there is looked for elsewhere.
  void leave_node(NodeIndex node);
  // Compacts the rows and tries the line, if room grew. The jobs that got a place, in order.
  std::vector<JobId> place_waiting();

  // ---- places
  // On the cores that it had before the head restarted, and in the first row where they are free.
  // False: that is not possible. The job's cells are filled in.
  bool restore(Job& job);
  // Gives back cells and memory.
  void unplace(Job& job);

  // ---- views
  [[nodiscard]] std::optional<Spot> find_spot(const Job& job) const;

  [[nodiscard]] const Matrix& matrix() const { return matrix_; }

  [[nodiscard]] const Reservations& on_node(NodeIndex node) const { return reserved_[node]; }

  [[nodiscard]] bool may_use(const Job& job, NodeIndex node) const;
  [[nodiscard]] base::Bytes free_memory(const Job& job, NodeIndex node) const;
  // The job ahead in line for which room is kept that this one may not take.
  [[nodiscard]] std::optional<JobId> behind(const Job& job) const;

  [[nodiscard]] bool is_in_line(const Job& job) const { return waiting_.contains(job.wait); }

  [[nodiscard]] const std::set<WaitKey>& waiting() const { return waiting_; }

  [[nodiscard]] base::Result<void> check() const;

 private:
  // Room kept for the first in line: nothing behind it in line may take it.
  struct Promise {
    JobId job{0};
    WaitKey wait;             // its place in line
    RowId row{0};             // 0: every row (an exclusive job)
    std::vector<bool> nodes;  // [node]
    base::Bytes memory{0};
  };

  [[nodiscard]] std::vector<Candidate> candidates(const Job& job,
                                                  std::optional<std::size_t> row) const;
  [[nodiscard]] bool is_behind_promise(const Job& job) const;
  [[nodiscard]] bool comes_before_promise(const Job& job) const;
  [[nodiscard]] bool promise_holds() const;
  void promise_to(const Job& job);
  bool try_place(Job& job);
  void put(Job& job, const Spot& spot);
  void take_cells(Job& job, std::size_t row);
  bool make_room(const Job& job);
  void compact();
  bool move_down(Job& job);
  [[nodiscard]] bool is_promised_cell(std::size_t position, const Footprint& cells) const;
  [[nodiscard]] base::Result<void> check_matrix() const;
  [[nodiscard]] base::Result<void> check_reservations() const;
  [[nodiscard]] base::Result<void> check_line() const;

  const ClusterConfig& config_;
  const NodeTable& nodes_;
  JobTable& jobs_;
  Matrix matrix_;
  std::vector<Reservations> reserved_;  // [node]
  std::set<WaitKey> waiting_;           // Pending jobs that are not held
  std::optional<Promise> promise_;
  bool capacity_grew_ = false;
  std::vector<std::pair<RowId, NodeIndex>> freed_;  // cells since the last compaction
};

}  // namespace score::gang
