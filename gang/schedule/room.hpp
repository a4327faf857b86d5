#pragma once
// Room holds the room for jobs: the matrix of cores, and the reservations on each node. Policies
// decide about it, and Placer gives and takes places. It sends nothing.

#include "gang/matrix/matrix.hpp"
#include "gang/matrix/shape.hpp"
#include "gang/resources/node_places.hpp"
#include "gang/resources/row_places.hpp"
#include "gang/resources/units.hpp"
#include "gang/state/tables.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace score::gang {

// A Spot is a place that a job could have now.
struct Spot {
  std::optional<std::size_t> row;  // position; nullopt: in a new row, or none (overlay)
  Choice choice;
};

// Reservations describes the jobs that are placed on a node.
struct Reservations {
  base::Bytes memory{0};
  base::Bytes lent{0};  // of `memory`: of parked jobs, not in use
  base::Bytes open{0};  // of `lent`: what any job may have; the rest is for jobs of queue urgent
  base::Bytes withheld{0};  // from jobs without a grant; see Room::grant()
  base::Bytes scratch{0};
  std::set<JobId> jobs;  // including overlay jobs
  std::optional<JobId> exclusive;
  std::uint32_t high = 0;  // jobs of queue high, without overlay jobs
  NodePlaces places;       // of the jobs
};

// Kept is room that a job may not take, because it is kept for a different one.
struct Kept {
  RowId row{0};             // 0: every row
  std::vector<bool> nodes;  // [node]
  base::Bytes memory{0};    // on each of them
  Generic generic{};        // likewise
  base::Bytes scratch{0};   // likewise
};

// A job that is not short holds its row, perhaps for hours. Any means that it has no time limit, or
// one over ClusterConfig::long_limit. Long means that it has such a limit.
enum class Hold : std::uint8_t { Any, Long };
inline constexpr std::array kHolds = {Hold::Any, Hold::Long};

// The range is [first, last).
struct NodeRange {
  NodeIndex first = 0;
  NodeIndex last = UINT32_MAX;
};

class Room {
 public:
  explicit Room(Tables& tables)
      : config_(tables.config),
        nodes_(tables.nodes),
        calendar_(tables.calendar),
        jobs_(tables.jobs) {}

  // Must follow NodeTable::add().
  void add_node();
  // See Placer::follow_hardware().
  void follow_hardware(NodeIndex node);

  // ---- whether room has grown since the queue was tried
  void set_grown() { has_grown_ = true; }

  void set_known() { has_grown_ = false; }

  [[nodiscard]] bool has_grown() const { return has_grown_; }

  // ---- views
  [[nodiscard]] const Matrix& matrix() const { return matrix_; }

  [[nodiscard]] const NodeTable& nodes() const { return nodes_; }

  [[nodiscard]] const JobTable& jobs() const { return jobs_; }

  [[nodiscard]] const ClusterConfig& config() const { return config_; }

  [[nodiscard]] const Reservations& on_node(NodeIndex node) const { return reserved_[node]; }

  [[nodiscard]] const Units& units() const { return units_; }

  [[nodiscard]] bool may_use(const Job& job, NodeIndex node) const;

  // Returns whether the node has a place for the job within its user's share.
  [[nodiscard]] bool has_place(const Job& job, NodeIndex node) const {
    return reserved_[node].places.has_place(job.user, place_kind(job));
  }

  // Returns true if the user has all places that one may have on some node, or all rows, so that
  // other users may find room where this one finds none.
  [[nodiscard]] bool is_short_of_places(UserId user) const {
    return full_on_.contains(user) || row_places_.has_all(user, row_limits());
  }

  [[nodiscard]] const Calendar& calendar() const { return calendar_; }

  // Returns the job's properties that reservations depend on.
  [[nodiscard]] Occupant occupant(const Job& job) const;

  // Returns the memory that the job could have there.
  [[nodiscard]] base::Bytes free_memory(const Job& job, NodeIndex node) const;

