#pragma once
// PeerMeter is the traffic matrix. It turns counts of frames between nodes into a map of rates of
// at most kMostSide x kMostSide. With more nodes, adjacent nodes share a row and a column. It is
// pure.

#include "base/ids.hpp"
#include "base/time.hpp"
#include "monitor/sampler/samples.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace score::monitor {

class PeerMeter {
 public:
  static constexpr std::uint32_t kMostSide = 64;
  static constexpr Duration kKept = 3s;  // lifetime of a rate that is not sent again

  struct Cell {
    std::uint32_t from = 0, to = 0;  // rows and columns of the map
    double frames = 0;               // per second of real time

    friend bool operator==(const Cell&, const Cell&) = default;
  };

  // Sets the number of nodes of the cluster.
  void set_nodes(std::uint32_t count);
  // Processes a sample. `nodes` are the nodes of the attempt, in its order; entries that do not fit
  // it are dropped.
  void feed(NodeId from, TimePoint taken, const GangSample& gang, std::span<const NodeId> nodes);

  void forget() { rows_.clear(); }

  // Returns how many adjacent nodes share a row and a column, at least 1.
  [[nodiscard]] std::uint32_t nodes_per_cell() const { return nodes_per_cell_; }

  // Returns the cells that are not 0, by row and column, of all jobs or of one.
  [[nodiscard]] std::vector<Cell> cells(TimePoint now, std::optional<JobId> job) const;

 private:
  struct Row {
    TimePoint taken{};
    std::vector<std::uint32_t> frames;  // [column], so far, modulo 2^32
    std::vector<double> rates;          // [column]; empty: sent once
  };

  [[nodiscard]] std::size_t side() const {
    return (node_count_ + nodes_per_cell_ - 1) / nodes_per_cell_;
  }

  void sweep(TimePoint now);

  std::uint32_t node_count_ = 0, nodes_per_cell_ = 1;
  std::map<std::pair<AttemptId, NodeId>, Row> rows_;
  TimePoint swept_{};
};

}  // namespace score::monitor
