#pragma once
// The Ousterhout matrix keeps track of the taken cores in each row. A row is a slot and a column is
// a core; columns are grouped by node. The matrix knows only the places of jobs.

#include "base/ids.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace score::gang {

// NodeIndex is the dense number of a node within the scheduler, in the order of Cluster::add_node.
using NodeIndex = std::uint32_t;
// RowId names a row for its whole life; its position changes when rows below it are dropped.
using RowId = base::Id<struct RowTag, std::uint64_t>;

// UnitId names a unit of a generic resource, such as the first "gpu" of a node.
struct UnitId {
  NodeIndex node = 0;
  std::string name;
  std::uint32_t index = 0;

  friend auto operator<=>(const UnitId&, const UnitId&) = default;
};

// Footprint holds the cores and units of a job, which are the same in every row.
struct Footprint {
  std::vector<NodeIndex> nodes;                   // ascending
  std::vector<std::vector<std::uint32_t>> cores;  // [index into nodes], ascending
  std::vector<std::size_t> unit_bits{};           // see Matrix::unit_bit()

  friend bool operator==(const Footprint&, const Footprint&) = default;
};

// CoreMap marks the taken cores and units of one row, one bit each.
class CoreMap {
 public:
  explicit CoreMap(std::size_t words = 0) : words_(words) {}

  void resize(std::size_t words) { words_.resize(words); }

  [[nodiscard]] bool taken(std::size_t bit) const { return (words_[bit / 64] >> (bit % 64)) & 1U; }

  void take(std::size_t bit) { words_[bit / 64] |= std::uint64_t{1} << (bit % 64); }

  void give_back(std::size_t bit) { words_[bit / 64] &= ~(std::uint64_t{1} << (bit % 64)); }

 private:
  std::vector<std::uint64_t> words_;
};

class Matrix {
 public:
  NodeIndex add_node();  // with no cores yet
  // Makes room for up to `cores` cores of a node; nothing may be placed on it.
  void reserve(NodeIndex node, std::uint32_t cores);
  // Returns false if it is not possible now: jobs are placed on the node, and it would shrink or
  // its bits would have to move.
  bool set_cores(NodeIndex node, std::uint32_t cores);

  [[nodiscard]] std::uint32_t cores(NodeIndex node) const { return columns_[node].cores; }

  [[nodiscard]] std::size_t node_count() const { return columns_.size(); }

  [[nodiscard]] std::size_t row_count() const { return rows_.size(); }

  [[nodiscard]] RowId row_id(std::size_t position) const { return rows_[position].id; }

  [[nodiscard]] std::optional<std::size_t> position(RowId row) const;

  std::size_t open_row();  // returns its position: the last
  void drop_empty_rows();

  // Both calls require that the cores are free, or taken by this job.
  void occupy(std::size_t position, const Footprint& cells, base::JobId job);
  void vacate(std::size_t position, const Footprint& cells, base::JobId job);
  [[nodiscard]] bool is_free(std::size_t position, const Footprint& cells) const;

  [[nodiscard]] std::uint32_t free_cores(std::size_t position, NodeIndex node) const {
    return rows_[position].free[node];
  }

  [[nodiscard]] std::uint64_t free_cores(std::size_t position) const {
    return rows_[position].free_total;
  }

  // Returns the `count` lowest free cores; there must be that many.
  [[nodiscard]] std::vector<std::uint32_t> lowest_free(std::size_t position, NodeIndex node,
                                                       std::uint32_t count) const;

  [[nodiscard]] const std::vector<base::JobId>& jobs_at(std::size_t position,
                                                        NodeIndex node) const {
    return rows_[position].jobs[node];
  }

  // Returns the number of jobs on the node, over all rows.
  [[nodiscard]] std::uint32_t load(NodeIndex node) const { return columns_[node].load; }

  // Returns a map with the shape of a row in which every core is free.
  [[nodiscard]] CoreMap empty_map() const { return CoreMap(bits_ / 64); }

  [[nodiscard]] std::size_t bit(NodeIndex node, std::uint32_t core) const {
    return columns_[node].first_bit + core;
  }

  // Both apply to all cells of a footprint in such a map.
  void take(CoreMap& map, const Footprint& cells) const;
  [[nodiscard]] bool is_free(const CoreMap& map, const Footprint& cells) const;

  // ---- units: columns without cores
  // Returns the bit of the unit, which never changes. Maps made before a unit got its bit are too
  // small for it.
  std::size_t unit_bit(const UnitId& unit);
  [[nodiscard]] bool is_unit_free(std::size_t position, const UnitId& unit) const;

 private:
  struct Column {
    std::size_t first_bit = 0;
    std::uint32_t room = 0;   // bits
    std::uint32_t cores = 0;  // of them in use, <= room
    std::uint32_t load = 0;
  };

  struct Row {
    RowId id{0};
    CoreMap taken;
    std::vector<std::uint32_t> free;             // [node]
    std::vector<std::vector<base::JobId>> jobs;  // [node], unsorted
    std::uint64_t free_total = 0;
    std::size_t job_count = 0;
  };

  std::vector<Column> columns_;
  std::vector<Row> rows_;
  std::map<UnitId, std::size_t> unit_bits_;
  std::size_t next_unit_bit_ = 0;  // a multiple of 64: its word has no more bits
  std::size_t bits_ = 0;
  std::uint64_t next_row_ = 1;
};

}  // namespace score::gang
