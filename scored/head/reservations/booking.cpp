#include "scored/head/reservations/booking.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "proto/client.pb.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace score::head {
namespace {

constexpr std::size_t kMaxReasonBytes = 256;
constexpr std::size_t kMaxUserBytes = 256;

using Names = google::protobuf::RepeatedPtrField<std::string>;

Result<std::vector<std::string>> read_nodes(const Names& lists) {
  std::vector<std::string> nodes;
  for (const std::string& list : lists) {
    auto names = expand_hostlist(list);
    if (!names) return names.error();
    nodes.insert(nodes.end(), names->begin(), names->end());
    if (nodes.size() > limits::kMaxNodes) {
      return fail(Errc::TooLarge, "more than {} nodes", limits::kMaxNodes);
    }
  }
  if (nodes.empty()) return fail(Errc::Malformed, "name at least one node");
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

// Returns true if the name could be one word of a command line.
bool is_user_word(std::string_view name) {
  return !name.empty() && name.size() <= kMaxUserBytes &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c > ' ' && c < '\x7f' && c != ','; });
}

Result<std::vector<std::string>> read_words(const Names& names, std::string_view what,
                                            bool (*is_word)(std::string_view)) {
  if (static_cast<std::size_t>(names.size()) > limits::kMaxReservationUsers) {
    return fail(Errc::TooLarge, "{} {}s; a reservation can have {} at most", names.size(), what,
                limits::kMaxReservationUsers);
  }
  std::vector<std::string> words;
  for (const std::string& name : names) {
    if (!is_word(name)) {
      return fail(Errc::Malformed, "'{}' is not {} name", escape_terminal(name, 80),
                  what == "user" ? "a user" : "an account");
    }
    if (std::ranges::find(words, name) == words.end()) words.push_back(name);
  }
  return words;
}

Status check_message_times(const wire::Reservation& message) {
  const std::int64_t start = message.start_wall_ns();
  const std::int64_t end = message.end_wall_ns();
  if (start < 0 || end < 0) return fail(Errc::Malformed, "a time before 1970");
  if (end <= start) return fail(Errc::Malformed, "the end is not after the start");
  return {};
}

}  // namespace

Result<Booking> read_booking(const wire::Reservation& message) {
  Booking booking;
  booking.name = message.name();
  if (!booking.name.empty() && !is_host_name(booking.name)) {
    return fail(Errc::Malformed,
                "'{}' is not a name of a reservation: use letters, digits, '-', '_' and '.'",
                escape_terminal(booking.name, 80));
  }
  auto nodes = read_nodes(message.nodes());
  if (!nodes) return nodes.error();
  booking.nodes = std::move(*nodes);
  if (auto sound = check_message_times(message); !sound) return sound.error();
  booking.start = WallTime(Duration(message.start_wall_ns()));
  booking.end = WallTime(Duration(message.end_wall_ns()));
  auto users = read_words(message.users(), "user", is_user_word);
  if (!users) return users.error();
  booking.users = std::move(*users);
  if (static_cast<std::size_t>(message.user_ids_size()) > limits::kMaxReservationUsers) {
    return fail(Errc::TooLarge, "{} numbers of users", message.user_ids_size());
  }
  for (const std::uint32_t id : message.user_ids()) booking.user_ids.emplace_back(id);
  auto accounts = read_words(message.accounts(), "account", is_host_name);
  if (!accounts) return accounts.error();
  booking.accounts = std::move(*accounts);
  booking.reason = escape_terminal(message.reason(), kMaxReasonBytes);
  return booking;
}

wire::Reservation to_wire(const Booking& booking) {
  wire::Reservation out;
  out.set_name(booking.name);
  for (const std::string& node : booking.nodes) out.add_nodes(node);
  out.set_start_wall_ns(booking.start.time_since_epoch().count());
  out.set_end_wall_ns(booking.end.time_since_epoch().count());
  for (const std::string& user : booking.users) out.add_users(user);
  for (const UserId id : booking.user_ids) out.add_user_ids(id.value());
  for (const std::string& account : booking.accounts) out.add_accounts(account);
  out.set_reason(booking.reason);
  return out;
}

std::string pack_booking(const Booking& booking) {
  return to_wire(booking).SerializeAsString();
}

Result<Booking> unpack_booking(std::string_view bytes) {
  wire::Reservation message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(Errc::Malformed, "cannot read the reservation");
  }
  return read_booking(message);
}

std::string describe(const Booking& booking) {
  std::string whom = fmt::format("{}", fmt::join(booking.users, ", "));
  for (const std::string& account : booking.accounts) {
    whom += (whom.empty() ? "account " : ", account ") + account;
  }
  return fmt::format("{} from {} to {} for {}", compress_hostlist(booking.nodes),
                     format_wall(booking.start), format_wall(booking.end),
                     whom.empty() ? "maintenance" : whom);
}

}  // namespace score::head
