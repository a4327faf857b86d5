// Tracks the space of one server of a volume. Space for incoming data is reserved first. When
// the data has arrived, the space that the file system used is counted instead.
#pragma once

#include <cstdint>

namespace score::pario {

class Quota {
 public:
  // `used` is the space that is already used. It may exceed `capacity`; no data can be added then.
  explicit Quota(std::uint64_t capacity, std::uint64_t used = 0)
      : capacity_(capacity), used_(used) {}

  // Returns false if there is no room for `bytes` more; nothing has changed then.
  [[nodiscard]] bool reserve(std::uint64_t bytes) {
    if (bytes > free()) return false;
    reserved_ += bytes;
    return true;
  }

  // Ends a write for which `reserved` bytes were reserved; the file takes `after` bytes instead of
  // `before`.
  void settle(std::uint64_t reserved, std::uint64_t before, std::uint64_t after) {
    reserved_ -= reserved < reserved_ ? reserved : reserved_;
    if (after >= before) {
      used_ += after - before;
    } else {
      const std::uint64_t less = before - after;
      used_ -= less < used_ ? less : used_;
    }
  }

  std::uint64_t capacity() const { return capacity_; }

  void set_capacity(std::uint64_t capacity) { capacity_ = capacity; }

  std::uint64_t used() const { return used_; }

  std::uint64_t free() const {
    const std::uint64_t taken = used_ + reserved_;
    return taken < used_ || taken >= capacity_ ? 0 : capacity_ - taken;
  }

 private:
  std::uint64_t capacity_;
  std::uint64_t used_;
  std::uint64_t reserved_ = 0;
};

// A name and its attributes take about as much space, so empty files fill a volume too.
inline constexpr std::uint64_t kBytesPerFile = 512;

// Returns true if there is room for another file beside `files`. Space that is only reserved does
// not count, because clients reserve much more than they need.
inline bool has_room_for_file(const Quota& quota, std::uint64_t files) {
  const std::uint64_t free = quota.used() < quota.capacity() ? quota.capacity() - quota.used() : 0;
  return files < free / kBytesPerFile;
}

// Returns the maximum that a write of `length` bytes can take: whole pages at both ends.
constexpr std::uint64_t most_space(std::uint64_t length) {
  return (length + 2 * 4096 - 1) / 4096 * 4096;
}

}  // namespace score::pario
