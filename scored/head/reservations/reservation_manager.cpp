#include "scored/head/reservations/reservation_manager.hpp"

#include "base/limits.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "scored/head/store/settings.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace score::head {
namespace {

// The wall clock can be set, so it is compared with the cluster's time at least this often.
constexpr Duration kLongestSleep = 10s;
constexpr Duration kOffsetKept = 100ms;
constexpr std::size_t kJobsNamed = 8;  // in an error

}  // namespace

// ---- commands -----------------------------------------------------------------------------------

Result<Booking> ReservationManager::plan(const wire::Reservation& wanted, bool ends_jobs) {
  auto booking = read_booking(wanted);
  if (!booking) return booking;
  const WallTime now = head_.runner.wall();
  if (booking->start == WallTime()) booking->start = now;
  for (const std::string& node : booking->nodes) {
    if (auto known = head_.links.find(node); !known) return known.error();
  }
  if (auto known = find_users(*booking); !known) return known.error();
  for (const std::string& account : booking->accounts) {
    if (head_.config.accounts.find(account) == nullptr) {
      return fail(Errc::NotFound, "no account {}", account);
    }
  }
  if (auto possible = registry_.check(*booking, now); !possible) return possible.error();
  booking->start = std::max(booking->start, now);
  const auto in_cluster = for_cluster(*booking);
  if (!in_cluster) return in_cluster.error();
  const auto jobs = head_.runner.cluster().conflicting_jobs(*in_cluster, head_.runner.now());
  if (ends_jobs || jobs.empty()) return booking;
  const std::span named(jobs.data(), std::min(jobs.size(), kJobsNamed));
  return fail(Errc::Busy,
              "job{} {}{} may still run there when it starts: choose a later start, cancel {}, or "
              "give --end-jobs",
              jobs.size() == 1 ? "" : "s", fmt::join(named, ", "),
              jobs.size() > kJobsNamed ? fmt::format(" and {} more", jobs.size() - kJobsNamed) : "",
              jobs.size() == 1 ? "it" : "them");
}

// Looks up the users' numbers; a number need not have a name.
Status ReservationManager::find_users(Booking& booking) {
  booking.user_ids.clear();
  for (const std::string& name : booking.users) {
    const auto number = parse_number<std::uint32_t>(name);
    const auto id =
        number ? std::optional(UserId(*number)) : head_.users.named(name, head_.runner.now());
    if (!id) return fail(Errc::NotFound, "no user {}", name);
    booking.user_ids.push_back(*id);
  }
  return {};
}

void ReservationManager::make(const Booking& booking) {
  registry_.add(booking);
  update_calendar();
}

Status ReservationManager::check_removal(std::string_view name) const {
  if (registry_.find(name) != nullptr) return {};
  return fail(Errc::NotFound, "no reservation {}", escape_terminal(name, 80));
}

void ReservationManager::remove(std::string_view name) {
  if (registry_.remove(name)) update_calendar();
}

// ---- jobs ---------------------------------------------------------------------------------------

Status ReservationManager::admit(UserId user, const ResourceRequest& request) const {
  if (request.reservation.empty()) return {};
  const Booking* booking = registry_.find(request.reservation);
  if (booking == nullptr) return fail(Errc::NotFound, "no reservation {}", request.reservation);
  const bool has_user = std::ranges::find(booking->user_ids, user) != booking->user_ids.end();
  const bool has_account =
      std::ranges::find(booking->accounts, request.account) != booking->accounts.end();
  if (booking->users.empty() && booking->accounts.empty()) {
    return fail(Errc::Denied, "reservation {} is for maintenance: no job can use it",
                booking->name);
  }
  if (!has_user && !has_account) {
    return fail(Errc::Denied, "reservation {} is for other users", booking->name);
  }
  if (request.nodes <= booking->nodes.size()) return {};
  return fail(Errc::TooLarge, "requested {}; reservation {} has {}", counted(request.nodes, "node"),
              booking->name, booking->nodes.size());
}

