// The cycle must give exact shares and is repeated until something changes, so its content is an
// even interleaving of the weights. The heaviest row takes places at equal distances on a circle,
// the next one likewise among the remaining places; among equals the more urgent row is first. The
// passes decide where on that circle a new cycle begins: at the place whose continuation agrees
// longest with plain stride scheduling. So even cycles that changes cut short after a few slices
// follow the passes.
#include "gang/matrix/stride.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace score::gang {

namespace {

constexpr std::uint64_t kStrideUnit = std::uint64_t{1} << 32;

bool contains(const std::vector<std::uint32_t>& list, std::uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Returns how far `circle` must be rotated so that it agrees with `wanted` for as long as possible.
std::ptrdiff_t best_shift(const std::vector<std::uint32_t>& circle,
                          const std::vector<std::uint32_t>& wanted) {
  std::size_t best = 0;
  std::size_t longest = 0;
  for (std::size_t shift = 0; shift < circle.size(); ++shift) {
    std::size_t agreed = 0;
    while (agreed < circle.size() && circle[(shift + agreed) % circle.size()] == wanted[agreed]) {
      ++agreed;
    }
    if (agreed > longest) std::tie(longest, best) = std::tuple(agreed, shift);
  }
  return static_cast<std::ptrdiff_t>(best);
}

}  // namespace

std::vector<std::uint32_t> slices_per_cycle(const std::vector<WeightedRow>& rows) {
  std::uint64_t sum = 0;
  std::uint32_t divisor = 0;
  for (const WeightedRow& r : rows) {
    sum += r.weight;
    divisor = std::gcd(divisor, r.weight);
  }
  std::vector<std::uint32_t> out;
  for (const WeightedRow& r : rows) out.push_back(r.weight / divisor);
  if (rows.empty() || sum / divisor <= kMaxCycleSlices) return out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint64_t scaled = std::uint64_t{rows[i].weight} * kMaxCycleSlices / sum;
    out[i] = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(scaled));
  }
  return out;
}

std::vector<std::uint32_t> interleave(const std::vector<std::uint32_t>& slices) {
  const std::size_t total = std::accumulate(slices.begin(), slices.end(), std::size_t{0});
  std::vector<std::uint32_t> heaviest_first(slices.size());
  std::iota(heaviest_first.begin(), heaviest_first.end(), 0U);
  std::stable_sort(heaviest_first.begin(), heaviest_first.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return slices[a] > slices[b]; });
  constexpr std::uint32_t kFree = UINT32_MAX;
  std::vector<std::uint32_t> circle(total, kFree);
  const auto free_from = [&](std::size_t at) {
    while (circle[at % total] != kFree) ++at;
    return at % total;
  };
  for (const std::uint32_t row : heaviest_first) {
    const std::size_t first = free_from(0);
    for (std::size_t i = 0; i < slices[row]; ++i) {
      circle[free_from(first + i * total / slices[row])] = row;
    }
  }
  return circle;
}

void Stride::set_rows(const std::vector<WeightedRow>& rows) {
  std::vector<Entry> old = std::move(entries_);
  std::uint64_t least = UINT64_MAX;
  for (const Entry& e : old) {
    const auto stays = [&e](const WeightedRow& r) { return r.row == e.row.row; };
    if (std::any_of(rows.begin(), rows.end(), stays)) least = std::min(least, e.pass);
  }
  entries_.clear();
  for (const WeightedRow& row : rows) {
    const auto known = std::find_if(old.begin(), old.end(),
                                    [&row](const Entry& e) { return e.row.row == row.row; });
    Entry entry{row, 0, 0, true};
    if (known != old.end()) {
      entry = *known;
      // Passes are kept relative to the least; a lead is worth more slices to a heavier row.
      entry.pass = (entry.pass - least) * entry.row.weight / row.weight;
      entry.row = row;
    }
    entries_.push_back(entry);
  }
}

void Stride::ran(std::size_t index) {
  Entry& e = entries_[index];
  last_was_fresh_ = e.fresh;
  e.fresh = false;
  e.pass += kStrideUnit / e.row.weight;
  e.last_ran = ++slices_;
}

std::size_t Stride::next() const {
  SCORE_ASSERT(!entries_.empty(), "a cycle has rows");
  const auto urgency = [this](const Entry& e) {
    const bool behind = e.fresh == last_was_fresh_;  // on ties the other kind goes first
    return std::tuple(e.pass, behind, e.last_ran);
  };
  const auto best =
      std::min_element(entries_.begin(), entries_.end(),
                       [&](const Entry& a, const Entry& b) { return urgency(a) < urgency(b); });
  return static_cast<std::size_t>(best - entries_.begin());
}

std::vector<std::uint32_t> Stride::plan_cycle() const {
  std::vector<WeightedRow> rows;
  for (const Entry& e : entries_) rows.push_back(e.row);
  const std::vector<std::uint32_t> slices = slices_per_cycle(rows);
  const std::uint32_t total = std::accumulate(slices.begin(), slices.end(), 0U);

  Stride ahead = *this;
  std::vector<std::uint32_t> wanted;
  std::vector<std::uint32_t> by_urgency;  // rows in the order of their first slice
  while (wanted.size() < total) {
    wanted.push_back(static_cast<std::uint32_t>(ahead.next()));
    ahead.ran(wanted.back());
    if (!contains(by_urgency, wanted.back())) by_urgency.push_back(wanted.back());
  }
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (!contains(by_urgency, i)) by_urgency.push_back(i);
  }
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> sorted_slices;
  for (const std::uint32_t i : by_urgency) sorted_slices.push_back(slices[i]);
  for (const std::uint32_t i : interleave(sorted_slices)) order.push_back(by_urgency[i]);
  std::rotate(order.begin(), order.begin() + best_shift(order, wanted), order.end());
  return order;
}

}  // namespace score::gang
