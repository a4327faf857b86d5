#pragma once
// A reservation as users see it and as it is stored: names and wall time. Plain values.

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

// In force during [start, end). Neither users nor accounts: maintenance.
struct Booking {
  std::string name;                // a host name's letters; empty in a command: to be made
  std::vector<std::string> nodes;  // ascending, no name twice
  WallTime start{};                // 1970 in a command: now
  WallTime end{};
  std::vector<std::string> users;  // names or numbers
  std::vector<UserId> user_ids;    // theirs; empty in a command
  std::vector<std::string> accounts;
  std::string reason;  // escaped

  friend bool operator==(const Booking&, const Booking&) = default;
};

// Of a command or of the store; nodes may be host lists. What it says is bounded and well-formed;
// whether nodes, users and accounts exist is not checked. Errors: Malformed, TooLarge, one line.
[[nodiscard]] Result<Booking> read_booking(const wire::Reservation& message);
[[nodiscard]] wire::Reservation to_wire(const Booking& booking);

// For the store. Errors of reading: Malformed, TooLarge.
[[nodiscard]] std::string pack_booking(const Booking& booking);
[[nodiscard]] Result<Booking> unpack_booking(std::string_view bytes);

// "node[00-03] from 2026-12-01 08:00:00 to 2026-12-01 10:00:00 for alice, account physics",
// "... for maintenance".
[[nodiscard]] std::string describe(const Booking& booking);

}  // namespace score::head
