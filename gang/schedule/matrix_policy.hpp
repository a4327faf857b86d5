#pragma once
// MatrixPolicy puts a job into the first row with room, on the nodes with the fewest jobs. If no
// row has room, it opens one. Room is promised to the first job in the queue, and jobs move to
// lower rows when others end.

#include "gang/schedule/backfill.hpp"
#include "gang/schedule/policy.hpp"

#include <cstdint>
#include <set>
#include <string>

namespace score::gang {

class MatrixPolicy : public Policy {
 public:
  struct Rules {
    bool migrates = true;    // jobs move to lower rows; else they stay where they were put
    bool long_rows = true;   // long jobs have rows of their own
    bool keeps_rows = true;  // limits the rows that long-running jobs hold; see Room::may_hold()
  };

  explicit MatrixPolicy(Room& room) : MatrixPolicy(room, Rules{}) {}

  MatrixPolicy(Room& room, Rules rules) : room_(room), rules_(rules) {}

  void add_node() override;
  void begin_pass(TimePoint now) override;
  [[nodiscard]] std::optional<Spot> find_spot(const Job& job) const override;
  bool stays(const Job& job) override;
  void placed(const Job& job) override;
  void unplaced(const Job& job) override;
  void withdrawn(const Job& job) override;
  void reordered() override;
  [[nodiscard]] std::optional<JobId> promised() const override;
  void drop_promise() override;
  void leave_node(NodeIndex node) override;
  bool repack() override;

  [[nodiscard]] bool tries_alone(const Job& job) const override { return !is_long(job); }

  [[nodiscard]] bool skips_larger(const Job& job) const override { return !is_long(job); }

  [[nodiscard]] std::uint32_t boost_of(const Job& job) const override;

  [[nodiscard]] const std::set<JobId>* boosted() const override { return &long_jobs_; }

  [[nodiscard]] std::string why_waits(const Job& job) const override;
  [[nodiscard]] Turn turn_of(const Job& job) const override;
  [[nodiscard]] std::optional<JobId> behind(const Job& job) const override;
  [[nodiscard]] Withheld withheld(const Job& job, NodeIndex node) const override;

 protected:
  // `row` is nullopt for a new row.
  [[nodiscard]] bool may_hold(const Job& job, std::optional<std::size_t> row) const {
    return !rules_.keeps_rows || room_.may_hold(job, row);
  }

  // Returns the room that is kept from the job; nullptr if there is none.
  [[nodiscard]] const Kept* kept_from(const Job& job) const;

  [[nodiscard]] Room& room() { return room_; }

  [[nodiscard]] const Room& room() const { return room_; }

 private:
  // A promise keeps room for the first job in the queue: no job behind it may take that room.
  struct Promise {
    JobId job{0};
    WaitKey wait;  // its place in the queue
    Kept kept;
  };

  [[nodiscard]] bool is_long(const Job& job) const;

  [[nodiscard]] bool is_long_row(std::size_t position) const {
    return long_rows_.contains(room_.matrix().row_id(position));
  }

  // Returns whether a long job may start while other long jobs use its nodes.
  [[nodiscard]] bool may_start_beside(const Job& job) const {
    const ClusterConfig& config = room_.config();
    return estimate_of(job) <= (long_has_waited_ ? config.long_early : config.long_shared);
  }

  [[nodiscard]] std::vector<std::size_t> long_rows() const;
  [[nodiscard]] std::optional<Spot> find_long_spot(const Job& job, const Kept* kept) const;
  [[nodiscard]] std::int64_t free_in_front() const;
  [[nodiscard]] bool is_too_large(const Job& job) const;
  void note_too_large(const Job& job);
  [[nodiscard]] bool is_front_row(std::size_t position) const;

  [[nodiscard]] bool is_in_front(const Job& job) const {
    const auto row = room_.matrix().position(job.home);
    return row && is_front_row(*row);
  }

  [[nodiscard]] std::optional<std::size_t> row_to_promise(const Job& job) const;
  [[nodiscard]] bool may_take_row(std::size_t position, const Job& job) const;
  [[nodiscard]] bool may_open_row(const Job& job) const;
  void promise_to(const Job& job);
  [[nodiscard]] bool promise_holds() const;
  [[nodiscard]] bool is_promised_cell(std::size_t position, const Footprint& cells) const;
  bool move_down(const Job& job);

  Room& room_;
  Rules rules_;
  std::optional<Promise> promise_;
  Backfill backfill_{Placement::Easy};  // for the lowest rows of long jobs
  std::set<RowId> long_rows_;
  std::set<JobId> long_jobs_;     // placed ones
  std::vector<Shape> too_large_;  // of long jobs that found no room beside others in this pass
  bool long_has_waited_ = false;  // since the last time without long jobs
};

}  // namespace score::gang
