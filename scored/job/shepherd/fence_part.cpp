#include "scored/job/shepherd/fence_part.hpp"

#include "proto/frames/key_values.hpp"

#include <string_view>
#include <utility>

namespace score::shepherd {

wire::FenceEnter FencePart::message_of(wire::FenceEnter::Step step) const {
  wire::FenceEnter message;
  message.set_sequence(pending_->sequence);
  message.set_pmix(pmix_);
  message.set_step(step);
  return message;
}

wire::FenceEnter FencePart::enter(PmiActions::Fence fence, bool in_pieces) {
  pending_ = std::move(fence);
  in_pieces_ = in_pieces;
  total_ = 0;
  result_.clear();
  return *resume();
}

std::optional<wire::FenceEnter> FencePart::resume() const {
  if (!pending_) return last_;
  const std::string& mine = pending_->key_values;
  wire::FenceEnter message =
      message_of(in_pieces_ ? wire::FenceEnter::ANNOUNCE : wire::FenceEnter::WHOLE);
  if (in_pieces_) {
    message.set_bytes(mine.size());
    message.set_offset(result_.size());
  }
  if (!in_pieces_ || mine.size() <= proto::kMaxFenceAtOnce) message.set_key_values(mine);
  return message;
}

FencePart::Step FencePart::take(const wire::FenceDone& message) {
  Step step;
  if (!pending_ || message.sequence() != pending_->sequence) return step;
  if (message.fetch() > 0) return fetched(message);
  if (message.bytes() == 0) {
    step.result = message.key_values();
  } else {
    if (message.bytes() > proto::kMaxFenceBytes) return step;
    if (message.bytes() != total_) result_.clear();  // begins again without the values of a node
    total_ = message.bytes();
    const std::uint64_t end = message.offset() + message.key_values().size();
    if (message.offset() > result_.size() || end < message.offset() || end > total_) return step;
    if (end > result_.size())
      result_ += std::string_view(message.key_values()).substr(result_.size() - message.offset());
    step.answer = message_of(wire::FenceEnter::TAKEN);
    step.answer->set_bytes(total_);
    step.answer->set_offset(result_.size());
    if (result_.size() == total_) step.result = std::exchange(result_, std::string());
  }
  if (!step.result) return step;
  last_ = step.answer;
  pending_.reset();
  return step;
}

FencePart::Step FencePart::fetched(const wire::FenceDone& message) const {
  Step step;
  const std::string& mine = pending_->key_values;
  if (message.offset() > mine.size() || message.fetch() > proto::kMaxFencePieceBytes) return step;
  step.answer = message_of(wire::FenceEnter::PIECE);
  step.answer->set_offset(message.offset());
  step.answer->set_key_values(mine.substr(message.offset(), message.fetch()));
  return step;
}

}  // namespace score::shepherd
