// This file is tested by placement_test.cpp.
#include "gang/matrix/matrix.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace score::gang {

NodeIndex Matrix::add_node() {
  columns_.emplace_back();
  for (Row& row : rows_) {
    row.free.push_back(0);
    row.jobs.emplace_back();
  }
  return static_cast<NodeIndex>(columns_.size() - 1);
}

void Matrix::reserve(NodeIndex node, std::uint32_t cores) {
  Column& column = columns_[node];
  SCORE_ASSERT(column.load == 0, "node={} load={}", node, column.load);
  if (cores <= column.room) return;
  // New bits are added at the end; nodes rarely grow, so the old ones stay unused.
  column.first_bit = bits_;
  column.room = (cores + 63) / 64 * 64;
  bits_ += column.room;
  for (Row& row : rows_) row.taken.resize(bits_ / 64);
}

bool Matrix::set_cores(NodeIndex node, std::uint32_t cores) {
  Column& column = columns_[node];
  if (column.load > 0 && (cores < column.cores || cores > column.room)) return false;
  if (column.load == 0) reserve(node, cores);
  for (Row& row : rows_) {
    row.free[node] = row.free[node] + cores - column.cores;
    row.free_total = row.free_total + cores - column.cores;
  }
  column.cores = cores;
  return true;
}

std::optional<std::size_t> Matrix::position(RowId row) const {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].id == row) return i;
  }
  return std::nullopt;
}

std::size_t Matrix::open_row() {
  Row row;
  row.id = RowId{next_row_++};
  row.taken = empty_map();
  row.jobs.resize(columns_.size());
  for (const Column& column : columns_) {
    row.free.push_back(column.cores);
    row.free_total += column.cores;
  }
  rows_.push_back(std::move(row));
  return rows_.size() - 1;
}

void Matrix::drop_empty_rows() {
  std::erase_if(rows_, [](const Row& row) { return row.job_count == 0; });
}

void Matrix::occupy(std::size_t position, const Footprint& cells, base::JobId job) {
  Row& row = rows_[position];
  for (std::size_t i = 0; i < cells.nodes.size(); ++i) {
    const NodeIndex node = cells.nodes[i];
    for (const std::uint32_t core : cells.cores[i]) {
      SCORE_ASSERT(!row.taken.taken(bit(node, core)), "job={} node={} core={}", job, node, core);
      row.taken.take(bit(node, core));
    }
    const auto count = static_cast<std::uint32_t>(cells.cores[i].size());
    row.free[node] -= count;
    row.free_total -= count;
    row.jobs[node].push_back(job);
    ++columns_[node].load;
  }
  for (const std::size_t unit : cells.unit_bits) {
    SCORE_ASSERT(!row.taken.taken(unit), "job={} unit={}", job, unit);
    row.taken.take(unit);
  }
  ++row.job_count;
}

void Matrix::vacate(std::size_t position, const Footprint& cells, base::JobId job) {
  Row& row = rows_[position];
  for (std::size_t i = 0; i < cells.nodes.size(); ++i) {
    const NodeIndex node = cells.nodes[i];
    for (const std::uint32_t core : cells.cores[i]) {
      SCORE_ASSERT(row.taken.taken(bit(node, core)), "job={} node={} core={}", job, node, core);
      row.taken.give_back(bit(node, core));
    }
    const auto count = static_cast<std::uint32_t>(cells.cores[i].size());
    row.free[node] += count;
    row.free_total += count;
    std::erase(row.jobs[node], job);
    --columns_[node].load;
  }
  for (const std::size_t unit : cells.unit_bits) row.taken.give_back(unit);
  --row.job_count;
}

bool Matrix::is_free(std::size_t position, const Footprint& cells) const {
  return is_free(rows_[position].taken, cells);
}

bool Matrix::is_free(const CoreMap& map, const Footprint& cells) const {
  for (std::size_t i = 0; i < cells.nodes.size(); ++i) {
    for (const std::uint32_t core : cells.cores[i]) {
      if (map.taken(bit(cells.nodes[i], core))) return false;
    }
  }
  return std::none_of(cells.unit_bits.begin(), cells.unit_bits.end(),
                      [&map](std::size_t unit) { return map.taken(unit); });
}

void Matrix::take(CoreMap& map, const Footprint& cells) const {
  for (std::size_t i = 0; i < cells.nodes.size(); ++i) {
    for (const std::uint32_t core : cells.cores[i]) map.take(bit(cells.nodes[i], core));
  }
  for (const std::size_t unit : cells.unit_bits) map.take(unit);
}

std::size_t Matrix::unit_bit(const UnitId& unit) {
  const auto known = unit_bits_.find(unit);
  if (known != unit_bits_.end()) return known->second;
  if (next_unit_bit_ % 64 == 0) {
    next_unit_bit_ = bits_;
    bits_ += 64;
    for (Row& row : rows_) row.taken.resize(bits_ / 64);
  }
  return unit_bits_[unit] = next_unit_bit_++;
}

bool Matrix::is_unit_free(std::size_t position, const UnitId& unit) const {
  const auto known = unit_bits_.find(unit);
  return known == unit_bits_.end() || !rows_[position].taken.taken(known->second);
}

std::vector<std::uint32_t> Matrix::lowest_free(std::size_t position, NodeIndex node,
                                               std::uint32_t count) const {
  std::vector<std::uint32_t> out;
  const CoreMap& taken = rows_[position].taken;
  for (std::uint32_t core = 0; out.size() < count && core < columns_[node].cores; ++core) {
    if (!taken.taken(bit(node, core))) out.push_back(core);
  }
  SCORE_ASSERT(out.size() == count, "node={} wanted={} free={}", node, count, out.size());
  return out;
}

}  // namespace score::gang
