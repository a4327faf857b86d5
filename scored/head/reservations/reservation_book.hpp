#pragma once
// All reservations that have not ended. No two have a node at the same time. Pure: `now` is the
// wall clock's.

#include "scored/head/reservations/booking.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

class ReservationBook {
 public:
  using All = std::map<std::string, Booking, std::less<>>;  // by name

  // Whether it can be added; it has a name, and a start. Errors, one line: Exists (its name, or
  // another one has its nodes then), Malformed (in the past, too short, too long, too far
  // ahead), TooLarge (too many).
  [[nodiscard]] Status check(const Booking& wanted, WallTime now) const;
  void add(Booking booking);
  // False: there is none.
  bool remove(std::string_view name);

  // nullptr: there is none.
  [[nodiscard]] const Booking* find(std::string_view name) const;

  [[nodiscard]] const All& all() const { return all_; }

  // The earliest end. 1970: there is no reservation.
  [[nodiscard]] WallTime next_end() const;
  // Removes those that have ended.
  std::vector<Booking> take_ended(WallTime now);

  // "r1", "r2" ...: one that is not used, and was not returned before.
  [[nodiscard]] std::string free_name();

 private:
  All all_;
  std::uint64_t last_ = 0;
};

}  // namespace score::head
