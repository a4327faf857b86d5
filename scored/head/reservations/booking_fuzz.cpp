// Reservations come from commands and from the store. An accepted one must be bounded, and must be
// the same after a second pass through the store.

#include "base/assert.hpp"
#include "base/limits.hpp"
#include "proto/client.pb.h"
#include "scored/head/reservations/reservation_registry.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

using namespace score;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto booking = head::unpack_booking(bytes);
  if (!booking) return 0;
  SCORE_ASSERT(!booking->nodes.empty() && booking->nodes.size() <= limits::kMaxNodes);
  SCORE_ASSERT(booking->start < booking->end);
  const auto again = head::unpack_booking(head::pack_booking(*booking));
  SCORE_ASSERT(again && *again == *booking);
  SCORE_ASSERT(head::describe(*booking).find('\n') == std::string::npos);
  head::ReservationRegistry registry;
  if (registry.check(*booking, booking->start)) registry.add(*booking);
  SCORE_ASSERT(registry.check(*booking, booking->start).has_value() == false);
  return 0;
}
