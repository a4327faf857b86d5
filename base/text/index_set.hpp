#pragma once
// An IndexSet is a set of numbers in the notation of job arrays: "0-99", "1,3,5-9:2".

#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::inline base {

class IndexSet {
 public:
  static constexpr std::uint32_t kMaxIndex = 999'999'999;
  static constexpr std::size_t kMaxTextBytes = 64 * 1024;

  // Parses numbers, ranges A-B and steps A-B:S, joined by commas, in any order; repeats count once.
  // Sizes are counted before numbers are made. Errors: Malformed; TooLarge (more than max_size
  // numbers, a number above kMaxIndex, text over kMaxTextBytes).
  [[nodiscard]] static Result<IndexSet> parse(std::string_view text, std::uint32_t max_size);

  [[nodiscard]] std::uint32_t size() const { return size_; }

  [[nodiscard]] bool empty() const { return size_ == 0; }

  [[nodiscard]] bool contains(std::uint32_t index) const { return next(index) == index; }

  // Returns the smallest number that is not below `from`.
  [[nodiscard]] std::optional<std::uint32_t> next(std::uint32_t from) const;
  // Returns the set of the numbers that are not below `from`.
  [[nodiscard]] IndexSet rest(std::uint32_t from) const;
  [[nodiscard]] IndexSet without(const IndexSet& other) const;

  // Returns the short form, from which parse() makes the same set. It is "" for an empty set.
  [[nodiscard]] std::string text() const;

  friend bool operator==(const IndexSet&, const IndexSet&) = default;

 private:
  struct Run {  // count >= 1 numbers
    std::uint32_t first = 0, count = 0, step = 1;

    [[nodiscard]] std::uint32_t last() const { return first + (count - 1) * step; }

    friend bool operator==(const Run&, const Run&) = default;
  };

  [[nodiscard]] static IndexSet of(const std::vector<std::uint32_t>& sorted);
  [[nodiscard]] std::vector<std::uint32_t> numbers() const;

  std::vector<Run> runs_;  // ascending, one after the other
  std::uint32_t size_ = 0;
};

}  // namespace score::inline base
