#include "scored/node/switch/switch_trace.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <type_traits>

namespace score::node {

namespace {

using TraceWords = std::array<std::uint64_t, sizeof(SwitchRecord) / sizeof(std::uint64_t)>;
static_assert(std::is_trivially_copyable_v<SwitchRecord>);

}  // namespace

void SwitchTrace::Free::operator()(std::uint64_t* words) const {
  std::free(words);
}

SwitchTrace::SwitchTrace()
    : words_(static_cast<std::uint64_t*>(std::calloc(kEntries * kWords, sizeof(std::uint64_t)))) {
  static_assert(sizeof(SwitchRecord) <= kWords * sizeof(std::uint64_t));
  SCORE_ASSERT(words_ != nullptr);
}

[[gnu::hot]] void SwitchTrace::put(const SwitchRecord& record) noexcept {
  const std::uint64_t index = written_.load(std::memory_order_relaxed);
  claimed_.store(index + 1, std::memory_order_relaxed);
  const auto words = std::bit_cast<TraceWords>(record);
  std::uint64_t* cell = &words_[index % kEntries * kWords];
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::atomic_ref(cell[i]).store(words[i], std::memory_order_release);  // after the claim
  }
  written_.store(index + 1, std::memory_order_release);
}

void SwitchTrace::read_range(std::uint64_t from, std::uint64_t end, Extract& extract) const {
  extract.records.reserve(end - from);
  for (std::uint64_t index = from; index < end; ++index) {
    TraceWords words{};
    std::uint64_t* cell = &words_[index % kEntries * kWords];
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = std::atomic_ref(cell[i]).load(std::memory_order_acquire);  // before claimed_
    }
    if (claimed_.load(std::memory_order_relaxed) > index + kEntries) {
      ++extract.lost;  // overwritten during the reading
      continue;
    }
    extract.records.push_back(std::bit_cast<SwitchRecord>(words));
  }
}

SwitchTrace::Extract SwitchTrace::read(TimePoint since) const {
  Extract extract;
  const std::uint64_t end = written_.load(std::memory_order_acquire);
  extract.lost = end > kEntries ? end - kEntries : 0;
  read_range(extract.lost, end, extract);
  std::erase_if(extract.records, [since](const auto& record) { return record.due <= since; });
  return extract;
}

SwitchTrace::Extract SwitchTrace::read_new(std::uint64_t& seen, std::size_t most) const {
  Extract extract;
  const std::uint64_t end = written_.load(std::memory_order_acquire);
  const std::uint64_t kept = std::min<std::uint64_t>(kEntries, most);
  const std::uint64_t from = std::max(seen, end > kept ? end - kept : 0);
  extract.lost = from - seen;
  read_range(from, end, extract);
  seen = end;
  return extract;
}

}  // namespace score::node
