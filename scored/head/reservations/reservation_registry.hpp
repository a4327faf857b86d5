#pragma once
// ReservationRegistry holds all reservations that have not ended. No two have a node at the same
// time. The class is pure: `now` is the time of the wall clock.

#include "scored/head/reservations/booking.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

class ReservationRegistry {
 public:
  using All = std::map<std::string, Booking, std::less<>>;  // by name

  // Checks whether a reservation with a name and a start can be added. Errors, one line: Exists
  // (the name is used, or a different reservation has a node at that time), Malformed (in the past,
  // too short, too long, too far ahead), TooLarge (too many).
  [[nodiscard]] Status check(const Booking& wanted, WallTime now) const;
  void add(Booking booking);
  // Returns false if there is no such reservation.
  bool remove(std::string_view name);

  // Returns nullptr if there is none.
  [[nodiscard]] const Booking* find(std::string_view name) const;

  [[nodiscard]] const All& all() const { return all_; }

  // Returns the earliest end; 1970 if there is no reservation.
  [[nodiscard]] WallTime next_end() const;
  // Removes and returns the reservations that have ended.
  std::vector<Booking> take_ended(WallTime now);

  // Returns a name "r1", "r2" ... that is not used and was not returned before.
  [[nodiscard]] std::string free_name();

 private:
  All all_;
  std::uint64_t last_ = 0;
};

}  // namespace score::head
