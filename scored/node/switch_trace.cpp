#include "scored/node/switch_trace.hpp"

#include <bit>
#include <type_traits>

namespace score::node {

namespace {

using Words = std::array<std::uint64_t, sizeof(SwitchRecord) / sizeof(std::uint64_t)>;
static_assert(std::is_trivially_copyable_v<SwitchRecord>);

}  // namespace

SwitchTrace::SwitchTrace() : cells_(new Cell[kEntries]) {
  static_assert(sizeof(SwitchRecord) <= sizeof(Cell));
}

void SwitchTrace::put(const SwitchRecord& record) noexcept {
  const std::uint64_t index = written_.load(std::memory_order_relaxed);
  claimed_.store(index + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  const auto words = std::bit_cast<Words>(record);
  Cell& cell = cells_[index % kEntries];
  for (std::size_t i = 0; i < words.size(); ++i) cell[i].store(words[i], std::memory_order_relaxed);
  written_.store(index + 1, std::memory_order_release);
}

SwitchTrace::Extract SwitchTrace::read(TimePoint since) const {
  Extract extract;
  const std::uint64_t end = written_.load(std::memory_order_acquire);
  extract.lost = end > kEntries ? end - kEntries : 0;
  for (std::uint64_t index = extract.lost; index < end; ++index) {
    Words words{};
    const Cell& cell = cells_[index % kEntries];
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = cell[i].load(std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (claimed_.load(std::memory_order_relaxed) > index + kEntries) {
      ++extract.lost;  // overwritten while it was read
      continue;
    }
    const auto record = std::bit_cast<SwitchRecord>(words);
    if (record.due > since) extract.records.push_back(record);
  }
  return extract;
}

}  // namespace score::node
