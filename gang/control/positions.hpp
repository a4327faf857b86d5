#pragma once
// Positions is a set of members of the control network, stored as ranges. A member's position is
// its index among the members of one roster, sorted by rank; the head has position 0.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace score::gang {

using Position = std::uint32_t;

struct PositionRange {  // [begin, end)
  Position begin = 0, end = 0;

  [[nodiscard]] bool contains(Position position) const {
    return position >= begin && position < end;
  }

  [[nodiscard]] std::size_t count() const { return end > begin ? end - begin : 0; }

  friend auto operator<=>(const PositionRange&, const PositionRange&) = default;
};

// Every call except count() and contains() is linear in the number of ranges.
class Positions {
 public:
  Positions() = default;

  // The ranges may be in any order, overlap, or be empty.
  explicit Positions(std::span<const PositionRange> ranges);

  void add(PositionRange range);
  void remove(PositionRange range);
  void add(const Positions& others);
  // Keeps only the positions in the range.
  void clip(PositionRange range);

  [[nodiscard]] bool contains(Position position) const;
  [[nodiscard]] std::size_t count() const;

  [[nodiscard]] bool empty() const { return ranges_.empty(); }

  // The ranges are sorted; none is empty, and no two touch.
  [[nodiscard]] const std::vector<PositionRange>& ranges() const& { return ranges_; }

  // A loop over the ranges of a temporary would outlive the temporary, so this is deleted.
  const std::vector<PositionRange>& ranges() && = delete;

  friend bool operator==(const Positions&, const Positions&) = default;

 private:
  std::vector<PositionRange> ranges_;
};

}  // namespace score::gang
