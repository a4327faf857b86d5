// A member sends the word of round r only when it has come and has received the words of all rounds
// before r. So the word of round r stands for 2^r members, and all rounds together stand for all
// members. An answer to a question is the same word, given under the same condition.
//
// Words for boundaries that this member has not reached yet are kept only for the latest such
// boundary. A dropped word costs the time of one question when the member comes there.
#include "gang/control/dissemination.hpp"

#include "base/assert.hpp"
#include "base/limits.hpp"

#include <algorithm>
#include <bit>

namespace score::gang {

namespace {

static_assert(base::limits::kMaxNodes <= (1U << Dissemination::kMaxRounds));

bool is_same(TimePoint a, TimePoint b) {
  return std::chrono::abs(a - b) <= base::kSameBoundary;
}

// Returns true if `t` can be subtracted from any other plausible time.
bool is_plausible(TimePoint t) {
  constexpr Duration kRange = std::chrono::hours{24 * 365 * 100};
  return t.time_since_epoch() >= -kRange && t.time_since_epoch() <= kRange;
}

bool is_later(TimePoint a, TimePoint b) {
  return a - b > base::kSameBoundary;
}

}  // namespace

Dissemination::Dissemination(std::uint32_t self, std::uint32_t count)
    : self_(self), count_(count), rounds_(static_cast<std::uint32_t>(std::bit_width(count - 1))) {
  SCORE_ASSERT(self < count && count <= base::limits::kMaxNodes, "a member of the job");
}

std::uint32_t Dissemination::after(std::uint32_t round) const {
  return (self_ + (1U << round)) % count_;
}

std::uint32_t Dissemination::before(std::uint32_t round) const {
  return (self_ + count_ - (1U << round)) % count_;
}

// Returns false if it has come there or to a later boundary already.
bool Dissemination::begin(TimePoint boundary) {
  if (has_come_ && !is_later(boundary, current_.boundary)) return false;
  if (has_come_ && round_ == rounds_) met_before_ = current_.boundary;
  has_come_ = true;
  current_ = {boundary, 0};
  if (ahead_.rounds != 0 && is_same(ahead_.boundary, boundary)) {
    current_.rounds = ahead_.rounds;
    ahead_.rounds = 0;
  }
  round_ = 0;
  is_quiet_ = false;
  return true;
}

void Dissemination::speak(TimePoint now, Sends& sends) {
  is_quiet_ = false;
  restart_asking(now);
  if (rounds_ > 0) sends.add({after(0), {current_.boundary, 0, false}});
  proceed(now, sends);
}

Dissemination::Sends Dissemination::come(TimePoint boundary, TimePoint now) noexcept {
  Sends sends;
  if (begin(boundary)) speak(now, sends);
  return sends;
}

Dissemination::Sends Dissemination::come_quietly(TimePoint boundary, TimePoint now) noexcept {
  Sends sends;
  if (!begin(boundary)) return sends;
  if (current_.rounds != 0) {
    speak(now, sends);
  } else {
    is_quiet_ = true;
  }
  return sends;
}

Dissemination::Sends Dissemination::hear(std::uint32_t from, const Word& word,
                                         TimePoint now) noexcept {
  Sends sends;
  const bool fits = word.round < rounds_ && is_plausible(word.boundary) &&
                    from == (word.asks ? after(word.round) : before(word.round));
  if (!fits) {
    ++ignored_;
    return sends;
  }
  const bool is_new = !has_come_ || is_later(word.boundary, current_.boundary);
  if (is_new && comes_at_once_) sends = come(word.boundary, now);
  if (is_quiet_ && is_same(word.boundary, current_.boundary)) speak(now, sends);
  if (word.asks) {
    answer(from, word, sends);
  } else {
    take(word, now, sends);
  }
  return sends;
}

void Dissemination::answer(std::uint32_t from, const Word& word, Sends& sends) {
  const bool is_current = has_come_ && is_same(word.boundary, current_.boundary);
  const bool is_said =
      is_current ? word.round <= round_ : met_before_ && is_same(word.boundary, *met_before_);
  if (is_said) sends.add({from, {word.boundary, word.round, false}});
}

void Dissemination::take(const Word& word, TimePoint now, Sends& sends) {
  const std::uint32_t bit = 1U << word.round;
  if (has_come_ && is_same(word.boundary, current_.boundary)) {
    current_.rounds |= bit;
    proceed(now, sends);
  } else if (has_come_ && !is_later(word.boundary, current_.boundary)) {
    ++ignored_;
  } else if (ahead_.rounds != 0 && is_same(word.boundary, ahead_.boundary)) {
    ahead_.rounds |= bit;
  } else if (ahead_.rounds == 0 || is_later(word.boundary, ahead_.boundary)) {
    ahead_ = {word.boundary, bit};
  }
}

void Dissemination::proceed(TimePoint now, Sends& sends) {
  const std::uint32_t was = round_;
  while (round_ < rounds_ && (current_.rounds & (1U << round_)) != 0) {
    if (++round_ < rounds_) sends.add({after(round_), {current_.boundary, round_, false}});
  }
  if (round_ != was) restart_asking(now);
}

void Dissemination::restart_asking(TimePoint now) {
  asks_ = 0;
  asks_at_ = now + kFirstAsk;
}

Dissemination::Sends Dissemination::advance(TimePoint now) noexcept {
  Sends sends;
  const auto due = next_deadline();
  if (!due || now < *due) return sends;
  ++asks_;
  const std::uint32_t doublings = asks_ / kAsksPerPause;
  asks_at_ = now + std::min(kFirstAsk * (1 << std::min(doublings, 8U)), kSlowestAsk);
  sends.add({before(round_), {current_.boundary, round_, true}});
  return sends;
}

std::optional<TimePoint> Dissemination::next_deadline() const noexcept {
  if (!is_waiting() || asks_ == kMaxAsks) return std::nullopt;
  return asks_at_;
}

bool Dissemination::has_met(TimePoint boundary) const noexcept {
  if (has_come_ && is_same(boundary, current_.boundary)) return round_ == rounds_;
  return met_before_ && is_same(boundary, *met_before_);
}

}  // namespace score::gang
