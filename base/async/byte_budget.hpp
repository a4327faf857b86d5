#pragma once
// A ByteBudget counts the bytes that one user's connections hold in this process: input that has
// not been handled yet, or output that a peer has not read yet. It is pure and for one thread. A
// share counts as long as it lives.

#include <cstddef>
#include <memory>
#include <utility>

namespace score::inline base {

class ByteBudget {
 public:
  // No new work should begin once `room` bytes are in use; nothing beyond `most` bytes is accepted.
  // Requires room <= most.
  constexpr ByteBudget(std::size_t room, std::size_t most) : room_(room), most_(most) {}

  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  [[nodiscard]] bool has_room() const { return used_ < room_; }

  // An item larger than the whole budget is accepted only if the budget is empty.
  [[nodiscard]] bool may_add(std::size_t bytes) const {
    return used_ == 0 || (used_ <= most_ && bytes <= most_ - used_);
  }

  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  friend class ByteShare;

  std::size_t room_;
  std::size_t most_;
  std::size_t used_ = 0;
};

// A ByteShare is the part of a budget that one holder uses. Without a budget it only stores its
// size.
class ByteShare {
 public:
  ByteShare() = default;

  explicit ByteShare(std::shared_ptr<ByteBudget> budget, std::size_t bytes = 0)
      : budget_(std::move(budget)) {
    set(bytes);
  }

  ByteShare(const ByteShare&) = delete;
  ByteShare& operator=(const ByteShare&) = delete;

  ~ByteShare() { set(0); }

  // Moves the bytes that this share holds from its old budget to `budget`.
  void charge_to(std::shared_ptr<ByteBudget> budget) {
    const std::size_t held = bytes_;
    set(0);
    budget_ = std::move(budget);
    set(held);
  }

  void set(std::size_t bytes) {
    if (budget_) budget_->used_ += bytes - bytes_;
    bytes_ = bytes;
  }

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  [[nodiscard]] bool has_room() const { return !budget_ || budget_->has_room(); }

  [[nodiscard]] bool may_add(std::size_t bytes) const {
    return !budget_ || budget_->may_add(bytes);
  }

 private:
  std::shared_ptr<ByteBudget> budget_;
  std::size_t bytes_ = 0;
};

}  // namespace score::inline base
