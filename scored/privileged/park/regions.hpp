// Reads /proc/PID/smaps: which regions of a process there are, and how much of each is in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace score::park {

struct Region {
  std::uint64_t start = 0, end = 0;  // addresses
  std::uint64_t rss = 0;             // bytes, as the following
  std::uint64_t pss = 0;             // part of `rss`; what processes share counts for each in part
  std::uint64_t anonymous = 0;       // of `rss`: what would go to swap
  std::uint64_t referenced = 0;      // of `rss`: used since the kernel last looked
  std::uint64_t swap = 0;
  bool is_fixed = false;  // locked, of huge pages, of a device, or shared

  [[nodiscard]] bool may_leave() const { return !is_fixed && anonymous > 0; }
};

// Parses the file in pieces of any length, and keeps the regions. What it does not understand is
// left out; a region without its addresses, or above kMostRegions, is not kept.
class RegionReader {
 public:
  static constexpr std::size_t kMostRegions = 1'000'000;

  void feed(std::string_view text);
  // Must be called at the end of the text.
  std::vector<Region> finish();

 private:
  void take_line(std::string_view line);
  void close_region();

  static constexpr std::size_t kMostLine = 4'096;  // the rest of a longer line is left out

  std::vector<Region> regions_;
  Region current_;
  char line_[kMostLine] = {};
  std::size_t length_ = 0;
};

}  // namespace score::park
