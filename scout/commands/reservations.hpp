// scadm reserve, reservations: what the words of the command line mean, and how the answer is
// shown.
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
  std::string duration;  // "2h"; a bare number: minutes
  std::string users;     // "alice,bob"; "-" or "maintenance": none
  std::string accounts;  // "physics,art"
  std::string name;      // empty: the head makes one
  std::string reason;
  bool ends_jobs = false;
};

// Errors, one line: Malformed, TooLarge.
Result<wire::Reserve> make_reserve(const ReserveWords& words, WallTime now);

std::string reservations_page(const wire::ReservationList& list, const CommonOptions& options,
                              WallTime now);
std::string reservations_json(const wire::ReservationList& list, WallTime now);

}  // namespace score::scout
