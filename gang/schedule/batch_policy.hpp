#pragma once
// BatchPolicy implements batch schedulers, for comparison with gang scheduling. There is one row,
// so nodes are shared only in space, and no job is ever switched. Backfill decides which jobs may
// start before others.

#include "gang/schedule/backfill.hpp"
#include "gang/schedule/policy.hpp"

namespace score::gang {

class BatchPolicy : public Policy {
 public:
  explicit BatchPolicy(Room& room) : room_(room), backfill_(room.config().placement) {}

  void begin_pass(TimePoint now) override;
  [[nodiscard]] std::optional<Spot> find_spot(const Job& job) const override;
  bool stays(const Job& job) override;
  void placed(const Job& job) override;
  void unplaced(const Job& job) override;

  void withdrawn(const Job& /*job*/) override { room_.set_grown(); }

  bool repack() override;

  [[nodiscard]] bool tries_alone(const Job& /*job*/) const override { return false; }

  [[nodiscard]] bool skips_larger(const Job& /*job*/) const override { return false; }

 private:
  Room& room_;
  Backfill backfill_;
};

}  // namespace score::gang
