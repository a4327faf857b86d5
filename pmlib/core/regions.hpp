// Regions manages registered memory and the pin-down cache (Tezuka et al., "Pin-down Cache: A
// Virtual Memory Management Technique for Zero-copy Communication", IPPS 1998).
//
// Registration pins memory and lets other ranks write and read it by name. Pinning is slow, so
// unpinning is lazy: a released region stays pinned until its table entry or its memory is needed.
// The cache finds it when the same memory is registered again. Protection is not lazy: a released
// region cannot be named, and a new registration has a new nonce.
#pragma once

#include "pmlib/core/segment.hpp"

#include <cstddef>
#include <cstdint>

namespace score::pm {

// Does not report the reason for a failure, so that an attacker learns nothing.
inline bool region_covers(const Segment& segment, std::uint32_t region, std::uint32_t nonce,
                          std::uint64_t offset, std::uint64_t length) {
  if (region >= segment.geometry().regions) return false;
  const RegionEntry& r = segment.region(region);
  return r.references > 0 && r.nonce == nonce && offset <= r.length && length <= r.length - offset;
}

// Returns the address of that place in this process.
inline std::byte* memory_of(const Segment& segment, std::uint32_t region, std::uint64_t offset) {
  return reinterpret_cast<std::byte*>(segment.region(region).address + offset);
}

class Regions {
 public:
  explicit Regions(const Segment& segment) : segment_(segment) {}

  // Releases all pinned memory; the table is left as it is.
  ~Regions();
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;

  // Registers [address, address + length). On success `index` names the region and `offset` is the
  // position of `address` in it. Errors: ENOSPC if every entry of the table is registered, EINVAL
  // if the range is empty or wraps.
  int add(const void* address, std::uint64_t length, std::uint32_t& index, std::uint64_t& offset);
  // Removes one registration. Returns EINVAL if there is none.
  int drop(std::uint32_t index);
  // Moves the region to `address` after a restore into a different process.
  int rebind(std::uint32_t index, void* address);

  // Sets the percentage of releases that are lazy, for measurements. 100 is the normal case; 0
  // unpins at once, so that every registration misses.
  void set_lazy_percent(unsigned percent) { lazy_percent_ = percent < 100 ? percent : 100; }

 private:
  bool find(std::uint64_t address, std::uint64_t length, std::uint32_t& index) const;
  bool find_place(std::uint32_t& index);
  void pin(RegionEntry& region);
  void forget(RegionEntry& region);
  bool forget_oldest();
  std::uint32_t next_nonce();

  Segment segment_;
  unsigned lazy_percent_ = 100;
  unsigned lazy_sum_ = 0;
};

}  // namespace score::pm
