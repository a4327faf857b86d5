// This table names its entries by numbers, which consist of 20 bits of index and 12 bits of use
// count. A stale or invented number therefore matches no entry. The number 0 is never used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace score::pm::fi {

template <class T>
class IdTable {
 public:
  // Returns the number of the new entry; 0 if there are a million entries.
  std::uint32_t add(T value) {
    if (free_.empty()) {
      if (entries_.size() >= kMaxEntries) return 0;
      free_.push_back(static_cast<std::uint32_t>(entries_.size()));
      entries_.push_back({});
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    Entry& entry = entries_[index];
    entry.value = std::move(value);
    entry.is_used = true;
    ++count_;
    return entry.use << kIndexBits | index;
  }

  // Returns null if `id` names no entry. The pointer is valid until the next add().
  T* find(std::uint32_t id) {
    const std::uint32_t index = id & (kMaxEntries - 1);
    if (index >= entries_.size()) return nullptr;
    Entry& entry = entries_[index];
    return entry.is_used && entry.use == id >> kIndexBits ? &entry.value : nullptr;
  }

  // Removes and returns the entry; `id` must name one.
  T take(std::uint32_t id) {
    const std::uint32_t index = id & (kMaxEntries - 1);
    Entry& entry = entries_[index];
    entry.is_used = false;
    entry.use = entry.use == kMaxUse ? 1 : entry.use + 1;
    free_.push_back(index);
    --count_;
    return std::exchange(entry.value, T());
  }

  std::size_t count() const { return count_; }

  // Returns the ids of all present entries.
  std::vector<std::uint32_t> ids() const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].is_used) all.push_back(entries_[i].use << kIndexBits | i);
    }
    return all;
  }

 private:
  static constexpr std::uint32_t kIndexBits = 20;
  static constexpr std::uint32_t kMaxEntries = 1u << kIndexBits;
  static constexpr std::uint32_t kMaxUse = (1u << 12) - 1;

  struct Entry {
    T value{};
    std::uint32_t use = 1;
    bool is_used = false;
  };

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
  std::size_t count_ = 0;
};

}  // namespace score::pm::fi
