// A PeerSet is a bitmap of peers that lies in the context segment: 125 bytes for 1,000 peers. A
// walk reads size/64 words, so work that is due for a few of many peers is cheap and needs no list.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace score::pm {

class PeerSet {
 public:
  // `words` must have space for `size` peers and outlive the set; bits beyond `size` stay 0.
  PeerSet(std::span<std::uint64_t> words, std::uint32_t size) : words_(words), size_(size) {}

  static constexpr std::uint32_t words_for(std::uint32_t size) { return (size + 63) / 64; }

  void insert(std::uint32_t peer) { words_[peer / 64] |= bit_of(peer); }

  void erase(std::uint32_t peer) { words_[peer / 64] &= ~bit_of(peer); }

  bool contains(std::uint32_t peer) const { return (words_[peer / 64] & bit_of(peer)) != 0; }

  bool empty() const {
    for (const std::uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }

  // Returns the first member at or after `from`, or `size` if there is none.
  std::uint32_t next(std::uint32_t from) const {
    if (from >= size_) return size_;
    std::uint64_t word = words_[from / 64] & (~std::uint64_t{0} << (from % 64));
    for (std::uint32_t index = from / 64;;) {
      if (word != 0) return index * 64 + static_cast<std::uint32_t>(std::countr_zero(word));
      if (++index >= words_.size()) return size_;
      word = words_[index];
    }
  }

  // Returns the first member at or after `from` and wraps around, to serve members in turn.
  std::uint32_t next_in_turn(std::uint32_t from) const {
    const std::uint32_t found = next(from);
    return found < size_ ? found : next(0);
  }

  std::uint32_t size() const { return size_; }

 private:
  static constexpr std::uint64_t bit_of(std::uint32_t peer) {
    return std::uint64_t{1} << (peer % 64);
  }

  std::span<std::uint64_t> words_;
  std::uint32_t size_;
};

}  // namespace score::pm
