#include "gang/control/beat_sender.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace score::gang {

namespace {
constexpr std::uint32_t kMostStay = 64;
}

BeatSender::BeatSender(const Tree& tree, Position self, const BeatTiming& timing,
                       TimePoint first_beat)
    : timing_(timing), way_(tree.ancestors(self)), round_at_(first_beat), first_beat_(first_beat) {
  SCORE_ASSERT(self != 0, "the head sends no heartbeats");
}

void BeatSender::begin_round(TimePoint now) {
  round_at_ = first_beat_ + ((now - first_beat_) / timing_.period + 1) * timing_.period;
  sent_.clear();
  tls_at_ = now + timing_.tls_after;
  doubt_at_ = *tls_at_ + timing_.doubt_after;
  retry_at_ = now;
}

// Returns false if this round has asked every ancestor. The next round begins with the parent
// again.
bool BeatSender::ask_next() {
  if (went_back_) {
    stay_ = stay_next_;
    stay_next_ = std::min(stay_next_ * 2, kMostStay);
    went_back_ = false;
  }
  sent_.clear();
  if (target_ + 1 < way_.size()) {
    ++target_;
    return true;
  }
  target_ = 0;
  retry_at_.reset();
  is_linked_ = false;
  is_deaf_ = true;
  return false;
}

BeatSender::Actions BeatSender::advance(TimePoint now) {
  Actions actions;
  if (now >= round_at_) {
    if (retry_at_) is_linked_ = false;  // a round ends without an answer
    if (retry_at_ && tls_at_) actions.beat_by_tls = true;
    begin_round(now);
  }
  if (tls_at_ && now >= *tls_at_) {
    tls_at_.reset();
    actions.beat_by_tls = true;
  }
  if (doubt_at_ && now >= *doubt_at_) {
    doubt_at_.reset();
    actions.doubts = true;
  }
  if (!retry_at_ || now < *retry_at_) return actions;
  const bool is_last = target_ + 1 == way_.size();
  if (sent_.size() >= timing_.tries * (is_last ? 2 : 1) && !ask_next()) {
    if (tls_at_) actions.beat_by_tls = true;
    tls_at_.reset();
    return actions;
  }
  sent_.push_back(now);
  retry_at_ = now + timing_.retry;
  actions.beat = {target(), now};
  return actions;
}

TimePoint BeatSender::next_deadline() const {
  TimePoint next = round_at_;
  if (retry_at_) next = std::min(next, *retry_at_);
  if (tls_at_) next = std::min(next, *tls_at_);
  if (doubt_at_) next = std::min(next, *doubt_at_);
  return next;
}

void BeatSender::hasten(TimePoint now) {
  round_at_ = std::min(round_at_, now + timing_.collect);
}

bool BeatSender::answered(Position from, const Answer& answer, TimePoint now) {
  const auto beat = std::find(sent_.begin(), sent_.end(), answer.sent);
  if (!retry_at_ || from != target() || beat == sent_.end() || now < answer.sent) return false;
  sent_.clear();
  retry_at_.reset();
  doubt_at_.reset();
  if (std::exchange(is_deaf_, false)) hasten(now);
  if (answer.is_linked) tls_at_.reset();
  if (!answer.is_linked && tls_at_) tls_at_ = now;
  is_linked_ = answer.is_linked;
  if (target_ != served_by_) ++moves_;
  if (went_back_ && target_ == 0) stay_next_ = 1;
  went_back_ = false;
  served_by_ = target_;
  if (stay_ > 0) {
    --stay_;
  } else if (answer.go_back) {
    const auto nearer =
        std::find(way_.begin(), way_.begin() + static_cast<long>(target_), *answer.go_back);
    went_back_ = nearer != way_.begin() + static_cast<long>(target_);
    if (went_back_) target_ = static_cast<std::size_t>(nearer - way_.begin());
  }
  return true;
}

}  // namespace score::gang
