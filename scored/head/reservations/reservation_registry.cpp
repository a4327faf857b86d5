#include "scored/head/reservations/reservation_registry.hpp"

#include "base/limits.hpp"

#include <algorithm>

namespace score::head {
namespace {

// A start may be this far in the past, because the command took time or its clock is a little late.
constexpr Duration kStillNow = 1min;

// Returns a node that both have; nullptr if there is none.
const std::string* shared_node(const Booking& a, const Booking& b) {
  for (const std::string& node : a.nodes) {
    if (std::binary_search(b.nodes.begin(), b.nodes.end(), node)) return &node;
  }
  return nullptr;
}

Status check_times(const Booking& wanted, WallTime now) {
  if (wanted.start < now - kStillNow) {
    return fail(Errc::Malformed, "the reservation would start at {}, which is past",
                format_wall(wanted.start));
  }
  if (wanted.end <= now) {
    return fail(Errc::Malformed, "the reservation would end at {}, which is past",
                format_wall(wanted.end));
  }
  if (wanted.start > now + limits::kMaxReservationAhead) {
    return fail(Errc::Malformed, "the start {} is more than {} ahead", format_wall(wanted.start),
                format_duration(limits::kMaxReservationAhead));
  }
  const Duration length = wanted.end - wanted.start;
  if (length >= limits::kMinReservation && length <= limits::kMaxReservation) return {};
  return fail(Errc::Malformed, "a reservation of {}: use a duration from {} to {}",
              format_duration(length), format_duration(limits::kMinReservation),
              format_duration(limits::kMaxReservation));
}

}  // namespace

Status ReservationRegistry::check(const Booking& wanted, WallTime now) const {
  if (auto sound = check_times(wanted, now); !sound) return sound;
  if (find(wanted.name) != nullptr) {
    return fail(Errc::Exists, "there is a reservation {} already", wanted.name);
  }
  if (all_.size() >= limits::kMaxReservations) {
    return fail(Errc::TooLarge, "there are {} reservations already, which is the limit",
                all_.size());
  }
  for (const auto& [name, other] : all_) {
    if (other.end <= wanted.start || wanted.end <= other.start) continue;
    if (const std::string* node = shared_node(wanted, other)) {
      return fail(Errc::Exists, "reservation {} has {} from {} to {}", name, *node,
                  format_wall(other.start), format_wall(other.end));
    }
  }
  return {};
}

void ReservationRegistry::add(Booking booking) {
  std::string name = booking.name;
  all_.insert_or_assign(std::move(name), std::move(booking));
}

bool ReservationRegistry::remove(std::string_view name) {
  const auto found = all_.find(name);
  if (found == all_.end()) return false;
  all_.erase(found);
  return true;
}

const Booking* ReservationRegistry::find(std::string_view name) const {
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : &found->second;
}

WallTime ReservationRegistry::next_end() const {
  WallTime next{};
  for (const auto& [name, booking] : all_) {
    if (next == WallTime() || booking.end < next) next = booking.end;
  }
  return next;
}

std::vector<Booking> ReservationRegistry::take_ended(WallTime now) {
  std::vector<Booking> ended;
  for (auto it = all_.begin(); it != all_.end();) {
    if (it->second.end > now) {
      ++it;
      continue;
    }
    ended.push_back(std::move(it->second));
    it = all_.erase(it);
  }
  return ended;
}

std::string ReservationRegistry::free_name() {
  std::string name;
  do {
    name = fmt::format("r{}", ++last_);
  } while (find(name) != nullptr);
  return name;
}

}  // namespace score::head