wire::ReservationList ReservationManager::list(const Peer& peer) const {
  std::vector<const Booking*> all;
  for (const auto& [name, booking] : registry_.all()) all.push_back(&booking);
  std::ranges::stable_sort(all, {}, &Booking::start);
  const bool is_hidden = head_.config.monitor.is_private && peer.role == proto::Role::OtherUser;
  wire::ReservationList list;
  for (const Booking* booking : all) {
    wire::Reservation& out = *list.add_reservations();
    out = to_wire(*booking);
    if (!is_hidden) continue;
    const bool has_user =
        std::ranges::find(booking->user_ids, peer.user) != booking->user_ids.end();
    const bool is_maintenance = booking->users.empty() && booking->accounts.empty();
    out.clear_users();
    out.clear_user_ids();
    out.clear_accounts();
    if (!is_maintenance) out.add_users(has_user ? peer.name : "(hidden)");
  }
  return list;
}

// ---- the cluster --------------------------------------------------------------------------------

Result<gang::Reservation> ReservationManager::for_cluster(const Booking& booking) const {
  const Duration offset =
      head_.runner.wall().time_since_epoch() - head_.runner.now().time_since_epoch();
  gang::Reservation out;
  out.name = booking.name;
  for (const std::string& name : booking.nodes) {
    const auto node = head_.links.find(name);
    if (!node) return node.error();
    out.nodes.push_back(*node);
  }
  out.start = TimePoint(booking.start.time_since_epoch() - offset);
  out.end = TimePoint(booking.end.time_since_epoch() - offset);
  out.users = {booking.user_ids.begin(), booking.user_ids.end()};
  out.accounts = {booking.accounts.begin(), booking.accounts.end()};
  return out;
}

void ReservationManager::update_calendar() {
  offset_ = head_.runner.wall().time_since_epoch() - head_.runner.now().time_since_epoch();
  std::vector<gang::Reservation> all;
  for (const auto& [name, booking] : registry_.all()) {
    auto one = for_cluster(booking);
    if (one) all.push_back(std::move(*one));
  }
  head_.runner.perform(head_.runner.cluster().set_reservations(std::move(all), head_.runner.now()));
  head_.alarm.at(next_deadline());
}

// Nodes that have left the configuration are no longer reserved.
void ReservationManager::restore(const std::map<std::string, std::string>& stored) {
  for (const auto& [name, bytes] : stored) {
    auto booking = unpack_booking(bytes);
    if (!booking || booking->name != name) {
      log_error("Cannot read a stored reservation", kv("reservation", name));
      continue;
    }
    const std::size_t before = booking->nodes.size();
    std::erase_if(booking->nodes, [&](const auto& node) { return !head_.links.has(node); });
    if (booking->nodes.size() < before) {
      log_warning("Nodes of a reservation are no longer configured", kv("reservation", name),
                  kv("nodes", before - booking->nodes.size()));
    }
    registry_.add(std::move(*booking));
  }
  if (registry_.all().empty()) return;
  tick();
  update_calendar();
}

void ReservationManager::forget(const Booking& booking) {
  head_.commits.add(reserve_setting(booking.name, std::nullopt));
  log_notice("Reservation has ended", kv("reservation", booking.name));
  head_.feed.add(monitor::EventKind::Admin, fmt::format("reservation {} has ended", booking.name),
                 {});
}

void ReservationManager::tick() {
  if (registry_.all().empty()) return;
  const auto ended = registry_.take_ended(head_.runner.wall());
  for (const Booking& booking : ended) forget(booking);
  const Duration offset =
      head_.runner.wall().time_since_epoch() - head_.runner.now().time_since_epoch();
  if (!ended.empty() || std::chrono::abs(offset - offset_) > kOffsetKept) update_calendar();
}

std::optional<TimePoint> ReservationManager::next_deadline() const {
  const WallTime next = registry_.next_end();
  if (next == WallTime()) return std::nullopt;
  return head_.runner.now() + std::clamp<Duration>(next - head_.runner.wall(), 0s, kLongestSleep);
}

}  // namespace score::head
