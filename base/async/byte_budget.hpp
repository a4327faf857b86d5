#pragma once
// Bytes that one user's connections hold in this process: what came for us and was not handled, or
// what waits until a peer reads it. Pure; one thread. A share is counted as long as it lives.

#include <cstddef>
#include <memory>
#include <utility>

namespace score::inline base {

class ByteBudget {
 public:
  // From `room` bytes on no new work should begin; beyond `most` nothing is taken. room <= most.
  constexpr ByteBudget(std::size_t room, std::size_t most) : room_(room), most_(most) {}

  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  [[nodiscard]] bool has_room() const { return used_ < room_; }

  // One that is larger than the whole budget is taken if there is nothing else.
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

// What one holder has of a budget. Without a budget it only remembers its size.
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

  // What is held moves from the old budget to this one.
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
