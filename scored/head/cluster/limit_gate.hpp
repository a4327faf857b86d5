#pragma once
// LimitGate answers the scheduler before it places a job: whether the limits of its user and
// account leave room for it, its rank by fair share, and the factor of its weight. It counts the
// jobs that have a place. The class is pure.

#include "gang/state/gate.hpp"
#include "scored/head/cluster/usage_tracker.hpp"
#include "scored/head/config/partitions.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace score::head {

class LimitGate final : public gang::Gate {
 public:
  struct Count {  // sums over jobs that have a place
    std::uint32_t jobs = 0;
    std::uint64_t nodes = 0;
    Bytes memory{0};

    friend bool operator==(const Count&, const Count&) = default;
  };

  // `rules`, `partitions` and `tracker` must outlive this object. `is_limited` returns whether user
  // limits apply to this user; it is called at each decision.
  LimitGate(const AccountRules& rules, const PartitionRules& partitions,
            const UsageTracker& tracker, std::function<bool(UserId)> is_limited)
      : rules_(rules),
        partitions_(partitions),
        tracker_(tracker),
        is_limited_(std::move(is_limited)) {}

  // ---- for gang::Cluster
  [[nodiscard]] bool is_open(const gang::Job& job, std::size_t nodes) const override;
  [[nodiscard]] std::string why_closed(const gang::Job& job, std::size_t nodes) const override;
  [[nodiscard]] std::int64_t rank(const gang::Job& job) const override;
  [[nodiscard]] std::uint32_t boost(const gang::Job& job) const override;
  void placed(const gang::Job& job) override;
  void unplaced(const gang::Job& job) override;

  // Updates ranks, weights and use from the tracker. Returns true if an answer has changed; the
  // caller must then call Cluster::reorder().
  bool refresh(WallTime now);

  // ---- views
  [[nodiscard]] Count of_user(UserId user) const;
  [[nodiscard]] Count of_account(const std::string& account) const;
  [[nodiscard]] Count of(const UsageTracker::Key& key) const;
  // Returns the sums of a user's jobs in a partition.
  [[nodiscard]] Count of_partition(const std::string& partition, UserId user) const;

 private:
  struct Place {
    UsageTracker::Key key;
    std::string partition;
    Count count;
  };

  struct Standing {
    double factor = 1;
    std::int64_t rank = 0;  // how many have a larger factor
    std::uint32_t boost = 1;

    friend bool operator==(const Standing& a, const Standing& b) {
      return a.rank == b.rank && a.boost == b.boost;
    }
  };

  enum class Limit : std::uint8_t { None, Jobs, Nodes, Memory, Hours };

  [[nodiscard]] static Limit first_limit(const RunningLimits& limits, const Count& has,
                                         double hours, const Count& needs);
  [[nodiscard]] Limit of_its_user(const gang::Job& job, const Count& needs) const;
  [[nodiscard]] Limit of_its_partition(const gang::Job& job, const Count& needs) const;
  [[nodiscard]] Limit of_its_account(const gang::Job& job, const Count& needs) const;
  [[nodiscard]] Standing standing_of(const UsageTracker::Key& key) const;
  void count(const Place& place, int sign);
  bool refresh_hours(WallTime now);

  const AccountRules& rules_;
  const PartitionRules& partitions_;
  const UsageTracker& tracker_;
  std::function<bool(UserId)> is_limited_;
  std::map<JobId, Place> places_;
  std::map<std::pair<std::string, UserId>, Count> users_;  // in each partition, and ("") in all
  std::map<std::string, Count> accounts_;
  std::map<UsageTracker::Key, Count> both_;
  UsageTracker::Totals totals_;                      // as of the last refresh()
  std::map<UsageTracker::Key, Standing> standings_;  // likewise
  std::map<std::string, double> account_hours_;      // of accounts with such a limit
  std::map<UserId, double> user_hours_;              // if there is such a limit
};

}  // namespace score::head
