#pragma once
// A Booking is a reservation as users see it and as it is stored, with names and wall time. It is a
// plain value.

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::wire {
class Reservation;
}

namespace score::head {

// A booking is in force during [start, end). Without users and accounts it is for maintenance.
struct Booking {
  std::string name;                // a host name's letters; empty in a command: generated
  std::vector<std::string> nodes;  // ascending and unique
  WallTime start{};                // 1970 in a command means now
  WallTime end{};
  std::vector<std::string> users;  // names or numbers
  std::vector<UserId> user_ids;    // of `users`; empty in a command
  std::vector<std::string> accounts;
  std::string reason;  // escaped

  friend bool operator==(const Booking&, const Booking&) = default;
};

// Reads a reservation of a command or of the store; nodes may be hostlists. The result is bounded
// and well-formed; whether nodes, users and accounts exist is not checked. Errors: Malformed,
// TooLarge; one line.
[[nodiscard]] Result<Booking> read_booking(const wire::Reservation& message);
[[nodiscard]] wire::Reservation to_wire(const Booking& booking);

// Packs a booking for the store. Errors of unpack_booking(): Malformed, TooLarge.
[[nodiscard]] std::string pack_booking(const Booking& booking);
[[nodiscard]] Result<Booking> unpack_booking(std::string_view bytes);

// Returns a text such as "node[00-03] from 2026-12-01 08:00:00 to 2026-12-01 10:00:00 for alice,
// account physics", or "... for maintenance".
[[nodiscard]] std::string describe(const Booking& booking);

}  // namespace score::head