  // Memory that parked jobs have left is given to certain waiting jobs only.
  using Grants = std::map<JobId, std::vector<std::pair<NodeIndex, base::Bytes>>>;
  // Replaces all grants, and what is withheld from other jobs [node]; empty: nothing.
  void grant(Grants grants, const std::vector<base::Bytes>& withheld);

  [[nodiscard]] bool has_grant(JobId job) const { return grants_.contains(job); }

  // Pretends that this memory is free [node], whoever asks; nullptr ends it. It must live until
  // then.
  void assume_free(const std::vector<base::Bytes>* free) { assumed_ = free; }

  // Returns whether the memory that the job has lent is free on all its nodes.
  [[nodiscard]] bool may_take_back(const Job& job) const;

  [[nodiscard]] base::Bytes free_scratch(NodeIndex node) const {
    return nodes_[node].info.scratch - reserved_[node].scratch;
  }

  // Returns the nodes of the range that could take tasks of the job in this row. A row of nullopt
  // means a new row, or no cores (overlay). `kept` is what the job may not take, or nullptr.
  [[nodiscard]] std::vector<Candidate> candidates(const Job& job, std::optional<std::size_t> row,
                                                  const Kept* kept = nullptr,
                                                  NodeRange range = {}) const;
  // Returns a spot in the row; see candidates().
  [[nodiscard]] std::optional<Spot> spot_in(const Job& job, std::optional<std::size_t> row,
                                            const Kept* kept = nullptr, NodeRange range = {}) const;

  // Returns whether the nodes are within as few leaf switches as the job asks for.
  [[nodiscard]] bool is_within_switches(const Job& job, const std::vector<NodeIndex>& nodes) const;

  // Returns a step's place in its allocation. Returns nullopt if other steps leave too few of the
  // allocation's cores free, or the allocation has no place itself.
  [[nodiscard]] std::optional<Spot> spot_inside(const Job& step) const;

  // Returns the number of rows, from the first, that the job may use or open: max_slots, and for an
  // urgent job the rows beyond them.
  [[nodiscard]] std::size_t rows_for(const Job& job) const {
    return config_.max_slots + (job.is_urgent() ? config_.urgent_slots : 0U);
  }

  // ---- rows that are kept for short jobs: see Hold

  // Returns true if the job holds the row that it is in.
  [[nodiscard]] bool holds_row(const Job& job, Hold kind) const;
  // Counts the held rows among the first max_slots.
  [[nodiscard]] std::size_t held_rows(Hold kind) const;

  // Returns the number of rows that may be held at the same time.
  [[nodiscard]] std::size_t most_held_rows(Hold kind) const {
    return config_.max_slots - kept_rows(kind);
  }

  // Returns true if the job may hold this row; nullopt means a new one. A short job holds none.
  // Jobs of queues that others make way for may hold every row, and a job that has its nodes alone
  // keeps no other job from a row. No job may have a row beyond the share of its user.
  [[nodiscard]] bool may_hold(const Job& job, std::optional<std::size_t> row) const;
  // Returns the limit that keeps the job from a new row because of its user's share, as text for
  // users; "" if there is none.
  [[nodiscard]] std::string why_no_row(const Job& job) const;
  // Returns the number of rows that jobs like it can never hold.
  [[nodiscard]] std::size_t rows_kept_from(const Job& job) const;
  // Returns true if the placed job is the first that holds its row and no more rows may be held.
  // Jobs that wait for this reason have room in the rest of its row.
  [[nodiscard]] bool opens_row(const Job& job) const;

  // Returns the number of usable nodes on which no job has cores in the row; nullopt means in any
  // row.
  [[nodiscard]] std::int64_t free_nodes(std::optional<std::size_t> row) const;

