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

  [[nodiscard]] bool may_share(const Job& job) const {
    return !long_has_waited_ && estimate_of(job) <= room_.config().long_shared;
  }

  // Returns how many long rows a long job may take; it takes the lowest ones.
  [[nodiscard]] std::size_t long_row_limit(const Job& job) const {
    return may_share(job) ? SIZE_MAX : room_.config().long_slots;
  }

  [[nodiscard]] bool is_in_lowest_long_row(const Job& job) const;
  [[nodiscard]] std::optional<std::size_t> row_to_promise(const Job& job) const;
  [[nodiscard]] bool may_take_row(std::size_t position, const Job& job) const;
  [[nodiscard]] bool may_open_row(const Job& job) const;
  [[nodiscard]] std::int64_t free_for_long() const;
  void promise_to(const Job& job);
  [[nodiscard]] bool promise_holds() const;
  [[nodiscard]] bool is_promised_cell(std::size_t position, const Footprint& cells) const;
  bool move_down(const Job& job);

  Room& room_;
  Rules rules_;
  std::optional<Promise> promise_;
  Backfill backfill_{Placement::Easy};  // for long jobs
  std::set<RowId> long_rows_;
  std::set<JobId> long_jobs_;     // placed ones
  bool long_has_waited_ = false;  // since the last time without long jobs
};

}  // namespace score::gang
