#include "gang/job/deadlock.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace score::gang {

namespace {

bool is_identifier(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string words_of(const base::TaskWait& wait) {
  std::string text = is_identifier(wait.call)
                         ? fmt::format("rank {} in {}", wait.rank, wait.call)
                         : fmt::format("rank {} waits for a message", wait.rank);
  if (wait.source >= 0) text += fmt::format(" from rank {}", wait.source);
  if (wait.tag >= 0) text += fmt::format(", tag {}", wait.tag);
  if (wait.bytes > 0) text += fmt::format(", {} bytes", wait.bytes);
  return text;
}

// Sorts the waits by rank and keeps one of each rank.
void sort_by_rank(std::vector<base::TaskWait>& waits) {
  std::ranges::stable_sort(waits, {}, &base::TaskWait::rank);
  const auto twice = std::ranges::unique(waits, {}, &base::TaskWait::rank);
  waits.erase(twice.begin(), twice.end());
}

}  // namespace

std::vector<std::string> wait_lines(std::vector<base::TaskWait> waits) {
  sort_by_rank(waits);
  const std::size_t shown = std::min(waits.size(), kMaxWaitsListed);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < shown; ++i) lines.push_back(words_of(waits[i]));
  if (waits.size() > shown) lines.push_back(fmt::format("{} more", waits.size() - shown));
  return lines;
}

std::string deadlock_text(std::vector<base::TaskWait> waits, std::size_t tasks) {
  if (waits.empty()) return "deadlock: every task waits for a message and none can send one";
  sort_by_rank(waits);
  const std::size_t shown = std::min(waits.size(), kMaxWaitsShown);
  std::string text = "deadlock: no task can send";
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? ": " : "; ") + words_of(waits[i]);
  const std::size_t count = std::max(tasks, waits.size());
  if (count > shown) text += fmt::format("; {} more", count - shown);
  return text;
}

}  // namespace score::gang
