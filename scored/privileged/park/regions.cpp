#include "scored/privileged/park/regions.hpp"

#include <charconv>
#include <utility>

namespace score::park {
namespace {

constexpr std::uint64_t kKilobyte = 1'024;
constexpr std::uint64_t kMostKilobytes = UINT64_MAX / kKilobyte / 2;

// Reads "55d0c2a00000-55d0c2a21000 rw-p ...". Returns false if the line does not begin like that.
bool read_addresses(std::string_view line, Region& out) {
  const char* const last = line.data() + line.size();
  const auto [dash, failed] = std::from_chars(line.data(), last, out.start, 16);
  if (failed != std::errc() || dash == last || *dash != '-') return false;
  const auto [space, wrong] = std::from_chars(dash + 1, last, out.end, 16);
  return wrong == std::errc() && space != last && *space == ' ' && out.start < out.end;
}

// Reads "Rss:    123 kB" into bytes.
bool read_size(std::string_view line, std::string_view name, std::uint64_t& out) {
  if (!line.starts_with(name)) return false;
  line.remove_prefix(name.size());
  const auto first = line.find_first_not_of(' ');
  if (first == line.npos) return true;
  std::uint64_t kilobytes = 0;
  std::from_chars(line.data() + first, line.data() + line.size(), kilobytes);
  if (kilobytes <= kMostKilobytes) out = kilobytes * kKilobyte;
  return true;
}

// The flags are two letters each.
bool has_flag(std::string_view flags, std::string_view flag) {
  for (std::size_t at = 0; at + 1 < flags.size(); ++at) {
    const bool begins = at == 0 || flags[at - 1] == ' ';
    if (begins && flags.substr(at, 2) == flag) return true;
  }
  return false;
}

}  // namespace

void RegionReader::close_region() {
  if (current_.end > 0 && regions_.size() < kMostRegions) regions_.push_back(current_);
  current_ = {};
}

void RegionReader::take_line(std::string_view line) {
  Region next;
  if (read_addresses(line, next)) {
    close_region();
    current_ = next;
    return;
  }
  constexpr std::string_view kFlags = "VmFlags: ";
  if (line.starts_with(kFlags)) {
    line.remove_prefix(kFlags.size());
    for (const std::string_view fixed : {"lo", "ht", "io", "pf", "sh"}) {
      current_.is_fixed |= has_flag(line, fixed);
    }
    return;
  }
  read_size(line, "Rss:", current_.rss) || read_size(line, "Pss:", current_.pss) ||
      read_size(line, "Anonymous:", current_.anonymous) ||
      read_size(line, "Referenced:", current_.referenced) ||
      read_size(line, "Swap:", current_.swap);
}

void RegionReader::feed(std::string_view text) {
  for (const char letter : text) {
    if (letter == '\n') {
      take_line({line_, length_});
      length_ = 0;
    } else if (length_ < kMostLine) {
      line_[length_++] = letter;
    }
  }
}

std::vector<Region> RegionReader::finish() {
  if (length_ > 0) take_line({line_, std::exchange(length_, 0)});
  close_region();
  return std::exchange(regions_, {});
}

}  // namespace score::park