  // ---- changes
  void put(Job& job, const Spot& spot);
  // Puts the job on the cores that it had before the head restarted, in the first row where they
  // are free, and fills in its cells. Returns false if that is not possible.
  bool restore(Job& job);
  // Gives back cells, memory and units.
  void unplace(Job& job);
  // Replaces limits and queue of a placed job, which keeps its place. It must neither enter nor
  // leave queue exclusive.
  void change(Job& job, const base::ResourceRequest& request);
  // Lends the memory of a placed job that does not stay in memory on this member.
  void lend(Job& job, std::size_t member, base::Bytes stays, bool is_open);
  // Reserves again what the job has lent, whether it is free or not.
  void take_back(Job& job);
  // Moves the job to this row, where its cores must be free.
  void move(JobId id, std::size_t to);
  // Moves several jobs, whose cells must be free there once all of them have left.
  void move_all(const std::vector<std::pair<JobId, std::size_t>>& moves);
  // Returns a row and a node of it where cells were given back, the newest first; nullopt if there
  // are no more.
  std::optional<std::pair<RowId, NodeIndex>> take_freed();

  void drop_empty_rows() { matrix_.drop_empty_rows(); }

  // Computes everything again from the jobs and compares the result with the stored values.
  [[nodiscard]] base::Result<void> check() const;

 private:
  using Holders = std::array<std::uint32_t, kHolds.size()>;  // indexed by Hold

  void take_cells(Job& job, std::size_t row);
  void put_inside(Job& step);
  void take_place(const Job& job, NodeIndex node);
  void give_back_place(const Job& job, NodeIndex node);
  void occupy(Job& job, std::size_t row);
  void count(const Job& job, std::uint32_t change);
  void vacate(const Job& job, std::size_t row);
  bool make_room(const Job& job);
  [[nodiscard]] std::size_t kept_rows(Hold kind) const;
  [[nodiscard]] std::uint32_t holders(RowId row, Hold kind) const;
  [[nodiscard]] RowPlaces::Classes row_classes(const Job& job) const;
  [[nodiscard]] RowPlaces::Limits row_limits() const;
  [[nodiscard]] bool has_row_share(const Job& job, std::optional<std::size_t> row) const;
  [[nodiscard]] bool may_hold(const Job& job, std::optional<std::size_t> row, Hold kind) const;
  [[nodiscard]] bool has_scratch(const Job& job, NodeIndex node, const Kept* kept,
                                 base::Bytes share) const;
  [[nodiscard]] base::Result<void> check_matrix() const;
  [[nodiscard]] base::Result<void> check_reservations() const;

  const ClusterConfig& config_;
  const NodeTable& nodes_;
  const Calendar& calendar_;
  JobTable& jobs_;
  Matrix matrix_;
  Units units_{nodes_, matrix_};
  std::vector<Reservations> reserved_;       // [node]
  std::map<UserId, std::uint32_t> full_on_;  // nodes on which the user has all places of one user
  std::map<RowId, Holders> holders_;         // of the rows that have any
  Grants grants_;
  const std::vector<base::Bytes>* assumed_ = nullptr;
  RowPlaces row_places_;  // in classes: all jobs, and those of each Hold
  std::vector<std::pair<RowId, NodeIndex>> freed_;
  bool has_grown_ = false;
};

// ---- steps: groups of tasks in the cores of a job that is an allocation. A step has its own
// attempt, end and network, but no cells in the matrix: it takes its turns with its job.

// Returns the cores of each node of the allocation ([member], ascending) that the step may have
// now. These are the cores that no other step has, or all cores if it may overlap.
std::vector<std::vector<std::uint32_t>> cores_for_step(const JobTable& jobs, const Job& allocation,
                                                       const Job& step);

// Returns the step's request with its defaults. Errors: one line for the user (NotFound;
// WrongState: the job is not an allocation, or does not run; TooLarge: it would not fit even if it
// were alone there).
base::Result<Shape> check_step(const JobTable& jobs, const NodeTable& nodes,
                               const base::ResourceRequest& request);

}  // namespace score::gang
