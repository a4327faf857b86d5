#include "pmlib/core/regions.hpp"

#include <cerrno>
#include <sys/mman.h>

namespace score::pm {

namespace {

// mlock() and munlock() round to whole pages.
void* memory_of(const RegionEntry& region) {
  return reinterpret_cast<void*>(region.address);
}

}  // namespace

Regions::~Regions() {
  for (std::uint32_t i = 0; i < segment_.geometry().regions; ++i) {
    const RegionEntry& r = segment_.region(i);
    if (r.length != 0) munlock(memory_of(r), r.length);
  }
}

int Regions::add(const void* address, std::uint64_t length, std::uint32_t& index,
                 std::uint64_t& offset) {
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  if (length == 0 || start + length < start) return EINVAL;
  SegmentHeader& h = segment_.header();
  if (find(start, length, index)) {
    ++h.counters.registration_hits;
  } else {
    if (!find_place(index)) return ENOSPC;
    ++h.counters.registration_misses;
    segment_.region(index) = {start, length, 0, 0, 0};
    pin(segment_.region(index));
  }
  RegionEntry& r = segment_.region(index);
  if (r.references++ == 0) r.nonce = next_nonce();
  r.last_used = ++h.use_clock;
  offset = start - r.address;
  return 0;
}

int Regions::drop(std::uint32_t index) {
  if (index >= segment_.geometry().regions) return EINVAL;
  RegionEntry& r = segment_.region(index);
  if (r.references == 0) return EINVAL;
  if (--r.references > 0) return 0;
  lazy_sum_ += lazy_percent_;
  if (lazy_sum_ < 100) {
    forget(r);
  } else {
    lazy_sum_ -= 100;
  }
  return 0;
}

int Regions::rebind(std::uint32_t index, void* address) {
  if (index >= segment_.geometry().regions || segment_.region(index).length == 0) return EINVAL;
  RegionEntry& r = segment_.region(index);
  r.address = reinterpret_cast<std::uintptr_t>(address);
  pin(r);
  return 0;
}

bool Regions::find(std::uint64_t address, std::uint64_t length, std::uint32_t& index) const {
  for (std::uint32_t i = 0; i < segment_.geometry().regions; ++i) {
    const RegionEntry& r = segment_.region(i);
    if (r.length == 0 || address < r.address || address - r.address > r.length) continue;
    if (length > r.length - (address - r.address)) continue;
    index = i;
    return true;
  }
  return false;
}

// Finds an entry that was never used, or else evicts the region that was released longest ago.
bool Regions::find_place(std::uint32_t& index) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (std::uint32_t i = 0; i < segment_.geometry().regions; ++i) {
      if (segment_.region(i).length != 0) continue;
      index = i;
      return true;
    }
    if (!forget_oldest()) break;
  }
  return false;
}

bool Regions::forget_oldest() {
  RegionEntry* oldest = nullptr;
  for (std::uint32_t i = 0; i < segment_.geometry().regions; ++i) {
    RegionEntry& r = segment_.region(i);
    if (r.length == 0 || r.references > 0) continue;
    if (oldest == nullptr || r.last_used < oldest->last_used) oldest = &r;
  }
  if (oldest == nullptr) return false;
  forget(*oldest);
  return true;
}

// A failed mlock is tolerated: devices here copy through the page tables, so unpinned memory is
// slower but still correct. If the limit on locked memory is reached even with an empty cache, the
// region is used unpinned.
void Regions::pin(RegionEntry& region) {
  while (mlock(memory_of(region), region.length) != 0) {
    if ((errno != ENOMEM && errno != EAGAIN && errno != EPERM) || !forget_oldest()) return;
  }
}

void Regions::forget(RegionEntry& region) {
  munlock(memory_of(region), region.length);
  region = RegionEntry();
}

std::uint32_t Regions::next_nonce() {
  std::uint64_t& x = segment_.header().nonce_state;  // xorshift64*, Vigna 2016
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  return static_cast<std::uint32_t>((x * 0x2545f4914f6cdd1dULL) >> 32);
}

}  // namespace score::pm
