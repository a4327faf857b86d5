#include "scored/node/idle/polled_time.hpp"

#include "pmlib/core/segment.hpp"
#include "pmlib/core/vain_polls.hpp"
#include "scored/node/kernel/kernel_call.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace score::node {

namespace {

constexpr std::size_t kStateBytes = sizeof(pm::ContextState);
constexpr std::size_t kBytes = pm::kPolledTimeAt + sizeof(std::uint64_t) - pm::kPollingAt;
constexpr std::size_t kRestedAt = offsetof(pm::SegmentHeader, rested_us) - pm::kPollingAt;
constexpr std::uint64_t kMostUs = std::uint64_t{1} << 50;  // fits into a Duration

struct Said {
  std::uint64_t polled_us = 0;
  bool rests = false;
  bool polls = false;
};

// A context that cannot be read counts as one that does not poll or rest.
[[gnu::hot]] Said read_context(int context) noexcept {
  std::array<std::byte, kBytes> bytes;
  const long got =
      kernel_call(SYS_pread64, context, address_of(bytes.data()), kBytes, pm::kPollingAt);
  if (got != static_cast<long>(kBytes)) return {};
  std::underlying_type_t<pm::ContextState> state = 0;
  std::uint64_t polled_us = 0, rested_us = 0;
  std::memcpy(&rested_us, bytes.data() + kRestedAt, sizeof rested_us);
  std::memcpy(&state, bytes.data(), kStateBytes);
  std::memcpy(&polled_us, bytes.data() + kBytes - sizeof polled_us, sizeof polled_us);
  const auto is = [state](pm::ContextState which) { return pm::ContextState{state} == which; };
  const bool waits = is(pm::ContextState::Waits);
  return {polled_us, waits || is(pm::ContextState::Rests), waits && rested_us == pm::kPollsInVain};
}

[[gnu::hot]] Said read_all(const ContextSet& contexts) noexcept {
  Said all{.rests = true};
  for (const UniqueFd& context : contexts) {
    const Said one = read_context(context.get());
    all.polled_us += one.polled_us;  // modulo 2^64
    all.rests = all.rests && one.rests;
    all.polls = all.polls || one.polls;
  }
  all.polls = all.polls && all.rests;
  return all;
}

}  // namespace

[[gnu::hot]] PolledTime::Reading PolledTime::read(Duration ran) noexcept {
  const ContextSet* contexts = shown_.load(std::memory_order_acquire);
  if (contexts == nullptr) return {};
  const Said said = read_all(*contexts);
  const std::uint64_t more_us = said.polled_us - std::exchange(said_us_, said.polled_us);
  const auto burst = kBurst * static_cast<std::int64_t>(contexts->size());
  credit_ = std::min<Duration>(credit_, burst);
  credit_ += std::chrono::duration_cast<Duration>(ran * kShare);
  const Duration more = std::chrono::microseconds(std::min(more_us, kMostUs));
  const Duration believed = said.polls ? more : std::min(more, credit_);
  credit_ -= std::min(believed, credit_);
  believed_ += believed;
  return {believed_, said.rests, said.polls};
}

[[gnu::hot]] void PolledTime::forget() noexcept {
  const ContextSet* contexts = shown_.load(std::memory_order_acquire);
  if (contexts != nullptr) said_us_ = read_all(*contexts).polled_us;
}

[[gnu::hot]] Duration PolledTime::of_first() const noexcept {
  const ContextSet* contexts = shown_.load(std::memory_order_acquire);
  if (contexts == nullptr) return Duration{0};
  return std::chrono::microseconds(
      std::min(read_context(contexts->front().get()).polled_us, kMostUs));
}

}  // namespace score::node
