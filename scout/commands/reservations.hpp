// Implements scadm reserve and scadm reservations: it parses the words of the command line, and
// formats the answer.
#pragma once

#include "base/result.hpp"
#include "base/time.hpp"
#include "proto/client.pb.h"
#include "scout/session/command.hpp"

#include <string>

namespace score::scout {

struct ReserveWords {
  std::string nodes;     // a host list
  std::string start;     // "now", "2h", "16:00", a date
  std::string duration;  // "2h"; a bare number means minutes
  std::string users;     // "alice,bob"; "-" or "maintenance": none
  std::string accounts;  // "physics,art"
  std::string name;      // empty: the head chooses one
  std::string reason;
  bool ends_jobs = false;
};

// Converts the words to a request. Errors, each in one line: Malformed, TooLarge.
Result<wire::Reserve> make_reserve(const ReserveWords& words, WallTime now);

std::string reservations_page(const wire::ReservationList& list, const CommonOptions& options,
                              WallTime now);
std::string reservations_json(const wire::ReservationList& list, WallTime now);

}  // namespace score::scout
